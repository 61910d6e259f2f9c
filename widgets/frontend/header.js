// The header: headline, what stands out, progress, controls, notes, and what changed since the previous run.

import { button, h } from "./dom.js";
import { copyButton } from "./detail.js";
import { clock, plural } from "./logic.js";
import { marksView } from "./marks.js";

/** @import { Context } from "./view" */
/** @import { ViewModel } from "./wire" */
/** @typedef {[value: unknown, text: string]} Option */

// The settings of the next run, with their values; one without a list is on or off.
/** @type {[name: string, options: Option[] | null][]} */
const SETTINGS = [
  ["backend", ["inductor", "aot_eager", "eager", "cudagraphs"].map((name) => [name, name])],
  ["fullgraph", null],
  ["error_on_graph_break", null],
  ["dynamic", [[null, "auto"], [true, "true"], [false, "false"]]], // prettier-ignore
  ["device", [[null, "default"], ["cpu", "cpu"], ["cuda", "cuda"]]], // prettier-ignore
];
// Elements of the toolbar that can have the focus.
const CONTROLS = "button,select,input,summary";

/**
 * A name that is cut in its middle where it is long.
 * @param {string} name
 */
const shortened = (name) => (name.length > 90 ? name.slice(0, 60) + "…" + name.slice(-28) : name);

/**
 * The headline: the name, and the counts with their numbers in bold.
 * @param {ViewModel} content
 * @param {number} level of the heading
 */
function headline({ name, counts }, level) {
  const heading = { role: "heading", "aria-level": level, text: shortened(name), title: name };
  const words = counts.flatMap(([number, word], i) => [
    i ? " · " : "",
    h("span", {}, number && h("strong", { text: number }), number && word ? ` ${word}` : word),
  ]);
  return [h("b", heading), " ", h("span", { cls: "dyn-counts" }, ...words)];
}

/** The settings that say how code was compiled, in words. @param {Record<string, unknown>} settings */
const settingWords = (settings) =>
  ["backend", "mode", "device", "fullgraph", "error_on_graph_break"]
    .filter((name) => settings[name])
    .map((name) => (settings[name] === true ? name : String(settings[name]).slice(0, 60)));

