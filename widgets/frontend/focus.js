// A part of the split graph: a frame with a box for what leads to it, and what follows, placed anew. The shapes are copies of those that
// Python drew.

import { s } from "./dom.js";
import { plural, rounded } from "./logic.js";

/** @import { Arrow, DrawnPicture, Shape } from "./view" */
/** @typedef {{ id: string, shape: Shape, boxes: Shape[], into: Link[], out: Link[] }} Frame */
/** @typedef {{ arrow: Arrow, from: Frame, to: Frame }} Link */

// Steps shown after a frame; most frames shown, and most neighbours of one frame.
const AFTER = 3;
const MOST = 14;
const NEIGHBOURS = 5;
// Distances: between columns, between rows, around the drawing, from the top of a frame to an arrow at its side.
const COLUMN_GAP = 50;
const ROW_GAP = 46;
const MARGIN = 14;
const TURN = 20;
/** A box for what is not shown. */
const MORE = { w: 172, h: 30 };

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
const entry = (frame) => frame.into[0];

/**
 * A frame, and those that follow, the nearest first.
 * @param {Frame} focus
 * @param {Set<string>} wide ids of frames of which all neighbours are shown
 */
function following(focus, wide) {
  const kept = new Set([focus]);
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
  const text = title.length > 20 ? `${title.slice(0, 19)}…` : title;
  const node = s(
    "g",
    { cls: "dyn-node dyn-k-more" },
    s("title", { text: title }),
    s("rect", { cls: "dyn-main", width: MORE.w, height: MORE.h, rx: 5 }),
    s("text", { cls: "dyn-strong", x: 12, y: MORE.h / 2 + 4, text }),
  );
  return { node, id, kind: "more", group: "", contents: [of], x: 0, y: 0, ...MORE };
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
  return placed(focus, following(focus, wide), whole.svg);
}

/**
 * Place the frames of a tree: what is called to the right, what continues below; each as far up as its column allows.
 * @param {Frame} focus
 * @param {Set<Frame>} kept
 * @param {SVGSVGElement} whole the picture that they are from
 * @returns {DrawnPicture}
 */
