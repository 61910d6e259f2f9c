// Where time goes: that of a call, to scale, with one lane for the processor and one for each device; that of the compiles.

import { button, closest, exclusive, h, idOf, OPTION, reveal, roving } from "./dom.js";

/** @import { Select, SelectablePart } from "./view" */
/** @import { CompileTimeLine, PhaseRow, Share, TimeLine, TimeSegment } from "./wire" */
/** @typedef {TimeSegment & { ids?: string[] }} Piece a segment, or several of them in one; `ids`: what it represents */

const ZOOM = 4;
const MOST_ZOOM = 256;
/** Pixels: narrower neighbours are drawn as one. */
const NARROW = 3;

/** The parts of the compiler, by the color of each. */
const TONES = ["dynamo", "lowering", "aot", "passes", "codegen", "compiler"];
/** The classes of what is of a kind. @param {string} kind @param {number} [tone] */
const kindClass = (kind, tone = TONES.indexOf(kind)) => `dyn-k-${kind}${tone < 0 ? "" : ` dyn-tone-${tone}`}`;

const percent = (/** @type {number} */ part) =>
  `${part >= 0.1 || part === 0 ? Math.round(part * 100) : (part * 100).toFixed(1)}%`;

/**
 * Neighbours on one lane that are too narrow to be seen apart become one piece that counts them.
 * @param {TimeSegment[]} segments
 * @param {number} least the width from which on a segment stays by itself
 */
export function merged(segments, least) {
  /** @type {Piece[]} */
  const pieces = [];
  /** @type {TimeSegment[]} */
  let run = [];
  const close = () => {
    if (run.length < 2) pieces.push(...run);
    else pieces.push(joined(run));
    run = [];
  };
  for (const segment of segments) {
    const before = run[run.length - 1];
    const apart = before && (before.lane !== segment.lane || segment.x - before.x - before.w > least);
    if (segment.w >= least || apart) close();
    if (segment.w < least) run.push(segment);
    else pieces.push(segment);
  }
  close();
  return pieces;
}

/**
 * @param {TimeSegment[]} run
 * @returns {Piece}
 */
function joined(run) {
  const first = run[0];
  const last = run[run.length - 1];
  const w = last.x + last.w - first.x;
  const label = `${run.length} short stretches`;
  return {
    kind: "short",
    lane: first.lane,
    x: first.x,
    w,
    label,
    full: `${label}, ${percent(w)} of the call: zoom in to see each`,
    ids: run.map((s) => s.id),
    id: (run.find((s) => s.id) || first).id,
  };
}

/** @param {Piece} piece */
function pieceNode(piece) {
  return h(
    "div",
    {
      cls: `dyn-seg ${kindClass(piece.kind, piece.tone)}`,
      ...OPTION,
      "data-id": piece.id,
      title: piece.full,
      "aria-label": piece.full,
      style: `left:${piece.x * 100}%;width:${piece.w * 100}%`,
    },
    h("span", { text: piece.kind === "unaccounted" ? "" : piece.label }),
  );
}

/**
 * The mark of a kind of work, in the color of its pieces.
 * @param {string} kind
 */
const swatch = (kind) => h("i", { cls: `dyn-swatch ${kindClass(kind)}`, "aria-hidden": "true" });

/**
 * The shares of a time.
 * @param {Share[]} shares
 */
const shareItems = (shares) =>
  shares.map(({ name, kind, part, full }) =>
    h("li", { title: full }, swatch(kind), `${name} `, h("b", { text: percent(part) })),
  );

/**
 * The table of inputs, and what was compiled for each.
 * @param {TimeLine} time
 * @param {Select} select
 */
function inputsTable(time, select) {
  const rows = time.inputs.map(({ arguments: given, outcome, words, id }, i) =>
    h(
      "tr",
      { cls: `dyn-in-${outcome}` },
      h("td", { text: i + 1 }),
      h("td", {}, h("code", { text: given })),
      h("td", {}, id ? button("dyn-link", words, () => select(id)) : words),
    ),
  );
  return [h("summary", { text: time.inputs_summary }), h("table", { cls: "dyn-table" }, ...rows)];
}

/**
 * The run time: lanes that can be zoomed, the shares, what a call takes with other inputs.
 * @param {Select} select
 * @param {() => void} open goes to the detail
 * @returns {SelectablePart}
 */
