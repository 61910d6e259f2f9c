// Folds opened in place: the kernel laid out what each one holds; what stands below it and to its right makes room.

// As split.UNFOLD_HEAD: room for a fold's name above what it holds.
const HEAD = 34;

const held = (shape, fold) => ({ ...shape, x: shape.x + fold.x, y: shape.y + fold.y + HEAD });

// What stands below moves by one height: frames beside it are stretched, from boxes beside it the arrows are.
function opened(picture, fold, open) {
  const inside = unfolded(fold.inside, open),
    right = fold.x + fold.w,
    end = fold.y + fold.h;
  const wider = Math.max(0, inside.width - fold.w),
    more = Math.max(0, inside.height + HEAD - fold.h);
  const across = (x) => (x >= right ? x + wider : x),
    down = (y) => (y >= end - 0.5 ? y + more : y);
  const beside = new Set(
    picture.boxes.filter((b) => b.id !== fold.id && down(b.y) === b.y && down(b.y + b.h) > b.y + b.h).map((b) => b.id),
  );
  const moved = (shape) => ({
    ...shape,
    x: across(shape.x + shape.w / 2) - shape.w / 2,
    y: down(shape.y),
    h: beside.has(shape.id) ? shape.h : down(shape.y + shape.h) - down(shape.y),
  });
  const routed = (arrow, place) => ({ ...arrow, points: arrow.points.map(place), at: arrow.at && place(arrow.at) });
  const around = ([x, y]) => [across(x), down(y)],
    start = (a) => (beside.has(a.source) ? [[across(a.points[0][0]), a.points[0][1]]] : []),
    within = ([x, y]) => [x + fold.x, y + fold.y + HEAD];
  return {
    ...picture,
    width: picture.width + wider,
    height: picture.height + more,
    groups: [
      ...picture.groups.map(moved),
      { ...fold, kind: "unfolded", w: fold.w + wider, h: fold.h + more },
      ...inside.groups.map((g) => held(g, fold)),
    ],
    boxes: [...picture.boxes.filter((b) => b.id !== fold.id).map(moved), ...inside.boxes.map((b) => held(b, fold))],
    arrows: [
      ...picture.arrows.map((a) => ({ ...routed(a, around), points: [...start(a), ...a.points.map(around)] })),
      ...inside.arrows.map((a) => routed(a, within)),
    ],
  };
}

// The picture with these folds open, also folds in folds.
export function unfolded(picture, open) {
  const folds = picture.boxes.filter((b) => b.inside && open.has(b.id));
  return folds.reduce(
    (shown, { id }) =>
      opened(
        shown,
        shown.boxes.find((b) => b.id === id),
        open,
      ),
    picture,
  );
}
