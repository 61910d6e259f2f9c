// Puts the view together; the same in a notebook (`render`) and in a stand-alone page (`mountPage`, `openPage`).

import { adviceView } from "./advice.js";
import { checkView } from "./check.js";
import { detailView } from "./detail.js";
import { button, h } from "./dom.js";
import { headerView } from "./header.js";
import { sourceView } from "./source_view.js";
import { mountJob } from "./job.js";
import { listViews } from "./lists.js";
import { linkTo, parseLink, pending, unzipped } from "./logic.js";
import { overviewView } from "./overview.js";
import { splitView } from "./split.js";
import { followTheme } from "./theme.js";
import { compileTimeView, timeView } from "./timeline.js";

/** @import { Context, Host, Message, WidgetModel } from "./view" */
/** @import { ViewModel } from "./wire" */

// Milliseconds to wait for an answer.
const PATIENCE = 3000;
// What JupyterLab, VS Code and documentation builders put around an output; without it, an empty line would be left.
const OUTPUT = ":is(.jp-OutputArea-child, .output_container, .cell_output > .output, .nboutput)";
const GONE = "the kernel is gone: run the cell again";
const BUSY = "no answer: the kernel is busy or gone";

/**
 * Build the view in an element; returns a function that removes it.
 * @param {HTMLElement} root
 * @param {Host} host
 */