export function timeView(select, open) {
  const pane = h("div", { cls: "dyn-lanes" });
  const zoomer = (/** @type {string} */ text, /** @type {string} */ name, /** @type {number} */ factor) =>
    button("dyn-btn", text, () => zoomBy(factor), { title: name, "aria-label": name });
  const shares = h("ul", { cls: "dyn-shares", "aria-label": "where the time goes" });
  const inputs = h("details", { cls: "dyn-inputs", open: true });
  const title = h("h2");
  const summary = h("div", { cls: "dyn-verdict" });
  const bar = h(
    "div",
    { cls: "dyn-bar" },
    title,
    zoomer("−", "zoom out of the call", 1 / ZOOM),
    zoomer("+", "zoom in on the call", ZOOM),
    zoomer("fit", "show the whole call", 0),
  );
  const node = h("section", { cls: "dyn-time", "aria-label": "run time" }, bar, summary, shares, pane, inputs);
  const markSelected = exclusive("aria-selected");
  const mark = roving(pane, ".dyn-seg", {
    arrows: "horizontal",
    enter(piece) {
      select(idOf(piece));
      open();
    },
  });
  pane.addEventListener("click", (event) => select(idOf(closest(event, ".dyn-seg"))));

  let zoom = 1;
  let selected = "";
  /** @type {TimeLine | null} */
  let time = null;
  /** What each piece represents. @type {Map<Element, string[]>} */
  const holds = new Map();

  /** Zoom, keeping the middle in place; factor 0 shows the whole. @type {(factor: number) => void} */
  function zoomBy(factor) {
    if (!time) return;
    const middle = (pane.scrollLeft + pane.clientWidth / 2) / zoom;
    zoom = factor ? Math.min(MOST_ZOOM, Math.max(1, zoom * factor)) : 1;
    drawLanes(time);
    highlight();
    pane.scrollLeft = middle * zoom - pane.clientWidth / 2;
  }
  /** @param {TimeLine} line */
  function drawLanes(line) {
    const width = zoom * (pane.clientWidth || 1000);
    const pieces = merged(line.segments, NARROW / width);
    holds.clear();
    const lanes = line.lanes.map((name, number) => {
      const lane = h("div", {
        cls: "dyn-lane",
        role: "listbox",
        "aria-orientation": "horizontal",
        "aria-label": `${name}, ${line.total}`,
        "data-name": (line.lanes.length > 1 && name) || null,
        style: `width:${zoom * 100}%`,
      });
      for (const piece of pieces.filter((p) => p.lane === number)) {
        const node = pieceNode(piece);
        holds.set(node, piece.ids || [piece.id]);
        lane.append(node);
      }
      return lane;
    });
    pane.replaceChildren(...lanes);
    const first = pane.querySelector(".dyn-seg");
    if (first) mark(first);
  }
  function highlight() {
    const nodes = selected ? [...holds].filter(([, ids]) => ids.includes(selected)).map(([piece]) => piece) : [];
    markSelected(nodes);
    return () => {
      if (zoom > 1) reveal(pane, nodes[0]);
    };
  }

  return {
    node,
    draw(content) {
      time = content.time;
      node.hidden = !time;
      if (!time) return;
      title.textContent = `Run time · ${time.call}`;
      title.title = time.devices;
      summary.replaceChildren(...(time.verdict ? [h("p", { text: time.verdict })] : []));
      shares.replaceChildren(h("li", { text: time.profiled }), ...shareItems(time.shares));
      inputs.hidden = !time.inputs.length;
      inputs.replaceChildren(...inputsTable(time, select));
      drawLanes(time);
    },
    highlight(_, id) {
      selected = id;
      return highlight();
    },
  };
}

const HEADS = ["alone", "with inner", "", "phase", "part of the compiler", "most of it in"];

/**
 * One of the most expensive phases.
 * @param {PhaseRow} row
 * @param {Select} select
 */
const phaseRow = ({ name, kind, what, own, total, count, where, id }, select) =>
  h(
    "tr",
    {},
    [own, total, count > 1 ? `${count}×` : ""].map((text) => h("td", { cls: "dyn-number", text })),
    h("td", {}, h("code", { text: name })),
    h("td", {}, swatch(kind), what),
    h("td", {}, id ? button("dyn-link", where, () => select(id)) : where),
  );

/**
 * The compile time, folded: the parts of the compiler, the most expensive phases, the caches.
 * @param {Select} select
 * @returns {SelectablePart}
 */
export function compileTimeView(select) {
  const folded = h("details", { cls: "dyn-compile-time" });
  const node = h("section", { cls: "dyn-time dyn-compile", "aria-label": "compile time" }, folded);
  /** @param {CompileTimeLine} time */
  const parts = ({ title, shares, rows, words }) => [
    h("summary", {}, h("h2", { text: title })),
    h("ul", { cls: "dyn-shares", "aria-label": "where the compile time goes" }, ...shareItems(shares)),
    h(
      "table",
      { cls: "dyn-table" },
      h(
        "tr",
        {},
        HEADS.map((text) => h("th", { text, scope: "col" })),
      ),
      rows.map((row) => phaseRow(row, select)),
    ),
    h(
      "div",
      { cls: "dyn-verdict" },
      words.map((text) => h("p", { text })),
    ),
  ];
  return {
    node,
    draw({ compile_time: time }) {
      node.hidden = !time;
      if (time) folded.replaceChildren(...parts(time));
    },
    highlight: () => () => {},
  };
}
