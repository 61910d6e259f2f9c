// A part of the split graph: a frame with what leads to it and what follows, placed anew, and a map of the whole. The shapes
// are copies of those that Python drew.

import { h, s } from "./dom.js";
import { plural, rounded } from "./logic.js";

/** @import { Arrow, DrawnPicture, Shape } from "./view" */
/** @typedef {{ id: string, shape: Shape, boxes: Shape[], into: Link[], out: Link[] }} Frame */
/** @typedef {{ arrow: Arrow, from: Frame, to: Frame }} Link */
/** @typedef {{ frame: Frame, x: number, y: number }} Placed */

// Steps shown before and after a frame; most frames shown, and most neighbours of one frame.
const BEFORE = 1;
const AFTER = 3;
const MOST = 14;
const NEIGHBOURS = 5;
// Distances: between columns, between rows, around the drawing, from the top of a frame to an arrow at its side, between
// two such arrows.
const COLUMN_GAP = 50;
const ROW_GAP = 46;
const MARGIN = 14;
const TURN = 20;
const LANE = 6;
const MORE_WIDTH = 172;
const MORE_HEIGHT = 30;
const MAP = { width: 150, height: 62 };

/**
 * The frames of a picture with the arrows between them; a break that is in no frame stands alone.
 * @param {DrawnPicture} picture
 */
export function framesOf(picture) {
  /** @type {Map<string, Frame>} */
  const frames = new Map();
  const frameOf = (/** @type {Shape} */ shape) => ({ id: shape.id, shape, boxes: [], into: [], out: [] });
  const stand = picture.shapes.filter(({ group }) => !group);
  for (const shape of stand) frames.set(shape.id, frameOf(shape));
  /** @type {Map<string, Frame>} */
  const owner = new Map();
  for (const shape of picture.shapes) {
    const frame = /** @type {Frame} */ (frames.get(shape.group || shape.id));
    if (shape.group) frame.boxes.push(shape);
    for (const id of [shape.id, ...shape.contents]) owner.set(id, frame);
  }
  for (const arrow of picture.arrows) {
    const [from, to] = [owner.get(arrow.source), owner.get(arrow.target)];
    if (!from || !to || from === to) continue;
    from.out.push({ arrow, from, to });
    to.into.push({ arrow, from, to });
  }
  return { frames, owner, svg: picture.svg };
}

/** Whether an arrow leads down rather than to the right. @param {Arrow} arrow */
const leadsDown = (arrow) => arrow.kind === "continues";

/**
 * The arrow by which a frame is reached.
 * @param {Frame} frame
 */
const entry = (frame) => frame.into.find(({ arrow, to }) => arrow.kind !== "hits" || arrow.target === to.id);

/**
 * The frames around one: those that lead to it, and those that follow, the nearest first.
 * @param {Frame} focus
 * @param {Set<string>} wide ids of frames of which all neighbours are shown
 */
function around(focus, wide) {
  const kept = new Set([focus]);
  for (let frame = focus, n = 0; n < BEFORE; n++) {
    const link = entry(frame);
    if (!link || kept.has(link.from)) break;
    kept.add((frame = link.from));
  }
  let last = [focus];
  for (let n = 0; n < AFTER; n++) {
    const next = [];
    for (const frame of last) {
      const follows = frame.out.filter(({ to }) => entry(to)?.from === frame && !kept.has(to));
      const all = follows.filter(({ arrow }) => !n || leadsDown(arrow)).map(({ to }) => to);
      const room = wide.has(frame.id) ? all.length : Math.min(NEIGHBOURS, MOST - kept.size);
      for (const to of all.slice(0, Math.max(0, room))) {
        kept.add(to);
        next.push(to);
      }
    }
    last = next;
  }
  return kept;
}

/**
 * A box that stands for neighbours that are not shown.
 * @param {string} id
 * @param {string} of what a click on it leads to
 * @param {string} title
 * @returns {Shape}
 */