export function mount(root, host) {
  let selected = "";
  /** What the detail shows. @type {{ id: string, content: ViewModel | null }} */
  let shown = { id: "", content: null };
  /** @type {Context} */
  const ctx = {
    host,
    pending: pending(),
    content: null,
    local: "",
    gone: root.classList.contains("jupyter-widgets-disconnected"), // a page that was made from the widget's saved state
    select,
    point: (file, line) => sourceLines.point(file, line),
    has: (id) => Boolean(ctx.content?.details[id]),
    canRun: () => Boolean(host.get("can_run_again")) && !ctx.gone,
    fixButton() {
      if (!ctx.canRun() || !ctx.content?.fixable) return null;
      const title = "runs the cell again, then tries changes for each break and recompile";
      return button("dyn-btn", "Try all fixes", () => request(ctx.pending.request({ fix: true })), { title });
    },
    changed() {
      header.drawControls();
      redrawDetail();
    },
    link: (id, part) => host.link(linkTo(id, part)),
    request,
  };
  const open = () => detail.node.focus({ preventScroll: false });
  const header = headerView(ctx);
  const advice = adviceView(ctx);
  const check = checkView(ctx);
  const overview = overviewView(select, open);
  const lists = listViews(select, open);
  const time = timeView(select, open);
  const compileTime = compileTimeView(select);
  const sourceLines = sourceView(select);
  const split = splitView(select, open);
  const detail = detailView(ctx);
  const parts = [advice, check, overview, ...lists, time, compileTime, sourceLines, split];
  const sourceTitle = h("h2", { text: "Source" });
  const sourceBar = h("div", { cls: "dyn-bar" }, sourceTitle);
  const source = h(
    "section",
    { cls: "dyn-source", "aria-label": "source" },
    sourceBar,
    ...sourceLines.head,
    sourceLines.node,
  );
  const middle = h("div", { cls: "dyn-mid" }, source, split.node);
  const view = h(
    "div",
    { cls: "dyn" },
    header.node,
    advice.node,
    check.node,
    overview.node,
    ...lists.map((list) => list.node),
    time.node,
    compileTime.node,
    middle,
    detail.node,
  );
  root.replaceChildren(view);
  const stopTheme = followTheme(view);

  /** @param {string} id */
  function select(id) {
    if (!ctx.has(id)) return;
    selected = id;
    highlight();
    if (host.get("selected") !== id) host.set("selected", id);
    host.link(linkTo(id, ""));
  }

  /** Show what is selected in every part, and scroll to it unless `scroll` is false. */
  function highlight(scroll = true) {
    const { content } = ctx;
    if (!content) return;
    const reveals = parts.map((part) => part.highlight(content, selected));
    if (shown.id !== selected || shown.content !== content) redrawDetail();
    shown = { id: selected, content };
    if (scroll) for (const reveal of reveals) reveal(); // after all changes: the page is laid out once
  }

  function redrawDetail() {
    if (ctx.content) detail.show(ctx.content, selected);
  }

  function clearPending() {
    ctx.pending.clear();
    redrawDetail();
  }

  /** @param {Message} message */
  function request(message) {
    // a kernel that runs the view's cell may not read messages until the run is over
    if (message.kind === "stop" && host.get("running") && host.interrupt?.()) return;
    ctx.local = "";
    header.drawNotes();
    host.ask(message, PATIENCE).then((answer) => {
      if (answer === "done" && message.kind === "run_again") clearPending();
      if (answer === "gone") ctx.local = host.get("busy") ? BUSY : GONE;
      header.drawNotes();
      header.drawControls();
    });
  }

  function drawWaiting() {
    view.classList.add("dyn-waiting");
    header.drawProgress();
    header.drawNotes();
    header.drawControls();
  }

  function draw() {
    /** @type {ViewModel | null} */
    const content = host.get("content");
    if (!content) {
      drawWaiting();
      return;
    }
    view.classList.remove("dyn-waiting");
    ctx.content = content;
    view.setAttribute("role", "region");
    view.setAttribute("aria-label", `dynascope view: ${content.headline.slice(0, 300)}`);
    sourceTitle.textContent = content.sources.length === 1 ? `Source · ${content.sources[0].label}` : "Source";
    source.hidden = !content.sources.length;
    split.node.hidden = !content.split.svg;
    middle.classList.toggle("dyn-alone", source.hidden);
    middle.hidden = source.hidden && split.node.hidden;
    for (const part of [header, ...parts]) part.draw(content);
    selected = [host.get("selected"), selected, content.first].find((id) => id && content.details[id]) || "";
    highlight(shown.id !== selected); // a report that grows does not scroll what the user looks at
  }

  view.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    const stop = /** @type {SVGElement | null} */ (split.node.querySelector('.dyn-node[tabindex="0"]'));
    if (stop && detail.node.contains(document.activeElement)) stop.focus();
    event.stopPropagation();
  });
  const stops = [
    host.on("content", draw),
    host.on("selected", () => {
      const id = host.get("selected");
      if (id === selected || !ctx.has(id)) return;
      selected = id;
      highlight();
    }),
    host.on("now", header.drawProgress),
    host.on("settings", clearPending),
    host.on("can_run_again", redrawDetail),
  ];
  for (const name of ["settings", "busy", "can_run_again", "command"]) {
    const update = () => {
      header.drawControls();
      header.drawNotes();
      advice.drawButton();
      check.drawButton();
    };
    stops.push(host.on(name, update));
  }
  for (const name of ["status", "edited", "diff", "printed"]) {
    const update = () => {
      ctx.local = "";
      header.drawNotes();
    };
    stops.push(host.on(name, update));
  }

  // Called when the connection changes: if the kernel does not answer, the view says that it is gone.
  async function checkKernel() {
    const answer = await host.ask({ kind: "ping" }, PATIENCE);
    if (answer !== "gone" || ctx.gone) return;
    ctx.gone = true;
    ctx.local = GONE;
    draw();
  }
  if (host.connection) stops.push(host.connection(checkKernel));

  /** Show what an address links to. @param {string} hash */
  function follow(hash) {
    const link = parseLink(hash);
    if (!link) return;
    /** @type {ViewModel | null} */
    const content = host.get("content");
    const at = content?.details[link.id];
    if (at && link.part) detail.choose(at.kind, link.part);
    selected = link.id;
    shown = { id: "", content: null };
    if (ctx.has(link.id)) highlight();
  }
  if (host.hash) follow(host.hash(follow));
  draw();
  return () => {
    stopTheme();
    header.stop();
    split.stop();
    for (const stop of stops) stop();
  };
}

/**
 * The host in a notebook: traits of the Python side, and messages with answers.
 * @param {WidgetModel} model
 * @returns {Host}
 */
