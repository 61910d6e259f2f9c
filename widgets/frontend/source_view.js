// The source: lines coloured and numbered by the graph that captured them.

import { button, closest, exclusive, h, idOf, OPTION, reveal, roving, saidOnce } from "./dom.js";
import { plural } from "./logic.js";
import { tokenize, withMarks } from "./tokens.js";

/** @import { Select, SelectablePart } from "./view" */
/** @import { SourceFile, SourceLine, SourceMark, ViewModel, Way } from "./wire" */
/** @typedef {{ node: HTMLElement, line: SourceLine, file: string }} Row */
/** What is shown of a file: the lines near a position, and lines that were unfolded. @typedef {{ near: number, open: Set<number> }} Unfolded */

// Files in the list of files until it is opened.
const FILES = 6;
// Lines of a file before and after the selected one that are shown.
const NEAR = 60;

const TONES = 6;
/** @type {Record<string, string>} */
const NOTES = { skipped: "skipped", failed: "failed", empty: "empty", unfinished: "unfinished" };

/**
 * Append a line of Python to a box, coloured; returns the quotes of a string that continues on the next line.
 * @param {HTMLElement} box
 * @param {string} text
 * @param {SourceMark[]} marks
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
 * @param {SourceLine} line
 */
function badges(line) {
  const box = h("span", { cls: "dyn-badge" });
  const put = (/** @type {string} */ text, /** @type {string} */ cls) => box.append(h("b", { cls, text }));
  const graphs = line.graphs || [];
  const shown = line.marks || graphs.length > 2 ? 1 : 2;
  if (line.marks) put("✂", "dyn-b-break");
  for (const number of graphs.slice(0, shown)) put(String(number), `dyn-b-graph dyn-tone-${number % TONES}`);
  if (graphs.length > 2) put(`+${graphs.length - 1}`, "dyn-b-more");
  if (!line.marks && !graphs.length && line.state && line.state !== "empty") {
    put(line.state === "unfinished" ? "…" : "–", "dyn-b-skip");
  }
  return box;
}

/**
 * The class that colours a line.
 * @param {SourceLine} line
 * @param {string} state
 */
function lineClass(line, state) {
  if (state === "graph") return `dyn-l-graph dyn-tone-${(line.graphs || [])[0] % TONES}`;
  return state ? `dyn-l-${state}` : "";
}

/**
 * One line.
 * @param {SourceLine} line
 * @param {SourceLine | null} previous the line before it, unless there is a gap
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
    h("span", {
      cls: `dyn-no${region ? ` dyn-in-${region}` : ""}${line.error ? " dyn-off" : ""}`,
      title: line.error?.text || setBy,
      style: line.error && `--h:${line.error.heat}%`,
      text: line.line,
    }),
    badges(line),
    h(
      "div",
      { style: `--in:${line.text.search(/\S|$/)}` },
      code,
      line.error?.first && h("span", { cls: "dyn-note dyn-failed", text: `begins here: ${line.error.text}` }),
      note && h("span", { cls: "dyn-note", text: note }),
    ),
  );
}

/**
 * The lines of a file, with a row of dots for each gap and each fold.
 * @param {SourceFile} file
 * @param {boolean} named whether its name is above it
 * @param {Row[]} rows gets a row of each line
 * @param {Unfolded} unfolded
 */
function fileGroup(file, named, rows, unfolded) {
  const group = h("div", { role: "group", "aria-label": file.label });
  if (named) group.append(h("div", { cls: "dyn-file", title: file.file, text: file.label, role: "presentation" }));
  const { lines } = file;
  let quotes = "";
  let folded = false;
  /** @type {SourceLine | null} */
  let previous = null;
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at];
    const end = foldEnd(file, at, unfolded);
    if (line.gap) [quotes, previous] = ["", null];
    // a fold beside the gap already shows a row of dots
    if (line.gap && !folded && end === at) {
      group.append(h("div", { cls: "dyn-gap", role: "presentation", text: `⋯ ${plural(line.gap, "line")}` }));
    }
    folded = end > at;
    if (folded) {
      const text = `⋯ ${plural(end - at, "line")}`;
      const props = { cls: "dyn-ln dyn-quiet", ...OPTION, "data-from": at, title: "show these lines", text };
      group.append(h("div", props));
      while (at < end - 1) quotes = tokenize(lines[at++].text, lines[at].gap ? "" : quotes).open;
      quotes = tokenize(lines[at].text, quotes).open;
      previous = null;
      continue;
    }
    const code = h("code");
    quotes = paintCode(code, line.text, line.marks || [], quotes);
    const node = lineRow(line, previous, code);
    group.append(node);
    rows.push({ node, line, file: file.file });
    previous = line;
  }
  return group;
}