function moreBox(id, of, title) {
  const [w, h] = [MORE_WIDTH, MORE_HEIGHT];
  const node = s(
    "g",
    { cls: "dyn-node dyn-k-more", role: "button", "aria-pressed": "false", tabindex: "-1" },
    s("title", { text: title }),
    s("rect", { cls: "dyn-main", width: w, height: h, rx: 5 }),
    s("text", { cls: "dyn-strong", x: 12, y: h / 2 + 4, text: title }),
  );
  return { node, id, kind: "more", group: "", contents: [of], x: 0, y: 0, w, h };
}

/** The name of a frame. @param {Shape} shape */
const nameOf = (shape) => shape.node.querySelector(".dyn-name, .dyn-strong")?.textContent || "";

/**
 * The picture of a frame and what is around it.
 * @param {ReturnType<typeof framesOf>} whole
 * @param {string} id of the frame, or of something in it
 * @param {Set<string>} wide
 * @returns {DrawnPicture | null}
 */
export function focused(whole, id, wide) {
  const focus = whole.owner.get(id) || whole.frames.values().next().value;
  if (!focus) return null;
  const kept = around(focus, wide);
  /** @type {Map<Frame, Link>} */
  const into = new Map();
  for (const frame of kept) {
    const link = entry(frame);
    let above = link?.from;
    while (above && above !== frame) above = into.get(above)?.from;
    if (link && kept.has(link.from) && !above) into.set(frame, link); // no circles
  }
  const links = [...into.values()];
  const root = [...kept].find((frame) => !links.some(({ to }) => to === frame)) || focus;
  return placed(root, focus, links, kept, whole.svg);
}

/**
 * Place the frames of a tree: what is called to the right, what continues below; each as far up as its column allows.
 * @param {Frame} root
 * @param {Frame} focus
 * @param {Link[]} links
 * @param {Set<Frame>} kept
 * @param {SVGSVGElement} whole the picture that they are from
 * @returns {DrawnPicture}
 */
