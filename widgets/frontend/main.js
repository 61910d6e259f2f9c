// The view put together; the same in a notebook (`render`) and in a stand-alone page (`mountPage`).

import { h } from "./dom.js";
import { followTheme } from "./theme.js";
import { linkTo, parseLink, pending, unzipped } from "./logic.js";
import { lensView } from "./lens.js";
import { splitView } from "./split.js";
import { detailView } from "./detail.js";
import { headerView } from "./header.js";
import { breaksView } from "./breaks.js";
import { timeView } from "./timeline.js";

const SCHEMA = 1;
const PATIENCE = 3000;
const GONE = "kernel gone: run the cell again";

/** @param {import("./view").Host} host */
function mount(root, host) {
  const view = h("div", { cls: "dyn" });
  let selected = "",
    shown = "",
    drawnFor = null;
  const ctx = {
    host,
    pending: pending(),
    content: null,
    local: "",
    gone: false,
    select,
    point: (file, line) => lens.point(file, line),
    has: (id) => Boolean(ctx.content && ctx.content.details[id]),
    canRun: () => Boolean(host.get("can_run_again")) && !ctx.gone,
    changed: () => {
      header.drawControls();
      if (ctx.content) detail.show(ctx.content, selected);
    },
    link: (id, part) => host.link(linkTo(id, part)),
    request,
  };
  const open = () => detail.node.focus({ preventScroll: false });
  const header = headerView(ctx),
    breaks = breaksView(select, open),
    time = timeView(select, open),
    lens = lensView(select),
    split = splitView(select, open),
    detail = detailView(ctx);
  const source = h(
    "section",
    { cls: "dyn-lens", "aria-label": "source" },
    h("div", { cls: "dyn-bar" }, h("h2", { text: "Source" })),
    lens.node,
  );
  view.append(header.node, breaks.node, time.node, h("div", { cls: "dyn-mid" }, source, split.node), detail.node);
  root.replaceChildren(view);
  const stopTheme = followTheme(view);

  function select(id) {
    if (!ctx.has(id)) return;
    selected = id;
    light();
    if (host.get("selected") !== id) host.set("selected", id);
    host.link(linkTo(id, ""));
  }
  function light(look = true) {
    const { content } = ctx;
    const reveals = [breaks, time, split, lens].map((part) => part.light(content, selected));
    if (shown !== selected || drawnFor !== content) detail.show(content, selected);
    [shown, drawnFor] = [selected, content];
    if (look) for (const show of reveals) show(); // after all changes: the page is laid out once
  }
  function clear() {
    ctx.pending.clear();
    if (ctx.content) detail.show(ctx.content, selected);
  }
  function request(message) {
    // a kernel that runs the view's cell may hear nothing until that is over
    if (message.kind === "stop" && host.get("running") && host.interrupt()) return;
    ctx.local = "";
    header.drawNotes();
    host.ask(message, PATIENCE).then((answer) => {
      if (answer === "done" && message.kind === "run_again") clear();
      if (answer === "gone") ctx.local = host.get("busy") ? "no answer: the kernel is busy or gone" : GONE;
      header.drawNotes();
      header.drawControls();
    });
  }
  function draw() {
    const content = host.get("content");
    if (!content || content.schema !== SCHEMA) {
      view.classList.add("dyn-waiting");
      header.drawProgress();
      header.drawNotes();
      header.drawControls();
      return;
    }
    view.classList.remove("dyn-waiting");
    ctx.content = content;
    view.setAttribute("role", "region");
    view.setAttribute("aria-label", `dynascope view: ${content.headline.slice(0, 300)}`);
    source.querySelector("h2").textContent = content.lens.length === 1 ? `Source · ${content.lens[0].label}` : "Source";
    source.hidden = !content.lens.length;
    view.querySelector(".dyn-mid").classList.toggle("dyn-alone", !content.lens.length);
    split.node.hidden = !content.split.boxes.length && !content.split.groups.length;
    source.parentNode.hidden = source.hidden && split.node.hidden;
    header.draw(content);
    breaks.draw(content);
    time.draw(content);
    lens.draw(content);
    split.draw(content);
    const wanted = [host.get("selected"), selected, content.first].find((id) => id && content.details[id]);
    selected = wanted || "";
    light(shown !== selected); // a report that grows does not take away what the user looks at
  }
  view.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    const stop = split.node.querySelector('.dyn-node[tabindex="0"]');
    if (stop && detail.node.contains(document.activeElement)) stop.focus();
    event.stopPropagation();
  });
  const stops = [
    host.on("content", draw),
    host.on("selected", () => {
      const id = host.get("selected");
      if (id !== selected && ctx.has(id)) {
        selected = id;
        light();
      }
    }),
    host.on("now", header.drawProgress),
    ...["settings", "busy", "can_run_again", "command"].map((name) =>
      host.on(name, () => {
        if (name === "settings") clear();
        if (name === "can_run_again" && ctx.content) detail.show(ctx.content, selected);
        header.drawControls();
        header.drawNotes();
      }),
    ),
    ...["status", "edited", "diff", "printed"].map((name) =>
      host.on(name, () => {
        ctx.local = "";
        header.drawNotes();
      }),
    ),
  ];
  // The connection changed: where nobody answers any more, nothing may look alive.
  const gone = () => {
    if (ctx.gone) return;
    ctx.gone = true;
    ctx.local = GONE;
    draw();
  };
  if (host.connection)
    stops.push(
      host.connection(() =>
        host.ask({ kind: "ping" }, PATIENCE).then((answer) => {
          if (answer === "gone") gone();
        }),
      ),
    );
  const follow = (hash) => {
    const link = parseLink(hash);
    if (!link) return;
    if (link.part) {
      const content = host.get("content"),
        at = content && content.details[link.id];
      if (at) detail.choose(at.kind, link.part);
    }
    selected = link.id;
    shown = "";
    if (ctx.content && ctx.has(link.id)) light();
  };
  if (host.hash) follow(host.hash(follow));
  draw();
  return () => {
    stopTheme();
    header.stop();
    split.stop();
    for (const stop of stops) stop();
  };
}

