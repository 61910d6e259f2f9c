// The time line of a call, to scale: one lane for the processor, one for each device.

import { button, closest, exclusive, h, idOf, OPTION, reveal, roving } from "./dom.js";

/** @import { Select, SelectablePart } from "./view" */
/** @import { TimeLine, TimeSegment } from "./wire" */
/** @typedef {TimeSegment & { ids?: string[] }} Piece a segment, or several of them in one; `ids`: what it represents */

const ZOOM = 4;
const MOST_ZOOM = 256;
/** Pixels: narrower neighbours are drawn as one. */
const NARROW = 3;

const percent = (/** @type {number} */ part) =>
  `${part >= 0.1 || part === 0 ? Math.round(part * 100) : (part * 100).toFixed(1)} %`;

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
    if (segment.w >= least || (run.length && run[0].lane !== segment.lane)) close();
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

/**
 * @param {Piece} piece
 * @param {number} width of the whole call, in pixels
 */
function pieceNode(piece, width) {
  const colour =
    piece.tone === undefined ? "" : `;--dyn-tone:var(--dyn-g${piece.tone});--dyn-tint:var(--dyn-g${piece.tone}-tint)`;
  const tooNarrow = piece.w * width < 6 * Math.min(8, piece.label.length) + 8;
  return h(
    "div",
    {
      cls: `dyn-seg dyn-k-${piece.kind}`,
      ...OPTION,
      "data-id": piece.id,
      title: piece.full,
      "aria-label": piece.full,
      style: `left:${piece.x * 100}%;width:${piece.w * 100}%${colour}`,
    },
    h("span", { text: piece.kind === "unaccounted" || tooNarrow ? "" : piece.label }),
  );
}

/**
 * What to know of the call: the verdict, and the break to begin with.
 * @param {TimeLine} time
 * @param {Select} select
 */
function verdict(time, select) {
  const nodes = time.verdict ? [h("p", { text: time.verdict })] : [];
  if (!time.first) return nodes;
  const { first, first_id } = time;
  return [...nodes, first_id ? button("dyn-first", first, () => select(first_id)) : h("p", { text: first })];
}

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
  return [h("summary", { text: time.inputs_summary }), h("table", {}, ...rows)];
}

/**
 * @param {Select} select
 * @param {() => void} open goes to the detail
 * @returns {SelectablePart}
 */
export function timeView(select, open) {
  const pane = h("div", { cls: "dyn-lanes" });
  const shares = h("ul", { cls: "dyn-shares", "aria-label": "where the time goes" });
  const inputs = h("details", { cls: "dyn-inputs", open: true });
  const title = h("h2");
  const summary = h("div", { cls: "dyn-verdict" });
  const zoomer = (/** @type {string} */ text, /** @type {string} */ name, /** @type {number} */ factor) =>
    button("dyn-btn", text, () => zoomBy(factor), { title: name, "aria-label": name });
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
    vertical: false,
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

  /** Zoom, and keep what is in the middle there; 0: the whole call. @type {(factor: number) => void} */
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
        "data-name": line.lanes.length > 1 && name,
        style: `width:${zoom * 100}%`,
      });
      for (const piece of pieces.filter((p) => p.lane === number)) {
        const node = pieceNode(piece, width);
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
      title.textContent = `Run time · ${time.median} a call under the profiler (${time.spread}; ${time.calls} calls)`;
      title.title = time.devices;
      summary.replaceChildren(...verdict(time, select));
      shares.replaceChildren(
        ...time.shares.map(({ name, kind, part, full }) => {
          const swatch = h("i", { cls: `dyn-swatch dyn-k-${kind}`, "aria-hidden": "true" });
          return h("li", { title: full }, swatch, `${name} `, h("b", { text: percent(part) }));
        }),
      );
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
