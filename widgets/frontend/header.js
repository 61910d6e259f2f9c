// The header: headline, what stands out, progress, controls, notes, and what changed since the previous run.

import { button, h } from "./dom.js";
import { copyButton } from "./detail.js";
import { clock, plural } from "./logic.js";
import { marksView } from "./marks.js";

/** @import { Context } from "./view" */
/** @import { Chip, ViewModel } from "./wire" */
/** @typedef {[value: unknown, text: string]} Option */

const BACKENDS = ["inductor", "aot_eager", "eager", "cudagraphs"];
// What the settings offer besides the backend.
/** @type {Option[]} */
const DYNAMIC = [
  [null, "auto"],
  [true, "true"],
  [false, "false"],
];
/** @type {Option[]} */
const DEVICES = [
  [null, "default"],
  ["cpu", "cpu"],
  ["cuda", "cuda"],
];
// Elements of the controls that can have the focus.
const CONTROLS = "button,select,input";

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
    number ? h("strong", { text: number }) : "",
    number && word ? " " : "",
    word,
  ]);
  return [h("b", heading), " ", h("span", { cls: "dyn-counts" }, ...words)];
}

/**
 * The settings as chips, where there are no controls that show them.
 * @param {Record<string, unknown>} settings
 * @returns {Chip[]}
 */
function settingChips(settings) {
  const names = ["backend", "mode", "device", "fullgraph", "error_on_graph_break"].filter((name) => settings[name]);
  return names.map((name) => {
    const value = settings[name];
    return { text: value === true ? name : String(value).slice(0, 60), kind: "plain" };
  });
}

