// The detail of what is selected: facts, and parts as tabs, each with a link of its own.

import { copyText, h, roving } from "./dom.js";
import { fxView } from "./fx.js";
import { paintCode } from "./lens.js";
import { linkTo, sourceText } from "./logic.js";

// `words` between backquotes become code.
function prose(text) {
  return text.split("`").map((part, i) => (i % 2 ? h("code", { text: part }) : part));
}

const PAINTED = 40_000;

function codePart({ text, lang, start }) {
  const pre = h("pre", { cls: lang === "prose" ? "dyn-code dyn-wrap" : "dyn-code", tabindex: "0" });
  if (lang !== "python" || text.length > PAINTED) pre.textContent = text;
  else {
    let open = "";
    const lines = text.split("\n");
    lines.forEach((line, i) => {
      const box = h("span", start ? { "data-n": start + i, cls: "dyn-cl" } : {});
      open = paintCode(box, line, [], open);
      pre.append(box, i + 1 < lines.length ? "\n" : "");
    });
  }
  return pre;
}

export function copyButton(text, label) {
  const button = h("button", { cls: "dyn-btn", type: "button", text: label });
  button.addEventListener("click", async () => {
    button.textContent = (await copyText(text)) ? "copied" : "could not copy";
    setTimeout(() => { button.textContent = label; }, 1500);
  });
  return button;
}

// A graph on its own: a button where somebody can run it, and what the last run gave.
function runBody(body, ctx) {
  const devices = ctx.host.get("devices") || [], on = h("select", { "aria-label": "device", cls: "dyn-select" }, h("option", { value: "", text: "as recorded" }), ...devices.map((d) => h("option", { value: d, text: d })));
  const run = () => ctx.request({ kind: "run_graph", graph: body.graph, device: on.value || null });
  return h("div", { cls: "dyn-prose dyn-run" }, ...body.text.map((t) => h("p", { text: t })),
    h("div", { cls: "dyn-row" }, ctx.canRun() ? [h("button", { cls: "dyn-btn dyn-primary", type: "button", text: body.groups.length ? "Run it again" : "Run this graph", onclick: run }), devices.length > 1 ? on : null] : null,
      h("code", { text: body.code }), copyButton(body.code, "Copy")),
    ...body.groups.map((g) => h("div", {}, h("h3", { text: g.title }), ...g.bars.map((b) => h("div", { cls: "dyn-figure" },
      h("span", { text: b.label }), h("i", { style: `--h:${b.part}%` }), h("b", { text: b.value }))))));
}

function partBody(part, ctx, name, open) {
  const { body } = part;
  if (part.kind === "code") return codePart(body);
  if (part.kind === "source") return codePart({ text: sourceText(ctx.content.lens, body), lang: "python", start: body.start });
  if (part.kind === "graph") return fxView(body, ctx.point, name, open);
  if (part.kind === "run") return runBody(body, ctx);
  if (part.kind === "issue") return h("div", {}, h("div", { cls: "dyn-row" }, copyButton(body, "Copy text for an issue")), h("pre", { cls: "dyn-code dyn-wrap", tabindex: "0", text: body }));
  if (part.kind === "prose") {
    return h("div", { cls: "dyn-prose" }, ...body.text.map((t) => h("p", {}, ...prose(t))),
      body.todo.length ? [h("h3", { text: "What to do" }), h("ul", {}, ...body.todo.map((t) => h("li", {}, ...prose(t))))] : null,
      ...body.code.map((t) => h("pre", { cls: "dyn-code dyn-wrap", text: t })));
  }
  if (part.kind === "stack") {
    return h("ol", { cls: "dyn-stack" }, ...body.map((e) => h("li", {},
      h("button", { cls: "dyn-link", type: "button", text: e.place, onclick: () => ctx.point(e.file, e.line) }), ` in ${e.function}`, e.source ? h("code", { text: e.source }) : null)));
  }
  return h("table", { cls: "dyn-table" }, h("tbody", {}, ...body.map(([a, b, c, id]) => h("tr", {},
    h("td", {}, id && ctx.has(id) ? h("button", { cls: "dyn-link", type: "button", text: a, onclick: () => ctx.select(id) }) : h("span", { cls: "dyn-monot", text: a })),
    h("td", { cls: "dyn-monot", text: b }), h("td", { text: c })))));
}

