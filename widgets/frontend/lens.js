// The source: lines coloured and numbered by the graph that captured them.

import { closest, exclusive, h, idOf, OPTION, reveal, roving } from "./dom.js";
import { tokenize, withMarks } from "./tokens.js";

/** @import { Select, SelectablePart } from "./view" */
/** @import { LensFile, LensLine, LensMark, ViewModel } from "./wire" */
/** @typedef {{ node: HTMLElement, line: LensLine, file: string }} Row */

const TONES = 6;
/** @type {Record<string, string>} */
const NOTES = { skipped: "skipped", failed: "failed", empty: "empty", unfinished: "unfinished" };

/**
 * Append a line of Python to a box, coloured; returns the quotes of a string that continues on the next line.
 * @param {HTMLElement} box
 * @param {string} text
 * @param {LensMark[]} marks
 * @param {string} open the quotes of a string that began on an earlier line
 */
export function paintCode(box, text, marks = [], open = "") {
  const painted = tokenize(text, open);
  for (const { text, kind, mark } of withMarks(painted.tokens, marks)) {
    const classes = [kind && `dyn-t-${kind}`, mark && `dyn-mark dyn-mark-${mark.outcome}`];
    const cls = classes.filter(Boolean).join(" ");
    box.append(cls ? h("span", { cls, text, "data-id": mark?.id }) : text);
  }
  return painted.open;
}

/**
 * The badges of a line: a cut, and the numbers of graphs.
 * @param {LensLine} line
 */
function badges(line) {
  const box = h("span", { cls: "dyn-badge" });
  const put = (/** @type {string} */ text, /** @type {string} */ cls) => box.append(h("b", { cls, text }));
  const graphs = line.graphs || [];
  const shown = line.marks || graphs.length > 2 ? 1 : 2;
  if (line.marks) put("✂", "dyn-b-break");
  for (const number of graphs.slice(0, shown)) put(String(number), `dyn-b-g${number % TONES}`);
  if (graphs.length > 2) put(`+${graphs.length - 1}`, "dyn-b-more");
  if (!line.marks && !graphs.length && line.state && line.state !== "empty") {
    put(line.state === "unfinished" ? "…" : "–", "dyn-b-skip");
  }
  return box;
}

/**
 * The class that colours a line.
 * @param {LensLine} line
 * @param {string} state
 */
function lineClass(line, state) {
  if (state === "graph") return `dyn-l-g${(line.graphs || [])[0] % TONES}`;
  return state ? `dyn-l-${state}` : "";
}

/**
 * One line.
 * @param {LensLine} line
 * @param {LensLine | null} previous the line before it, unless there is a gap
 * @param {HTMLElement} code its text, painted
 */
function lineRow(line, previous, code) {
  const state = line.marks ? "break" : line.state || "";
  const first = !previous || previous.state !== line.state || previous.id !== line.id;
  const note = line.marks ? line.reason : first ? NOTES[state] : "";
  const [region, setBy] = line.region || [];
  return h(
    "div",
    {
      cls: `dyn-ln ${lineClass(line, state)}`,
      ...OPTION,
      title: line.reason,
      "data-line": line.line,
      "data-id": line.marks ? line.marks[0].id : line.id,
    },
    h("span", { cls: `dyn-no${region ? ` dyn-in-${region}` : ""}`, title: setBy, text: line.line }),
    badges(line),
    code,
    note ? h("span", { cls: "dyn-note", text: note }) : h("span"),
  );
}

/**
 * The lines of a file, and what is between them.
 * @param {LensFile} file
 * @param {boolean} named whether its name is above it
 * @param {Row[]} rows gets a row of each line
 */
function fileGroup(file, named, rows) {
  const group = h("div", { role: "group", "aria-label": file.label });
  if (named) group.append(h("div", { cls: "dyn-file", title: file.file, text: file.label, role: "presentation" }));
  let open = "";
  /** @type {LensLine | null} */
  let previous = null;
  for (const line of file.lines) {
    if (line.gap) {
      group.append(h("div", { cls: "dyn-gap", role: "presentation", text: `⋯ ${line.gap} lines` }));
      [open, previous] = ["", null];
    }
    const code = h("code");
    open = paintCode(code, line.text, line.marks || [], open);
    const node = lineRow(line, previous, code);
    group.append(node);
    rows.push({ node, line, file: file.file });
    previous = line;
  }
  return group;
}

/**
 * @param {Select} select
 * @returns {SelectablePart & { point(file: string | undefined, line: number | undefined): void }}
 */
export function lensView(select) {
  const box = h("div", { cls: "dyn-src", role: "listbox", "aria-label": "source lines" });
  const mark = roving(box, ".dyn-ln", { enter: (line) => select(idOf(line)) });
  box.addEventListener("click", (event) => {
    if (String(getSelection())) return;
    select(idOf(closest(event, ".dyn-mark")) || idOf(closest(event, ".dyn-ln")));
  });
  const markSelected = exclusive("aria-selected");
  /** @type {Row[]} */
  let rows = [];

  /** Whether a line belongs to what is selected. @type {(row: Row, content: ViewModel, id: string) => boolean} */
  function belongs({ line, file }, content, id) {
    if (line.id === id || (line.marks || []).some((m) => m.id === id)) return true;
    const detail = content.details[id];
    if (!detail || detail.kind === "break") return false;
    if (detail.kind === "graph") return (line.graphs || []).includes(Number(detail.title.replace(/\D/g, "")));
    return detail.line === line.line && detail.file === file;
  }

  return {
    node: box,
    draw(content) {
      rows = [];
      box.replaceChildren(...content.lens.map((file) => fileGroup(file, content.lens.length > 1, rows)));
      if (rows[0]) mark(rows[0].node);
    },
    highlight(content, id) {
      const nodes = rows.filter((row) => belongs(row, content, id)).map((row) => row.node);
      markSelected(nodes);
      if (nodes.length) mark(nodes[0]);
      return () => reveal(box, nodes[0], true);
    },
    point(file, line) {
      const found = rows.find((row) => row.line.line === line && row.file === file);
      if (!found) return;
      for (const row of rows) row.node.classList.toggle("dyn-point", row === found);
      reveal(box, found.node, true);
    },
  };
}