// In a notebook: traits of the Python side, and messages that are answered.
function widgetHost(model) {
  let next = 0,
    content = null,
    turn = 0;
  const waiting = new Map(),
    draws = new Set();
  // A large model comes compressed; where a newer one came meanwhile, it is that which is drawn.
  const read = () => {
    const given = model.get("content"),
      mine = ++turn;
    const put = (whole) => {
      if (mine !== turn) return;
      content = whole;
      for (const draw of draws) draw();
    };
    if (given && given.gzip) unzipped(given.gzip).then(put);
    else put(given);
  };
  model.on("change:content", read);
  read();
  const heard = (message) => {
    if (message && message.kind === "ack" && waiting.has(message.id)) waiting.get(message.id)("done");
  };
  model.on("msg:custom", heard);
  return {
    live: true,
    get: (name) => (name === "content" ? content : model.get(name)),
    set(name, value) {
      model.set(name, value);
      try {
        model.save_changes();
      } catch {
        /* no kernel: the selection goes on in the browser */
      }
    },
    on(name, act) {
      if (name === "content") {
        draws.add(act);
        return () => draws.delete(act);
      }
      model.on(`change:${name}`, act);
      return () => model.off(`change:${name}`, act);
    },
    link: () => {},
    connection(act) {
      model.on("comm_live_update", act);
      return () => model.off("comm_live_update", act);
    },
    interrupt() {
      const kernel = model.widget_manager && model.widget_manager.kernel;
      if (!kernel || !kernel.interrupt) return false;
      kernel.interrupt();
      return true;
    },
    ask: (message, patience) =>
      new Promise((resolve) => {
        const id = `${Date.now()}-${next++}`;
        const settle = (answer) => {
          waiting.delete(id);
          clearTimeout(timer);
          resolve(answer);
        };
        const timer = setTimeout(() => settle("gone"), patience);
        waiting.set(id, settle);
        try {
          model.send({ ...message, id });
        } catch {
          settle("gone");
        }
      }),
    close() {
      model.off("msg:custom", heard);
      model.off("change:content", read);
    },
  };
}

// In a page: the data stand in it, nobody answers, the address follows the selection.
function pageHost(content) {
  const values = { content, selected: "", settings: content.settings, busy: false, can_run_again: false };
  return {
    live: false,
    get: (name) => values[name],
    set: (name, value) => {
      values[name] = value;
    },
    on: () => () => {},
    // later, as a browser takes its time for it
    link: (hash) => {
      clearTimeout(values.link);
      values.link = setTimeout(() => history.replaceState(null, "", hash));
    },
    hash: (act) => {
      addEventListener("hashchange", () => act(location.hash));
      return location.hash;
    },
    ask: async () => "gone",
    close: () => {},
  };
}

export function render({ model, el }) {
  el.classList.add("dyn-widget");
  const host = widgetHost(model);
  const stop = mount(el, host);
  return () => {
    stop();
    host.close();
  };
}

export function mountPage(root, content) {
  return mount(root, pageHost(content));
}

// The page that widgets/render/page.py writes: its data stand in `#dyn-data`, compressed where they are large.
export async function openPage() {
  const data = document.getElementById("dyn-data");
  const content = data.dataset.packed === "gzip" ? await unzipped(data.textContent) : JSON.parse(data.textContent);
  return mountPage(document.getElementById("dyn-view"), content);
}

export default { render };