/** @param {Context} ctx */
export function headerView(ctx) {
  const { host, pending } = ctx;
  const title = h("div", { cls: "dyn-title" });
  const chips = h("div", { cls: "dyn-chips" });
  const progress = h("div", { cls: "dyn-progress", role: "status" });
  const controls = h("div", { cls: "dyn-controls", role: "group", "aria-label": "controls" });
  const notes = h("div", { cls: "dyn-status", role: "status", "aria-live": "polite" });
  const changes = h("div", { cls: "dyn-diff" });
  const printed = h("div", { cls: "dyn-printed" });
  const head = h("div", { cls: "dyn-head" }, title, progress, chips, marksView());
  const node = h("header", { cls: "dyn-top" }, head, controls, notes, changes, printed);
  let timer = 0;
  /** Whether the field for the path to save at is shown. */
  let saving = false;

  /** The value of a setting at the last run. @param {string} name */
  const given = (name) => {
    const value = (host.get("settings") || {})[name];
    return value === undefined ? null : value;
  };
  /** The value of a setting at the next run. @param {string} name */
  const value = (name) => (name in pending.settings ? pending.settings[name] : given(name));
  /** @type {(name: string, to: unknown) => void} */
  const change = (name, to) => {
    pending.set(name, to, given(name));
    ctx.changed();
  };
  /** @param {string} name */
  const changedClass = (name) => (name in pending.settings ? " dyn-changed" : "");

  /** A switch of a setting that is on or off. @param {string} name */
  function toggle(name) {
    const on = value(name) === true;
    const off = given(name) === null ? null : false;
    const inactive = name === "error_on_graph_break" && value("fullgraph") === true;
    const cls = `dyn-switch${changedClass(name)}${inactive ? " dyn-inactive" : ""}`;
    const title = inactive ? "has no effect: fullgraph takes precedence" : null;
    const flip = () => change(name, on ? off : true);
    return button(cls, name, flip, { role: "switch", "aria-checked": String(on), title });
  }

  /** A setting with several values. @type {(name: string, options: Option[]) => HTMLElement} */
  function choice(name, options) {
    const now = value(name);
    const list = h("select", { "aria-label": name, cls: `dyn-select${changedClass(name)}` });
    /** @type {Option[]} */
    const all = options.some(([v]) => v === now) ? options : [[now, String(now)], ...options];
    for (const [v, text] of all) {
      const option = h("option", { text });
      option.selected = v === now;
      list.append(option);
    }
    list.addEventListener("change", () => change(name, all[list.selectedIndex][0]));
    return h("label", { cls: "dyn-choice" }, h("span", { text: name }), list);
  }

  function settingControls() {
    if (!Object.keys(host.get("settings") || {}).length) return [];
    return [
      toggle("fullgraph"),
      toggle("error_on_graph_break"),
      choice(
        "backend",
        BACKENDS.map((name) => [name, name]),
      ),
      choice("dynamic", DYNAMIC),
      choice("device", DEVICES),
    ];
  }

  function runControls() {
    const busy = Boolean(host.get("busy") && !ctx.gone);
    const { count } = pending;
    const text = count ? `Run again (${plural(count, "change")})` : "Run again";
    const run = button("dyn-btn dyn-primary", text, () => ctx.request(pending.request()));
    run.disabled = busy;
    const fix = ctx.fixButton();
    if (fix) fix.disabled = busy;
    const all = fix ? [fix, run] : [run];
    return busy ? [...all, button("dyn-btn", "Stop", () => ctx.request({ kind: "stop" }))] : all;
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
      const field = controls.querySelector("input");
      if (field) field.focus();
    };
    const title = "save as .html, .json, .svg, .dot or .txt";
    const submit = button("dyn-btn", "Save", () => (saving ? save() : ask()), { title });
    return saving ? [path, submit] : [submit];
  }

  /** The regions that are pending; a click removes one. */
  function regionChips() {
    return [...pending.regions].map(([target, set]) => {
      const text = `${target}: ${set} ×`;
      const undo = () => {
        pending.region(target, set);
        ctx.changed();
      };
      return button("dyn-chip dyn-changed", text, undo, { title: "undo this change" });
    });
  }

  function drawControls() {
    const at = [...controls.querySelectorAll(CONTROLS)].findIndex((control) => control === document.activeElement);
    const can = ctx.canRun();
    const parts = can ? [...settingControls(), h("span", { cls: "dyn-spacer" }), ...runControls()] : [];
    if (host.live && !ctx.gone) parts.push(...saveControls());
    const command = host.get("command");
    const regions = regionChips();
    if (command && can) {
      parts.push(
        h("div", { cls: "dyn-command" }, ...regions, h("code", { text: command }), copyButton(command, "Copy")),
      );
    } else parts.push(...regions);
    controls.replaceChildren(...parts);
    controls.hidden = !parts.length;
    // without controls for settings, the others fit beside the headline
    if (can && controls.parentNode !== node) node.insertBefore(controls, notes);
    else if (!can && controls.parentNode !== head) head.append(controls);
    if (at >= 0) {
      const all = controls.querySelectorAll(CONTROLS);
      const next = /** @type {HTMLElement} */ (all[at] || controls.querySelector("button") || controls);
      next.focus();
    }
  }

  function drawProgress() {
    const now = host.get("now") || {};
    clearInterval(timer);
    progress.hidden = !("frames" in now) || ctx.gone;
    if (progress.hidden) return;
    const started = Date.now() - 1000 * (now.seconds || 0);
    const update = () => {
      const words = [
        now.stage || `compiling ${now.now || "…"}`,
        plural(now.frames, "frame"),
        plural(now.graphs, "graph"),
        plural(now.breaks, "break"),
        clock((Date.now() - started) / 1000),
      ];
      progress.replaceChildren(h("i", { cls: "dyn-spin" }), words.join(" · "));
    };
    update();
    timer = setInterval(() => {
      if (host.get("busy") && !ctx.gone) update();
      else clearInterval(timer);
    }, 500);
  }

  function drawNotes() {
    const status = host.get("status") || {};
    const lines = [];
    if (ctx.local) lines.push([ctx.local, "warning"]);
    else if (status.text) lines.push([status.text, status.kind]);
    if (host.get("edited")) lines.push(["the cell has been edited since this run", "warning"]);
    for (const text of ctx.content ? ctx.content.notes : []) lines.push([text, "note"]);
    notes.replaceChildren(
      ...lines.map(([text, kind]) => {
        const cls = `dyn-message dyn-message-${/^\w+$/.test(kind || "") ? kind : "note"}`;
        return h("div", { cls, text, tabindex: text.length > 300 ? "0" : null });
      }),
    );
    drawChanges();
    drawPrinted();
  }

  function drawChanges() {
    /** @type {{ summary: string, lines: string[], times: string } | null} */
    const diff = host.get("diff");
    if (!diff) {
      changes.replaceChildren();
      return;
    }
    const summary = h("summary", { text: `since the previous run: ${diff.summary}` });
    const items = [...diff.lines, diff.times].map((text) => h("li", { text }));
    changes.replaceChildren(h("details", {}, summary, h("ul", {}, ...items)));
  }

  function drawPrinted() {
    /** @type {{ type: string, text: string }[]} */
    const parts = host.get("printed") || [];
    const texts = parts.map(({ type, text }) =>
      h("pre", { cls: `dyn-o dyn-o-${type === "error" ? "error" : "stream"}`, text }),
    );
    const summary = h("summary", { text: "output of the run" });
    printed.replaceChildren(...(texts.length ? [h("details", { open: true }, summary, ...texts)] : []));
  }

  /** @param {ViewModel} content */
  function drawChips(content) {
    const facts = content.overview ? content.chips.filter(({ kind }) => kind === "error") : content.chips;
    const shown = [...facts, ...(host.get("can_run_again") ? [] : settingChips(content.settings))];
    chips.replaceChildren(
      ...shown.map(({ text, kind, id, full }) => {
        const cls = `dyn-chip dyn-c-${kind}`;
        return id ? button(cls, text, () => ctx.select(id), { title: full }) : h("span", { cls, text, title: full });
      }),
    );
    chips.hidden = !shown.length;
  }

  /** @param {ViewModel} content */
  function draw(content) {
    title.replaceChildren(...headline(content, host.live ? 2 : 1));
    drawChips(content);
    drawControls();
    drawProgress();
    drawNotes();
  }

  return { node, draw, drawControls, drawProgress, drawNotes, stop: () => clearInterval(timer) };
}
