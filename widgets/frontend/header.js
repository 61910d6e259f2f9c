// The header: headline, what stands out, progress, controls, what changed since the run before.

import { h } from "./dom.js";
import { clock } from "./logic.js";
import { copyButton } from "./detail.js";

const BACKENDS = ["inductor", "aot_eager", "eager", "cudagraphs"];

export function headerView(ctx) {
  const { host, pending } = ctx;
  const title = h("div", { cls: "dyn-title" });
  const chips = h("div", { cls: "dyn-chips" });
  const progress = h("div", { cls: "dyn-progress", role: "status" });
  const controls = h("div", { cls: "dyn-controls", role: "group", "aria-label": "controls" });
  const note = h("div", { cls: "dyn-status", role: "status", "aria-live": "polite" });
  const changes = h("div", { cls: "dyn-diff" });
  const printed = h("div", { cls: "dyn-printed" });
  const head = h("div", { cls: "dyn-head" }, title, progress, chips);
  const node = h("header", { cls: "dyn-top" }, head, controls, note, changes, printed);
  let started = 0,
    timer = 0,
    saving = false;

  const given = (name) => {
    const v = (host.get("settings") || {})[name];
    return v === undefined ? null : v;
  };
  const value = (name) => (name in pending.settings ? pending.settings[name] : given(name));
  const change = (name, to) => {
    pending.set(name, to, given(name));
    ctx.changed();
  };

  function toggle(name) {
    const on = value(name) === true,
      moot = name === "error_on_graph_break" && value("fullgraph") === true;
    return h("button", {
      cls: `dyn-switch${name in pending.settings ? " dyn-changed" : ""}${moot ? " dyn-moot" : ""}`,
      type: "button",
      role: "switch",
      "aria-checked": String(on),
      text: name,
      title: moot ? "has no effect: fullgraph wins" : null,
      onclick: () => change(name, on ? (given(name) === null ? null : false) : true),
    });
  }
  function choice(name, options) {
    const now = value(name),
      list = h("select", { "aria-label": name, cls: `dyn-select${name in pending.settings ? " dyn-changed" : ""}` });
    if (!options.some(([v]) => v === now)) options = [[now, String(now)], ...options];
    for (const [v, text] of options) {
      const option = h("option", { text });
      option.selected = v === now;
      list.append(option);
    }
    list.addEventListener("change", () => change(name, options[list.selectedIndex][0]));
    return h("label", { cls: "dyn-choice" }, h("span", { text: name }), list);
  }

  function drawControls() {
    const busy = host.get("busy") && !ctx.gone,
      can = ctx.canRun(),
      parts = [];
    const within = controls.contains(document.activeElement)
      ? [...controls.querySelectorAll("button,select,input")].indexOf(document.activeElement)
      : -1;
    const known = Object.keys(host.get("settings") || {}).length > 0;
    if (can) {
      if (known)
        parts.push(
          toggle("fullgraph"),
          toggle("error_on_graph_break"),
          choice(
            "backend",
            BACKENDS.map((b) => [b, b]),
          ),
          choice("dynamic", [
            [null, "auto"],
            [true, "true"],
            [false, "false"],
          ]),
          choice("device", [
            [null, "default"],
            ["cpu", "cpu"],
            ["cuda", "cuda"],
          ]),
        );
      parts.push(h("span", { cls: "dyn-spacer" }));
      const count = pending.count;
      const run = h("button", {
        cls: "dyn-btn dyn-primary",
        type: "button",
        text: count ? `Run again (${count} change${count > 1 ? "s" : ""})` : "Run again",
        onclick: () => ctx.request(pending.request()),
      });
      run.disabled = Boolean(busy);
      parts.push(run);
      if (busy)
        parts.push(
          h("button", { cls: "dyn-btn", type: "button", text: "Stop", onclick: () => ctx.request({ kind: "stop" }) }),
        );
    }
    if (host.live && !ctx.gone) {
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
      if (saving) parts.push(path);
      parts.push(
        h("button", {
          cls: "dyn-btn",
          type: "button",
          text: "Save",
          title: "save as .html, .json, .svg, .dot or .txt",
          onclick: () => {
            if (saving) save();
            else {
              saving = true;
              drawControls();
              path.focus();
            }
          },
        }),
      );
    }
    const command = host.get("command");
    const regions = [...pending.regions].map(([target, set]) =>
      h("button", {
        cls: "dyn-chip dyn-changed",
        type: "button",
        text: `${/^\d/.test(target) ? "line " : ""}${target}: ${set} ×`,
        title: "take this change back",
        onclick: () => {
          pending.region(target, set);
          ctx.changed();
        },
      }),
    );
    if (command && can)
      parts.push(
        h("div", { cls: "dyn-command" }, ...regions, h("code", { text: command }), copyButton(command, "Copy")),
      );
    else parts.push(...regions);
    controls.replaceChildren(...parts);
    if (can && controls.parentNode !== node) node.insertBefore(controls, note);
    else if (!can && controls.parentNode !== head) head.append(controls);
    controls.hidden = !parts.length;
    if (within >= 0)
      (
        controls.querySelectorAll("button,select,input")[within] ||
        controls.querySelector("button") ||
        controls
      ).focus();
  }

  function drawProgress() {
    const now = host.get("now") || {};
    clearInterval(timer);
    progress.hidden = !("frames" in now) || ctx.gone;
    if (progress.hidden) return;
    started = Date.now() - 1000 * (now.seconds || 0);
    const tell = () => {
      const n = (count, word) => `${count || 0} ${word}${count === 1 ? "" : "s"}`;
      progress.replaceChildren(
        h("i", { cls: "dyn-spin" }),
        `compiling ${now.now || "…"} · ${n(now.frames, "frame")} · ${n(now.graphs, "graph")} · ${n(now.breaks, "break")} · ${clock((Date.now() - started) / 1000)}`,
      );
    };
    tell();
    timer = setInterval(() => {
      if (host.get("busy") && !ctx.gone) tell();
      else clearInterval(timer);
    }, 500);
  }

  function drawNotes() {
    const status = host.get("status") || {};
    const lines = [];
    if (ctx.local) lines.push([ctx.local, "warning"]);
    else if (status.text) lines.push([status.text, status.kind]);
    if (host.get("edited")) lines.push(["the cell was edited since this run", "warning"]);
    for (const text of ctx.content ? ctx.content.notes : []) lines.push([text, "note"]);
    note.replaceChildren(
      ...lines.map(([text, kind]) =>
        h("div", {
          cls: `dyn-say dyn-say-${/^\w+$/.test(kind || "") ? kind : "note"}`,
          text,
          tabindex: text.length > 300 ? "0" : null,
        }),
      ),
    );
    const diff = host.get("diff");
    changes.replaceChildren(
      diff
        ? h(
            "details",
            {},
            h("summary", { text: `since the run before: ${diff.summary}` }),
            h("ul", {}, ...[...diff.lines, diff.times].map((text) => h("li", { text }))),
          )
        : "",
    );
    const out = host.get("printed") || [];
    printed.replaceChildren(
      ...(out.length
        ? [
            h(
              "details",
              { open: true },
              h("summary", { text: "output of the run" }),
              ...out.map((o) =>
                h("pre", { cls: `dyn-o dyn-o-${o.type === "error" ? "error" : "stream"}`, text: o.text }),
              ),
            ),
          ]
        : []),
    );
  }

  function draw(content) {
    title.replaceChildren(
      h("b", {
        role: "heading",
        "aria-level": host.live ? 2 : 1,
        text: content.name.length > 90 ? content.name.slice(0, 60) + "…" + content.name.slice(-28) : content.name,
        title: content.name,
      }),
      " ",
      h(
        "span",
        { cls: "dyn-counts" },
        ...content.counts.flatMap(([number, words], i) => [
          i ? " · " : "",
          number ? h("strong", { text: number }) : "",
          number && words ? " " : "",
          words,
        ]),
      ),
    );
    const settings = content.settings,
      fixed = [];
    if (!host.get("can_run_again")) {
      for (const name of ["backend", "mode", "device"])
        if (settings[name]) fixed.push({ text: String(settings[name]).slice(0, 60), kind: "plain" });
      for (const name of ["fullgraph", "error_on_graph_break"])
        if (settings[name]) fixed.push({ text: name, kind: "plain" });
    }
    chips.replaceChildren(
      ...[...content.chips, ...fixed].map((c) =>
        c.id
          ? h("button", {
              cls: `dyn-chip dyn-c-${c.kind}`,
              type: "button",
              text: c.text,
              title: c.full,
              onclick: () => ctx.select(c.id),
            })
          : h("span", { cls: `dyn-chip dyn-c-${c.kind}`, text: c.text, title: c.full }),
      ),
    );
    chips.hidden = !chips.children.length;
    drawControls();
    drawProgress();
    drawNotes();
  }
  return { node, draw, drawControls, drawProgress, drawNotes, stop: () => clearInterval(timer) };
}