/** @param {Context} ctx */
export function headerView(ctx) {
  const { host, pending } = ctx;
  const title = h("div", { cls: "dyn-title" });
  const chips = h("div", { cls: "dyn-chips" });
  const progress = h("div", { cls: "dyn-progress", role: "status" });
  const settings = foldable("dyn-settings");
  const notes = foldable("dyn-notes");
  const actions = h("div", { cls: "dyn-actions", role: "group", "aria-label": "controls" });
  const status = h("div", { cls: "dyn-status", role: "status", "aria-live": "polite" });
  const command = h("div", { cls: "dyn-command" });
  const changes = foldable("dyn-diff");
  const printed = foldable("dyn-printed");
  const toolbar = h("div", { cls: "dyn-toolbar" }, actions, settings.node, notes.node, marksView());
  const head = h("div", { cls: "dyn-head" }, title, progress, chips);
  const node = h("header", { cls: "dyn-top" }, head, toolbar, command, status, changes.node, printed.node);
  let timer = 0;
  /** Whether the field for the path to save at is shown. */
  let saving = false;

  /** The value of a setting at the last run. @param {string} name */
  const given = (name) => (host.get("settings") || {})[name] ?? null;
  /** The value of a setting at the next run. @param {string} name */
  const value = (name) => (name in pending.settings ? pending.settings[name] : given(name));

  /** A setting with several values, or one that is on or off. @type {(name: string, options: Option[] | null) => HTMLElement} */
  function choice(name, options) {
    const now = value(name);
    const changed = name in pending.settings ? " dyn-changed" : "";
    const change = (/** @type {unknown} */ to) => {
      pending.set(name, to, given(name));
      ctx.changed();
    };
    if (!options) {
      const unused = name === "error_on_graph_break" && value("fullgraph") === true;
      const box = h("input", { type: "checkbox" });
      box.checked = now === true;
      box.addEventListener("change", () => change(box.checked || (given(name) === null ? null : false)));
      const hint = unused && "has no effect: fullgraph takes precedence";
      return h("label", { cls: `dyn-choice${changed}${unused ? " dyn-inactive" : ""}`, title: hint }, box, name);
    }
    const list = h("select", { "aria-label": name, cls: `dyn-select${changed}` });
    const all = options.some(([v]) => v === now) ? options : [/** @type {Option} */ ([now, String(now)]), ...options];
    for (const [v, text] of all) list.append(h("option", { text, selected: v === now }));
    list.addEventListener("change", () => change(all[list.selectedIndex][0]));
    return h("label", { cls: "dyn-choice" }, name, list);
  }

  function runControls() {
    const busy = Boolean(host.get("busy") && !ctx.gone);
    const { count } = pending;
    const text = count ? `Run again (${plural(count, "change")})` : "Run again";
    const run = button("dyn-btn dyn-primary", text, () => ctx.request(pending.request()), { disabled: busy });
    const fix = ctx.fixButton();
    if (fix) fix.disabled = busy;
    return [run, fix, busy && button("dyn-btn", "Stop", () => ctx.request({ kind: "stop" }))];
  }

  function saveControls() {
    const path = h("input", { cls: "dyn-search", "aria-label": "path of the report", type: "text" });
    path.value = "report.html";
    const save = () => {
      saving = false;
      ctx.request({ kind: "save", path: path.value });
      drawControls();
    };
    path.addEventListener("keydown", (event) => {
      if (event.key === "Enter") save();
      event.stopPropagation();
    });
    const ask = () => {
      saving = true;
      drawControls();
      actions.querySelector("input")?.focus();
    };
    const title = "save as .html, .json, .svg, .dot or .txt";
    return [saving && path, button("dyn-btn", "Save", () => (saving ? save() : ask()), { title })];
  }

  /** The regions that are pending; a click removes one. */
  function regionChips() {
    return [...pending.regions].map(([target, set]) => {
      const undo = () => {
        pending.region(target, set);
        ctx.changed();
      };
      return button("dyn-chip dyn-changed", `${target}: ${set} ×`, undo, { title: "undo this change" });
    });
  }

  function drawControls() {
    const at = [...toolbar.querySelectorAll(CONTROLS)].findIndex((control) => control === document.activeElement);
    const can = ctx.canRun();
    const known = host.get("settings") || {};
    const buttons = [can && runControls(), host.live && !ctx.gone && saveControls()].flat().filter((part) => !!part);
    const fixed = can || !ctx.content ? [] : settingWords(ctx.content.settings);
    const facts = fixed.map((text) => h("span", { cls: "dyn-chip", text }));
    actions.replaceChildren(...buttons, ...regionChips(), ...facts);
    actions.hidden = !actions.firstChild;
    const shown = can && Object.keys(known).length > 0;
    const words = ["Settings", ...settingWords(known).slice(0, 1)].join(": ");
    settings.show(words, shown ? SETTINGS.map(([name, options]) => choice(name, options)) : []);
    const line = can ? host.get("command") : "";
    command.replaceChildren(...(line ? [h("code", { text: line }), copyButton(line, "Copy")] : []));
    const all = /** @type {NodeListOf<HTMLElement>} */ (toolbar.querySelectorAll(CONTROLS));
    if (at >= 0) (all[at] || all[0]).focus();
  }

  function drawProgress() {
    const now = host.get("now") || {};
    clearInterval(timer);
    progress.hidden = !("frames" in now) || ctx.gone;
    if (progress.hidden) return;
    const started = Date.now() - 1000 * (now.seconds || 0);
    const update = () => {
      const compiling = [`compiling ${now.now || "…"}`, plural(now.frames, "frame"), plural(now.graphs, "graph")];
      const words = [...(now.stage ? [now.stage] : compiling), clock((Date.now() - started) / 1000)];
      progress.replaceChildren(h("i", { cls: "dyn-spin" }), words.join(" · "));
    };
    update();
    timer = setInterval(() => {
      if (host.get("busy") && !ctx.gone) update();
      else clearInterval(timer);
    }, 500);
  }

  function drawNotes() {
    const { text = "", kind = "" } = ctx.local ? { text: ctx.local, kind: "warning" } : host.get("status") || {};
    const lines = [[text, /^\w+$/.test(kind) ? kind : "note"]];
    if (host.get("edited")) lines.push(["the cell has been edited since this run", "warning"]);
    const said = lines.filter(([text]) => text);
    status.replaceChildren(
      ...said.map(([text, kind]) => {
        const tabindex = text.length > 300 ? "0" : null;
        return h("div", { cls: `dyn-message dyn-message-${kind}`, text, tabindex });
      }),
    );
    const remarks = ctx.content ? ctx.content.notes : [];
    notes.show(
      plural(remarks.length, "note"),
      remarks.map((text) => h("p", { text })),
    );
    /** @type {{ summary: string, lines: string[], times: string } | null} */
    const diff = host.get("diff");
    const items = diff ? [...diff.lines, diff.times].map((text) => h("li", { text })) : [];
    changes.show(`since the previous run: ${diff?.summary}`, items.length ? [h("ul", {}, ...items)] : []);
    /** @type {{ type: string, text: string }[]} */
    const parts = host.get("printed") || [];
    printed.show(
      "output of the run",
      parts.map(({ type, text }) => h("pre", { cls: `dyn-o${type === "error" ? " dyn-o-error" : ""}`, text })),
    );
    printed.node.open = true;
  }

  /** @param {ViewModel} content */
  function draw(content) {
    title.replaceChildren(...headline(content, host.live ? 2 : 1));
    const facts = content.overview ? content.chips.filter(({ kind }) => kind === "error") : content.chips;
    chips.replaceChildren(
      ...facts.map(({ text, kind, id, full }) => {
        const cls = `dyn-chip dyn-c-${kind}`;
        return id ? button(cls, text, () => ctx.select(id), { title: full }) : h("span", { cls, text, title: full });
      }),
    );
    drawControls();
    drawProgress();
    drawNotes();
  }

  return { node, draw, drawControls, drawProgress, drawNotes, stop: () => clearInterval(timer) };
}

/** A folded line, hidden while there is nothing in it. @param {string} cls */
function foldable(cls) {
  const [summary, body] = [h("summary"), h("div")];
  const node = h("details", { cls, hidden: true }, summary, body);
  /** @type {(text: string, parts: HTMLElement[]) => void} */
  const show = (text, parts) => {
    summary.textContent = text;
    body.replaceChildren(...parts);
    node.hidden = !parts.length;
  };
  return { node, show };
}