function placed(focus, kept, whole) {
  /** @type {Arrow[]} */
  const arrows = [];
  /** @type {SVGElement[]} */
  const labels = [];
  /** Each shape as it is placed, by its id. @type {Map<string, Shape>} */
  const at = new Map();
  /** Where each column ends. @type {number[]} */
  const floors = [];
  const before = entry(focus);
  const column = Math.max(...[...kept].map(({ shape }) => shape.w)) + COLUMN_GAP;
  /** Where a column begins; the first one is narrow if it only has what leads to the root. @param {number} col */
  const left = (col) => MARGIN + (before && col ? MORE.w + COLUMN_GAP + (col - 1) * column : col * column);
  let right = 0;

  /** Put a copy of a shape at a place. @type {(shape: Shape, x: number, y: number) => Shape} */
  const copy = (shape, x, y) => {
    const node = /** @type {SVGElement} */ (shape.node.cloneNode(true));
    node.setAttribute("transform", `translate(${x} ${y})`);
    node.dataset.id = shape.id;
    const moved = { ...shape, node, x, y };
    at.set(shape.id, moved);
    return moved;
  };
  /** Put a copy into a column, not above a height. @type {(shape: Shape, col: number, y: number) => Shape} */
  const put = (shape, col, y) => {
    const top = Math.max(y, floors[col] ?? MARGIN);
    floors[col] = top + shape.h + ROW_GAP;
    return copy(shape, left(col), top);
  };
  /** Draw an arrow between what is placed. @param {Arrow} arrow */
  const join = (arrow) => {
    const [from, to] = [at.get(arrow.source), at.get(arrow.target)];
    if (!from || !to) return;
    const points = route(from, to, at.get(to.group) || to);
    const path = /** @type {SVGPathElement} */ (arrow.path.cloneNode(true));
    path.setAttribute("d", rounded(points, 7));
    Object.assign(path.dataset, { s: arrow.source, t: arrow.target });
    arrows.push({ ...arrow, path });
    if (!arrow.label) return;
    const [[ax, ay], [bx, by]] = points.slice(-2);
    const x = leadsDown(arrow) ? bx + 8 : (ax + bx) / 2 - 3 * arrow.label.length - 2;
    labels.push(
      s("text", { cls: "dyn-label", x, y: leadsDown(arrow) ? to.y - 9 : Math.min(ay, by) - 6, text: arrow.label }),
    );
    right = Math.max(right, x + 6.5 * arrow.label.length);
  };
  /** The arrow to or from a box for what is not shown. @type {(source: string, target: string) => void} */
  const plain = (source, target) => {
    const path = /** @type {SVGPathElement} */ (whole.querySelector(".dyn-arrow")?.cloneNode());
    path.setAttribute("class", "dyn-arrow");
    join({ path, source, target, kind: "", label: "" });
  };
  /** A box for what is not shown after a frame. @type {(frame: Frame, id: string, title: string, col: number, y: number) => void} */
  const standIn = (frame, id, title, col, y) => {
    put(moreBox(id, frame.id, title), col, y);
    plain(frame.id, id);
  };
  /** @type {(frame: Frame, col: number, y: number) => void} */
  const place = (frame, col, y) => {
    const { shape } = frame;
    const { x, y: top } = put(shape, col, y);
    for (const box of frame.boxes) copy(box, box.x + x - shape.x, box.y + top - shape.y);
    const follows = frame.out.filter(({ to }) => entry(to)?.from === frame);
    const mine = follows.filter(({ to }) => kept.has(to) && !at.has(to.id));
    const below = top + shape.h + ROW_GAP;
    for (const { arrow, to } of mine.filter(({ arrow }) => !leadsDown(arrow))) {
      place(to, col + 1, top);
      join(arrow);
    }
    const hidden = follows.filter(({ to }) => !kept.has(to));
    const calls = hidden.filter(({ arrow }) => !leadsDown(arrow)).length;
    const words = plural(calls, "more call");
    const beside = calls && frame === focus; // no column is made for what is not shown
    if (beside) standIn(frame, `more-calls-${frame.id}`, words, col + 1, top + TURN - MORE.h / 2);
    for (const { arrow, to } of mine.filter(({ arrow }) => leadsDown(arrow))) {
      place(to, col, below);
      join(arrow);
    }
    const rest = [!beside && calls && words, hidden.length > calls && "continues …"].filter(Boolean).join(", ");
    if (rest) standIn(frame, `more-after-${frame.id}`, rest, col, below);
  };

  if (before) {
    const title = `${leadsDown(before.arrow) ? "after" : "from"} ${nameOf(before.from.shape)}`;
    const box = put(moreBox(`more-before-${focus.id}`, before.from.id, title), 0, MARGIN + TURN - MORE.h / 2);
    place(focus, 1, MARGIN);
    plain(box.id, focus.id);
  } else place(focus, 0, MARGIN);
  const shapes = [...at.values()];
  const width = Math.max(right, ...shapes.map(({ x, w }) => x + w)) + MARGIN;
  const height = Math.max(...shapes.map(({ y, h }) => y + h)) + MARGIN;
  const inner = (/** @type {Shape} */ { group, kind }) => Boolean(group) || kind === "more" || kind === "break";
  const svg = s(
    "svg",
    { cls: "dyn-picture", viewBox: `0 0 ${width} ${height}` },
    whole.querySelector("defs")?.cloneNode(true),
    shapes.filter((shape) => !inner(shape)).map(({ node }) => node),
    arrows.map(({ path }) => path),
    shapes.filter(inner).map(({ node }) => node),
    labels,
  );
  return { svg, shapes, arrows, width, height };
}

/**
 * The points of an arrow: down to what follows in the same column, past what is between them; or to the side, through the
 * gap before the column of `outer`, which holds the target.
 * @param {Shape} from
 * @param {Shape} to
 * @param {Shape} outer
 */
function route(from, to, outer) {
  const x = from.x + from.w / 2;
  const bottom = from.y + from.h;
  const end = to.y + Math.min(TURN, to.h / 2);
  const beside = to.x >= from.x + from.w;
  if (!beside && to.y - bottom < 2 * ROW_GAP) return [[x, bottom], [x, to.y]]; // prettier-ignore
  const start = beside ? from.y + Math.min(TURN, from.h / 2) : bottom - 6;
  const side = beside ? outer.x - COLUMN_GAP / 2 - 6 : outer.x - 12;
  const out = beside ? from.x + from.w : from.x;
  return Math.abs(start - end) < 1 ? [[out, end], [to.x, end]] : [[out, start], [side, start], [side, end], [to.x, end]]; // prettier-ignore
}
