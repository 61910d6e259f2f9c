// Opens folds in place: the kernel laid out what each one holds; what is below it and to its right makes room.

/** @import { Edge, Foldable, FoldableBox } from "./view" */
/** @typedef {(point: number[]) => number[]} Move */

/**
 * The picture with these folds open, folds in folds as well.
 * @template {Foldable} P
 * @param {P} picture
 * @param {Set<string>} open
 * @param {number} head room for a fold's name above what it holds
 * @returns {P}
 */
export function unfolded(picture, open, head) {
  const folds = picture.boxes.filter((box) => box.inside && open.has(box.id));
  return folds.reduce((shown, { id }) => {
    const fold = /** @type {FoldableBox} */ (shown.boxes.find((box) => box.id === id));
    const inside = unfolded(/** @type {Foldable} */ (fold.inside), open, head);
    return /** @type {P} */ ({ ...shown, ...opened(shown, fold, inside, head) });
  }, picture);
}

/**
 * A picture with one fold open. What is below the fold moves down; frames beside it grow, and so do the
 * arrows of boxes beside it.
 * @param {Foldable} picture
 * @param {FoldableBox} fold
 * @param {Foldable} inside
 * @param {number} head
 * @returns {Foldable}
 */
function opened(picture, fold, inside, head) {
  const right = fold.x + fold.w;
  const bottom = fold.y + fold.h;
  const wider = Math.max(0, inside.width - fold.w);
  const higher = Math.max(0, inside.height + head - fold.h);
  const across = (/** @type {number} */ x) => (x >= right ? x + wider : x);
  const down = (/** @type {number} */ y) => (y >= bottom - 0.5 ? y + higher : y);

  const others = picture.boxes.filter((box) => box.id !== fold.id);
  const beside = new Set(others.filter((b) => down(b.y) === b.y && down(b.y + b.h) > b.y + b.h).map((b) => b.id));
  const moved = (/** @type {FoldableBox} */ box) => ({
    ...box,
    x: across(box.x + box.w / 2) - box.w / 2,
    y: down(box.y),
    h: beside.has(box.id) ? box.h : down(box.y + box.h) - down(box.y),
  });
  const rerouted = (/** @type {Edge} */ arrow) => {
    const around = routed(arrow, ([x, y]) => [across(x), down(y)]);
    const [x, y] = arrow.points[0];
    return beside.has(arrow.source) ? { ...around, points: [[across(x), y], ...around.points] } : around;
  };

  /** @type {Move} */
  const within = ([x, y]) => [x + fold.x, y + fold.y + head];
  const held = (/** @type {FoldableBox} */ box) => ({ ...box, x: box.x + fold.x, y: box.y + fold.y + head });
  const frame = { ...fold, kind: "unfolded", w: fold.w + wider, h: fold.h + higher };
  return {
    width: picture.width + wider,
    height: picture.height + higher,
    groups: [...picture.groups.map(moved), frame, ...inside.groups.map(held)],
    boxes: [...others.map(moved), ...inside.boxes.map(held)],
    arrows: [...picture.arrows.map(rerouted), ...inside.arrows.map((arrow) => routed(arrow, within))],
  };
}

/**
 * An arrow whose points are moved.
 * @param {Edge} arrow
 * @param {Move} move
 * @returns {Edge}
 */
function routed(arrow, move) {
  return { ...arrow, points: arrow.points.map(move), at: arrow.at && move(arrow.at) };
}
