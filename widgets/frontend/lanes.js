// Lanes of a time line, to scale: of a call, or of the compiles.

import { button, closest, exclusive, h, idOf, OPTION, reveal, roving } from "./dom.js";

/** @import { Select } from "./view" */
/** @import { Share, TimeSegment } from "./wire" */
/** @typedef {TimeSegment & { ids?: string[] }} Piece a segment, or several of them in one; `ids`: what it represents */
/** @typedef {{ total: string, lanes: string[], segments: TimeSegment[] }} Lanes */

const ZOOM = 4;
const MOST_ZOOM = 256;
/** Pixels: narrower neighbours are drawn as one. */
const NARROW = 3;

/** The parts of the compiler, by the color of each. */
const TONES = ["dynamo", "lowering", "aot", "passes", "codegen", "compiler"];
/** The classes of what is of a kind. @param {string} kind @param {number} [tone] */
export const kindClass = (kind, tone = TONES.indexOf(kind)) => `dyn-k-${kind}${tone < 0 ? "" : ` dyn-tone-${tone}`}`;

const percent = (/** @type {number} */ part) =>
  `${part >= 0.1 || part === 0 ? Math.round(part * 100) : (part * 100).toFixed(1)}%`;

/**
 * Neighbours on one lane that are too narrow to be seen apart become one piece that counts them.
 * @param {TimeSegment[]} segments
 * @param {number} least the width from which on a segment stays by itself
 * @param {string} whole what the lanes show
 */
export function merged(segments, least, whole = "the call") {
  /** @type {Piece[]} */
  const pieces = [];
  /** @type {TimeSegment[]} */
  let run = [];
  const close = () => {
    if (run.length < 2) pieces.push(...run);
    else pieces.push(joined(run, whole));
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
 * @param {string} whole
 * @returns {Piece}
 */
function joined(run, whole) {
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
    full: `${label}, ${percent(w)} of ${whole}: zoom in to see each`,
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
 * The shares of a time, each with the color of its pieces.
 * @param {Share[]} shares
 */
export const shareItems = (shares) =>
  shares.map(({ name, kind, part, full }) => {
    const swatch = h("i", { cls: `dyn-swatch ${kindClass(kind)}`, "aria-hidden": "true" });
    return h("li", { title: full }, swatch, `${name} `, h("b", { text: percent(part) }));
  });

/**
 * Lanes that can be zoomed, and the buttons for it.
 * @param {string} whole what the lanes show
 * @param {Select} select
 * @param {() => void} open goes to the detail
 */
export function lanesView(whole, select, open) {
  const pane = h("div", { cls: "dyn-lanes" });
  const zoomer = (/** @type {string} */ text, /** @type {string} */ name, /** @type {number} */ factor) =>
    button("dyn-btn", text, () => zoomBy(factor), { title: name, "aria-label": name });
  const buttons = [
    zoomer("−", `zoom out of ${whole}`, 1 / ZOOM),
    zoomer("+", `zoom in on ${whole}`, ZOOM),
    zoomer("fit", `show the whole ${whole.replace("the ", "")}`, 0),
  ];
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
  /** @type {Lanes | null} */
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
  /** @param {Lanes} line */
  function drawLanes(line) {
    const width = zoom * (pane.clientWidth || 1000);
    const pieces = merged(line.segments, NARROW / width, whole);
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
    pane,
    buttons,
    /** @param {Lanes} line */
    draw(line) {
      time = line;
      drawLanes(line);
    },
    /** @param {string} id */
    highlight(id) {
      selected = id;
      return highlight();
    },
  };
}