function placed(root, focus, links, kept, whole) {
  /** @type {Shape[]} */
  const shapes = [];
  /** @type {Arrow[]} */
  const arrows = [];
  /** @type {SVGElement[]} */
  const labels = [];
  let right = 0;
  /** @type {number[]} */
  const floors = [];
  const column = Math.max(...[...kept].map(({ shape }) => shape.w)) + COLUMN_GAP;
  /** Each shape as it is placed, by its id. @type {Map<string, Shape>} */
  const at = new Map();
  const first = entry(root) ? 1 : 0;
  /** Where a column begins; the first one is narrow if it only has what leads to the root. @param {number} col */
  const left = (col) => MARGIN + (first && col ? MORE_WIDTH + COLUMN_GAP + (col - 1) * column : col * column);

  const reached = entry(focus);
  /** The column of the frame in focus. */
  const last = first + (root !== focus && reached && !leadsDown(reached.arrow) ? 1 : 0);

  /** @type {(shape: Shape, col: number, y: number) => Shape} */
  const put = (shape, col, y) => {
    const top = Math.max(y, floors[col] ?? 0);
    floors[col] = top + shape.h + ROW_GAP;
    return copy(shape, left(col), MARGIN + top);
  };
  /** Put a copy of a shape at a place. @type {(shape: Shape, x: number, y: number) => Shape} */
  const copy = (shape, x, y) => {
    const node = /** @type {SVGElement} */ (shape.node.cloneNode(true));
    node.setAttribute("transform", `translate(${x} ${y})`);
    node.dataset.id = shape.id;
    const moved = { ...shape, node, x, y };
    shapes.push(moved);
    at.set(shape.id, moved);
    return moved;
  };
  /** @type {(frame: Frame, col: number, y: number) => void} */
  const place = (frame, col, y) => {
    const shape = put(frame.shape, col, y);
    const dx = shape.x - frame.shape.x;
    const dy = shape.y - frame.shape.y;
    for (const box of frame.boxes) copy(box, box.x + dx, box.y + dy);
    const mine = links.filter(({ from }) => from === frame);
    const top = shape.y - MARGIN;
    for (const { arrow, to } of mine.filter(({ arrow }) => !leadsDown(arrow))) {
      place(to, col + 1, top);
      join(arrow, col);
    }
    const hidden = frame.out.filter(({ to }) => entry(to)?.from === frame && !kept.has(to));
    const calls = hidden.filter(({ arrow }) => !leadsDown(arrow)).length;
    const words = plural(calls, "more call");
    const beside = calls && col <= last; // no column is made for what is not shown
    if (beside) standIn(frame, `more-calls-${frame.id}`, words, col + 1, top, false);
    const down = mine.filter(({ arrow }) => leadsDown(arrow));
    for (const [n, { arrow, to }] of down.entries()) {
      place(to, col + n, top + shape.h + ROW_GAP);
      join(arrow, col);
    }
    const rest = [!beside && calls && words, hidden.length > calls && "continues …"].filter(Boolean).join(", ");
    if (rest) standIn(frame, `more-after-${frame.id}`, rest, col, top + shape.h + ROW_GAP, true);
  };
  /** A box for what is not shown, with an arrow to it. @type {(frame: Frame, id: string, title: string, col: number, y: number, below: boolean) => void} */
  const standIn = (frame, id, title, col, y, below) => {
    put(moreBox(id, frame.id, title), col, below ? y : y + TURN - MORE_HEIGHT / 2);
    join({ ...plain, source: frame.id, target: id, kind: below ? "continues" : "calls" }, col - (below ? 0 : 1));
  };
  /** What an arrow to a box for what is not shown looks like. */
  const plain = { path: /** @type {SVGPathElement} */ (whole.querySelector(".dyn-arrow")?.cloneNode()), label: "" };
  plain.path?.setAttribute("class", "dyn-arrow");
  /** Draw an arrow between what is placed. @type {(arrow: Arrow, col: number) => void} */
  const join = (arrow, col) => {
    const [from, to] = [at.get(arrow.source), at.get(arrow.target)];
    if (!from || !to) return;
    const far = to.kind === "more" && to.y > from.y + from.h + ROW_GAP + 1;
    const points = !leadsDown(arrow) ? aside(from, to, col) : far ? passing(from, to) : downward(from, to);
    const path = /** @type {SVGPathElement} */ (arrow.path.cloneNode(true));
    path.setAttribute("d", rounded(points, 7));
    Object.assign(path.dataset, { s: arrow.source, t: arrow.target });
    arrows.push({ ...arrow, path });
    if (!arrow.label) return;
    const [x, y] = labelAt(arrow.label, points, leadsDown(arrow));
    labels.push(s("text", { cls: "dyn-label", x, y, text: arrow.label }));
    right = Math.max(right, x + 6.5 * arrow.label.length);
  };
  /** Points from the side of one shape to the side of another, through the gap before its column. @type {(from: Shape, to: Shape, col: number) => number[][]} */
  const aside = (from, to, col) => {
    const start = from.y + Math.min(TURN, from.h / 2);
    const end = to.y + Math.min(TURN, to.h / 2);
    if (Math.abs(start - end) < 1) return [[from.x + from.w, start], [to.x, end]]; // prettier-ignore
    const x = left(col + 1) - COLUMN_GAP / 2 - LANE;
    return [[from.x + from.w, start], [x, start], [x, end], [to.x, end]]; // prettier-ignore
  };

  if (first) {
    const link = /** @type {Link} */ (entry(root));
    const title = `${leadsDown(link.arrow) ? "after" : "from"} ${nameOf(link.from.shape)}`;
    const box = moreBox(`more-before-${root.id}`, link.from.id, cut(title));
    put(box, 0, TURN - MORE_HEIGHT / 2);
    place(root, 1, 0);
    join({ ...plain, source: box.id, target: root.id, kind: "calls" }, 0);
  } else place(root, 0, 0);
  const width = Math.max(right, ...shapes.map(({ x, w }) => x + w)) + MARGIN;
  const height = Math.max(...shapes.map(({ y, h }) => y + h)) + MARGIN;
  const [frames, boxes] = [false, true].map((inner) =>
    shapes.filter(({ group, kind }) => inner === Boolean(group || kind === "more" || kind === "break")),
  );
  const svg = s(
    "svg",
    { cls: "dyn-picture", viewBox: `0 0 ${width} ${height}` },
    whole.querySelector("defs")?.cloneNode(true),
    frames.map(({ node }) => node),
    arrows.map(({ path }) => path),
    boxes.map(({ node }) => node),
    labels,
  );
  return { svg, shapes, arrows, width, height };
}