/**
 * The position after the folded lines that begin at `at`; `at` itself if its line is shown.
 * @param {SourceFile} file
 * @param {number} at
 * @param {Unfolded} unfolded
 */
function foldEnd({ lines, owner }, at, { near, open }) {
  // only files of large reports are folded
  const hidden = (/** @type {number} */ n) => owner !== undefined && Math.abs(n - near) > NEAR && !open.has(n);
  let end = at;
  while (end < lines.length && hidden(end) && (end === at || !lines[end].gap)) end++;
  return end;
}

/**
 * A file in the list of files: its name, and how many breaks and graphs are in it.
 * @param {SourceFile} file
 * @param {() => void} show
 */
function fileButton({ file, label, breaks = 0, graphs = 0, owner }, show) {
  const counts = [breaks && `${breaks} ✂`, graphs && `${graphs} ▦`].filter(Boolean).join(" ");
  const title = `${file}: ${plural(breaks, "break")}, lines in ${plural(graphs, "graph")}`;
  const props = { title, "aria-label": `${label}: ${title}`, "aria-pressed": "false" };
  return button(`dyn-chip dyn-of-${owner}`, "", show, props, h("b", { text: label }), ` ${counts}`);
}

/**
 * How the user's own code leads to a place in a library: their line, and the functions below it.
 * @param {Way} way
 * @param {SourceFile[]} sources
 * @param {() => void} show goes to the user's line
 */
function wayParts({ file, line, names }, sources, show) {
  const own = sources.find((source) => source.file === file);
  const code = h("code");
  paintCode(code, (own?.lines.find((one) => one.line === line)?.text || "").trim());
  const steps = names.flatMap((name, i) => [i ? " › " : "", h("span", { text: saidOnce(name, names[i - 1]) })]);
  return [
    h("div", {}, button("dyn-link", `${own?.label || file}:${line}`, show), " ", code),
    h("div", { cls: "dyn-path" }, ...steps),
  ];
}

/**
 * @param {Select} select
 * @returns {SelectablePart & { point(file: string | undefined, line: number | undefined): void, head: HTMLElement[] }}
 */
