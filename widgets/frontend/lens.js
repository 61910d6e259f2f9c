// The source lens: lines of source, coloured and numbered by the graph that captured them.

import { h, lamp, reveal, roving } from "./dom.js";
import { tokenize, withMarks } from "./tokens.js";

const TONES = 6;
const NOTES = { skipped: "skipped", failed: "failed", empty: "empty", unfinished: "unfinished" };

export function paintCode(box, text, marks = [], open = "") {
  const painted = tokenize(text, open);
  for (const piece of withMarks(painted.tokens, marks)) {
    const cls = [piece.kind && `dyn-t-${piece.kind}`, piece.mark && `dyn-mark dyn-mark-${piece.mark.outcome}`].filter(Boolean).join(" ");
    box.append(cls ? h("span", { cls, text: piece.text, "data-id": piece.mark && piece.mark.id }) : piece.text);
  }
  return painted.open;
}

function badge(line) {
  const box = h("span", { cls: "dyn-badge" });
  const put = (text, cls) => box.append(h("b", { cls, text }));
  if (line.marks) put("✂", "dyn-b-break");
  const graphs = line.graphs || [];
  for (const n of graphs.slice(0, line.marks || graphs.length > 2 ? 1 : 2)) put(String(n), `dyn-b-g${n % TONES}`);
  if (graphs.length > 2) put("+" + (graphs.length - 1), "dyn-b-more");
  if (!line.marks && !graphs.length && line.state && line.state !== "empty") put(line.state === "unfinished" ? "…" : "–", "dyn-b-skip");
  return box;
}

function row(line, previous, box) {
  const graphs = line.graphs || [];
  const state = line.marks ? "break" : line.state || "";
  const tone = state === "graph" ? `dyn-l-g${graphs[0] % TONES}` : state ? `dyn-l-${state}` : "";
  const first = !previous || previous.state !== line.state || previous.id !== line.id;
  const note = line.marks ? line.reason : first ? NOTES[state] || "" : "";
  const code = h("code");
  box.open = paintCode(code, line.text, line.marks || [], box.open);
  return h("div", { cls: `dyn-ln ${tone}`, role: "option", "aria-selected": "false", tabindex: "-1", title: line.reason, "data-line": line.line, "data-id": line.marks ? line.marks[0].id : line.id },
    h("span", { cls: `dyn-no${line.region ? ` dyn-in-${line.region[0]}` : ""}`, title: line.region && line.region[1], text: line.line }), badge(line), code, note ? h("span", { cls: "dyn-note", text: note }) : h("span"));
}

export function lensView(select) {
  const box = h("div", { cls: "dyn-src", role: "listbox", "aria-label": "source lines" });
  const open = (node, event) => {
    const mark = event && event.target.closest(".dyn-mark");
    const id = (mark && mark.dataset.id) || node.dataset.id;
    if (id) select(id);
  };
  const mark = roving(box, ".dyn-ln", { enter: (node) => open(node) });
  box.addEventListener("click", (event) => {
    const node = event.target.closest(".dyn-ln");
    if (node && !String(getSelection())) open(node, event);
  });
  let rows = [];
  const lamps = lamp("aria-selected");
  return {
    node: box,
    draw(content) {
      rows = [];
      const parts = [];
      for (const file of content.lens) {
        const state = { open: "" };
        let previous = null;
        const lines = file.lines.map((line) => {
          if (line.gap) state.open = "";
          const node = row(line, line.gap ? null : previous, state);
          rows.push({ node, line, file: file.file });
          previous = line;
          return line.gap ? [h("div", { cls: "dyn-gap", role: "presentation", text: `⋯ ${line.gap} lines` }), node] : node;
        });
        parts.push(h("div", { role: "group", "aria-label": file.label }, content.lens.length > 1 ? h("div", { cls: "dyn-file", title: file.file, text: file.label, role: "presentation" }) : null, ...lines));
      }
      box.replaceChildren(...parts);
      if (rows[0]) mark(rows[0].node);
    },
    // Light up the lines of what is selected; returns how to bring the first of them into sight.
    light(content, id) {
      const detail = content.details[id] || {};
      const number = detail.kind === "graph" ? Number(detail.title.replace(/\D/g, "")) : -1;
      const on = rows.filter(({ line, file }) => line.id === id || (line.marks || []).some((m) => m.id === id) || (line.graphs || []).includes(number) ||
        (!["break", "graph"].includes(detail.kind) && detail.line === line.line && detail.file === file)).map((row) => row.node);
      lamps(on);
      if (on.length) mark(on[0]);
      return () => reveal(box, on[0], true);
    },
    point(file, line) {
      const found = rows.find((r) => r.line.line === line && r.file === file);
      if (!found) return;
      for (const r of rows) r.node.classList.toggle("dyn-point", r === found);
      reveal(box, found.node, true);
    },
  };
}