/** A title cut to fit into the box of a frame that is not shown. @param {string} text */
const cut = (text) => (text.length > 20 ? `${text.slice(0, 19)}…` : text);

/**
 * Points from one shape to another further down, to the left of what is between them.
 * @param {Shape} from
 * @param {Shape} to
 */
function passing(from, to) {
  const [x, start, end] = [from.x - 2 * LANE, from.y + from.h - LANE, to.y + to.h / 2];
  return [[from.x, start], [x, start], [x, end], [to.x, end]]; // prettier-ignore
}

/**
 * Points from the bottom of one shape to the top of another.
 * @param {Shape} from
 * @param {Shape} to
 */
function downward(from, to) {
  const x = from.x + from.w / 2;
  const end = to.x + to.w / 2;
  const bottom = from.y + from.h;
  if (Math.abs(x - end) < 4 || to.kind === "more") return [[x, bottom], [x, to.y]]; // prettier-ignore
  return [[x, bottom], [x, to.y - TURN], [end, to.y - TURN], [end, to.y]]; // prettier-ignore
}

/** @type {(label: string, points: number[][], down: boolean) => number[]} */
function labelAt(label, points, down) {
  const [[ax, ay], [bx, by]] = points.slice(-2);
  return down ? [bx + 8, by - 9] : [(ax + bx - 6 * label.length) / 2 - 2, Math.min(ay, by) - 6];
}

/**
 * The map of the whole: a mark for each frame; the frames that are shown, and the selected one, stand out.
 * @param {DrawnPicture} whole
 * @param {(id: string) => void} select
 */
export function miniMap(whole, select) {
  const sx = MAP.width / whole.width;
  const sy = Math.min(1.5 * sx, MAP.height / whole.height);
  const withBreak = new Set(whole.shapes.filter(({ kind }) => kind === "break").map(({ group }) => group));
  const groups = whole.shapes.filter(({ group, kind }) => !group && kind !== "break");
  const marks = groups.map((group) => {
    const broken = withBreak.has(group.id);
    const box = {
      x: group.x * sx,
      y: group.y * sy,
      width: Math.max(2, group.w * sx),
      height: Math.max(1.5, group.h * sy),
    };
    return s("rect", { cls: `dyn-mapdot dyn-mapdot-${broken ? "break" : group.kind}`, ...box, "data-id": group.id });
  });
  const height = Math.max(12, whole.height * sy);
  const label = `map of the split graph: ${marks.length} frames`;
  const svg = s(
    "svg",
    { viewBox: `0 0 ${MAP.width} ${height}`, width: MAP.width, height, "aria-hidden": "true" },
    ...marks,
  );
  const node = h("div", { cls: "dyn-map", title: `${label}; click a mark to go there` }, svg);
  node.addEventListener("click", ({ clientX, clientY }) => {
    const { left, top } = svg.getBoundingClientRect();
    const away = (/** @type {Shape} */ { x, y, w, h }) =>
      Math.hypot((x + w / 2) * sx - (clientX - left), (y + h / 2) * sy - (clientY - top));
    const nearest = groups.reduce((best, group) => (away(group) < away(best) ? group : best), groups[0]);
    if (nearest) select(nearest.id);
  });
  return {
    node,
    /** @type {(shown: Set<string>, focus: string) => void} */
    mark(shown, focus) {
      for (const { dataset, classList } of marks) {
        classList.toggle("dyn-mapdot-on", shown.has(dataset.id || ""));
        classList.toggle("dyn-mapdot-focus", dataset.id === focus);
      }
    },
  };
}