function widgetHost(model) {
  let next = 0;
  /** @type {ViewModel | null} */
  let content = null;
  let turn = 0;
  /** @type {Map<string, (answer: string) => void>} */
  const waiting = new Map();
  /** @type {Set<() => void>} */
  const draws = new Set();

  // A large model is compressed; if a newer one arrives while it is unpacked, only the newer one is drawn.
  const read = () => {
    const given = model.get("content");
    const mine = ++turn;
    const use = (/** @type {ViewModel | null} */ whole) => {
      if (mine !== turn) return;
      content = whole;
      for (const draw of draws) draw();
    };
    if (given?.gzip) unzipped(given.gzip).then(use);
    else use(given);
  };
  model.on("change:content", read);
  read();

  const receive = (/** @type {{ kind?: string, id?: string } | null} */ message) => {
    if (message?.kind === "ack") waiting.get(String(message.id))?.("done");
  };
  model.on("msg:custom", receive);

  return {
    live: true,
    get: (name) => (name === "content" ? content : model.get(name)),
    set(name, value) {
      model.set(name, value);
      try {
        model.save_changes();
      } catch {
        // no kernel: the selection still works in the browser
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
      const kernel = model.widget_manager?.kernel;
      if (!kernel?.interrupt) return false;
      kernel.interrupt();
      return true;
    },
    ask: (message, patience) =>
      new Promise((resolve) => {
        const id = `${Date.now()}-${next++}`;
        const settle = (/** @type {string} */ answer) => {
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
      model.off("msg:custom", receive);
      model.off("change:content", read);
    },
  };
}

/**
 * In a page: it contains the data, there is no kernel, the address follows the selection.
 * @param {ViewModel} content
 * @returns {Host}
 */
export function pageHost(content) {
  /** @type {Record<string, unknown>} */
  const values = { content, selected: "", settings: content.settings, busy: false, can_run_again: false };
  let timer = 0;
  return {
    live: false,
    get: (name) => values[name],
    set(name, value) {
      values[name] = value;
    },
    on: () => () => {},
    link(hash) {
      // in a timer, because browsers are slow to replace the address
      clearTimeout(timer);
      timer = setTimeout(() => history.replaceState(null, "", hash));
    },
    hash(act) {
      addEventListener("hashchange", (event) => {
        // The event's own address: on a busy machine, the timer of `link` may have replaced that of the page since.
        clearTimeout(timer);
        history.replaceState(null, "", event.newURL);
        act(new URL(event.newURL).hash);
      });
      return location.hash;
    },
    ask: async () => "gone",
    close: () => {},
  };
}

/**
 * anywidget's entry point.
 * @param {{ model: WidgetModel, el: HTMLElement }} widget
 */
export function render({ model, el }) {
  el.classList.add("dyn-widget");
  if (model.get("selected") === undefined) return renderJob(model, el);
  const host = widgetHost(model);
  const stop = mount(el, host);
  const fallback = model.get("fallback");
  // Found by its class: where the two outputs stand in the page differs from host to host.
  if (fallback) el.append(h("style", { text: `.${fallback}, ${OUTPUT}:has(.${fallback}) { display: none }` }));
  return () => {
    stop();
    host.close();
  };
}

/**
 * The view in a page, without a kernel.
 * @param {HTMLElement} root
 * @param {ViewModel} content
 */
export function mountPage(root, content) {
  return mount(root, pageHost(content));
}

/**
 * The view of a group's report, whose selection is not in the address.
 * @param {HTMLElement} root
 * @param {ViewModel} content
 * @param {string} selected
 */
function mountGroup(root, content, selected) {
  const host = { ...pageHost(content), hash: undefined, link: () => {} };
  host.set("selected", selected);
  return mount(root, host);
}

/**
 * The view of a job (`RanksView`), whose data do not change.
 * @param {WidgetModel} model
 * @param {HTMLElement} el
 */
function renderJob(model, el) {
  const given = model.get("content");
  const content = given.gzip ? unzipped(given.gzip) : Promise.resolve(given);
  const stop = content.then((job) => mountJob(el, job, mountGroup));
  return () => void stop.then((end) => end());
}

/** The page that widgets/render/page.py writes: its data are in `#dyn-data`, compressed where they are large. */
export async function openPage() {
  const element = (/** @type {string} */ id) => /** @type {HTMLElement} */ (document.getElementById(id));
  const data = element("dyn-data");
  const text = String(data.textContent);
  const content = data.dataset.packed === "gzip" ? await unzipped(text) : JSON.parse(text);
  const root = element("dyn-view");
  return content.views ? mountJob(root, content, mountGroup) : mountPage(root, content);
}

export default { render };