export function sourceView(select) {
  const box = h("div", { cls: "dyn-src", role: "listbox", "aria-label": "source lines" });
  const files = h("div", { cls: "dyn-files", role: "group", "aria-label": "files" });
  const path = h("div", { cls: "dyn-way", "aria-label": "the way from your code", role: "note" });
  const act = (/** @type {HTMLElement} */ line) => {
    const from = line.dataset.from;
    if (!from || !current) return select(idOf(line));
    unfold(current, Number(from));
    const first = rows.find((row) => row.line === current?.lines[Number(from)])?.node;
    first?.focus({ preventScroll: true });
  };
  const mark = roving(box, ".dyn-ln", { enter: act });
  box.addEventListener("click", (event) => {
    if (String(getSelection())) return;
    const line = /** @type {HTMLElement | null} */ (closest(event, ".dyn-ln"));
    const marked = idOf(closest(event, ".dyn-mark"));
    if (marked) select(marked);
    else if (line) act(line);
  });
  const markSelected = exclusive("aria-selected");
  const markFile = exclusive("aria-pressed");
  /** @type {ViewModel | null} */
  let content = null;
  /** Of a large report, the file that is shown; null: all are. @type {SourceFile | null} */
  let current = null;
  /** @type {Map<SourceFile, Unfolded>} */
  let unfolded = new Map();
  /** @type {Row[]} */
  let rows = [];

  /** Whether a line belongs to what is selected. @type {(row: { line: SourceLine, file: string }, content: ViewModel, id: string) => boolean} */
  function belongs({ line, file }, content, id) {
    if (line.id === id || (line.marks || []).some((m) => m.id === id)) return true;
    const detail = content.details[id];
    if (!detail || detail.kind === "break") return false;
    if (detail.kind === "graph") return (line.graphs || []).includes(Number(detail.title.replace(/\D/g, "")));
    return detail.line === line.line && detail.file === file;
  }
  /** @type {(file: SourceFile) => Unfolded} */
  const unfoldedOf = (file) => unfolded.get(file) || { near: 0, open: new Set() };

  function drawLines() {
    if (!content) return;
    const shown = current ? [current] : content.sources;
    rows = [];
    box.replaceChildren(...shown.map((file) => fileGroup(file, shown.length > 1, rows, unfoldedOf(file))));
    if (rows[0]) mark(rows[0].node);
    markFile(current ? [files.children[content.sources.indexOf(current)]] : []);
  }
  /** @param {SourceFile} file */
  function show(file) {
    if (file === current) return;
    current = file;
    drawLines();
    box.scrollTop = 0;
  }
  /** Unfold at most NEAR lines from a position on. @type {(file: SourceFile, from: number) => void} */
  function unfold(file, from) {
    const { near, open } = unfoldedOf(file);
    const end = Math.min(foldEnd(file, from, unfoldedOf(file)), from + NEAR);
    for (let at = from; at < end; at++) open.add(at);
    unfolded.set(file, { near, open });
    drawLines();
  }
  /** In a large report, show the file of a line, and the line. @type {(file: SourceFile, line: SourceLine) => void} */
  function showLine(file, line) {
    const at = file.lines.indexOf(line);
    const { near, open } = unfoldedOf(file);
    if (Math.abs(at - near) > NEAR - 20) unfolded.set(file, { near: at, open });
    const changed = file !== current || unfoldedOf(file).near !== near;
    current = file;
    if (changed) drawLines();
    if (foldEnd(file, at, unfoldedOf(file)) === at) return;
    let from = at;
    while (from > 0 && foldEnd(file, from - 1, unfoldedOf(file)) > at) from--;
    unfold(file, from);
  }

  /** @type {(file: string | undefined, line: number | undefined) => void} */
  function point(file, line) {
    const at = content?.sources.find((one) => one.file === file);
    const target = at?.lines.find((one) => one.line === line);
    if (current && at && target) showLine(at, target);
    const found = rows.find((row) => row.line.line === line && row.file === file);
    if (!found) return;
    for (const row of rows) row.node.classList.toggle("dyn-point", row === found);
    reveal(box, found.node, true);
  }

  return {
    node: box,
    head: [files, path],
    point,
    draw(model) {
      content = model;
      unfolded = new Map();
      current = model.sources[0]?.owner ? model.sources[0] : null; // beside code of libraries, one file at a time
      files.hidden = !current || model.sources.length < 2;
      files.replaceChildren(...(current ? model.sources.map((file) => fileButton(file, () => show(file))) : []));
      files.classList.remove("dyn-all");
      const more = model.sources.length - FILES;
      if (current && more > 1) {
        files.append(button("dyn-link", plural(more, "more file"), () => files.classList.add("dyn-all")));
      }
      drawLines();
    },
    highlight(content, id) {
      if (current) {
        const order = [current, ...content.sources.filter((file) => file !== current)];
        const own = content.details[id];
        const found = order
          .flatMap((file) =>
            file.lines
              .filter((line) => belongs({ line, file: file.file }, content, id))
              .map((line) => ({ file, line })),
          )
          .sort((a, b) => Number(b.file.file === own?.file) - Number(a.file.file === own?.file));
        if (found[0]) showLine(found[0].file, found[0].line);
      }
      const way = content.details[id]?.way;
      path.replaceChildren(...(way ? wayParts(way, content.sources, () => point(way.file, way.line)) : []));
      const nodes = rows.filter((row) => belongs(row, content, id)).map((row) => row.node);
      markSelected(nodes);
      if (nodes.length) mark(nodes[0]);
      return () => reveal(box, nodes[0], true);
    },
  };
}