const MARKS = { break: "✂", graph: "▦", skipped: "–", failed: "✗", empty: "∅", resume: "↳", autograd: "↶", fold: "⋯" };

export function detailView(ctx) {
  const node = h("section", { cls: "dyn-detail", "aria-label": "detail", tabindex: "-1" });
  const chosen = new Map(), opened = new Map();
  let id = "", content = null;

  function tabs(detail) {
    const list = h("div", { cls: "dyn-tabs", role: "tablist", "aria-label": "parts" });
    const panel = h("div", { cls: "dyn-panel", role: "tabpanel" });
    const want = chosen.get(detail.kind);
    const mark = roving(list, ".dyn-tab", { vertical: false, enter: (tab) => tab.click() });
    const show = (part, focus) => {
      for (const tab of list.children) {
        const on = tab.dataset.key === part.key;
        tab.setAttribute("aria-selected", String(on));
        if (on) mark(tab);
        if (on && focus) tab.focus();
      }
      panel.setAttribute("aria-label", part.name);
      panel.replaceChildren(partBody(part, ctx, `${detail.title} ${detail.code}`, opened.get(id)));
    };
    for (const part of detail.parts) {
      list.append(h("a", { cls: "dyn-tab", role: "tab", tabindex: "-1", "data-key": part.key, href: linkTo(id, part.key), text: part.name, onclick: (event) => {
        event.preventDefault();
        chosen.set(detail.kind, part.key);
        ctx.link(id, part.key);
        show(part, true);
      } }));
    }
    const first = detail.parts.find((p) => p.key === want) || detail.parts[0];
    if (first) show(first);
    return [list, panel];
  }

  function switches(detail) {
    if (!ctx.canRun() || !detail.target || !["break", "function", "skipped", "failed", "unfinished", "statements"].includes(detail.kind)) return null;
    const where = detail.kind === "break" ? "here" : "in this function";
    const box = h("div", { cls: "dyn-switches", role: "group", "aria-label": `error_on_graph_break ${where}` });
    for (const [set, word] of [["allow", "Allow"], ["error", "Error"]]) {
      const on = ctx.pending.regions.get(detail.target) === set;
      box.append(h("button", { cls: "dyn-btn", type: "button", "aria-pressed": String(on), "data-set": set, text: `${word} ${where}`, title: `${set === "allow" ? "allow graph breaks" : "fail at a graph break"} ${where}, at the next run`,
        onclick: () => { ctx.pending.region(detail.target, set); ctx.changed(); node.querySelector(`.dyn-switches [data-set=${set}]`).focus(); } }));
    }
    return box;
  }

  function show(model, which) {
    [content, id] = [model, which];
    if (!opened.has(id)) opened.set(id, new Set());
    const detail = content.details[id];
    node.hidden = false;
    if (!detail) {
      node.replaceChildren(h("p", { cls: "dyn-hint", text: Object.keys(content.details).length ? "Select a line of the source or a part of the split graph." : ctx.host.get("busy") ? "Nothing was compiled yet." : "Nothing was compiled." }));
      return;
    }
    const facts = h("dl", { cls: "dyn-facts" }, ...detail.facts.map(([label, value, other], i) => [h("dt", { text: i && detail.facts[i - 1][0] === label ? "" : label.trim(), cls: label.startsWith(" ") ? "dyn-sub" : null }),
      h("dd", {}, other && ctx.has(other) ? h("button", { cls: "dyn-link", type: "button", text: value, onclick: () => ctx.select(other) }) : value)]));
    const links = (detail.links || []).map(([name, url]) => h("a", { cls: "dyn-out", href: url, target: "_blank", rel: "noopener noreferrer", text: `${name} ↗` }));
    node.replaceChildren(
      h("div", { cls: `dyn-dhead dyn-d-${detail.kind}` },
        h("h2", { cls: "dyn-dtitle" }, h("span", { cls: "dyn-dkind", text: `${MARKS[detail.kind] || "▢"} ${detail.title}` }), detail.code ? [" ", h("code", { text: detail.code })] : null),
        h("div", { cls: "dyn-where" }, h("span", { text: detail.place }), detail.copy ? copyButton(detail.copy, "Copy place") : null, switches(detail), ...links)),
      h("div", { cls: "dyn-dbody" }, h("div", { cls: "dyn-dmain" }, ...(detail.parts.length ? tabs(detail) : [])), facts));
  }
  return { node, show, choose: (kind, part) => chosen.set(kind, part) };
}
