// Folds opened in place: the kernel laid out what each one holds; what stands below it makes room.

// As split.UNFOLD_HEAD: room for a fold's name above what it holds.
const HEAD = 34;

const held = (shape, fold) => ({ ...shape, x: shape.x + fold.x, y: shape.y + fold.y + HEAD });

// Every height below the fold moves by the same amount; what stands beside it is stretched, so that nothing overlaps.
function opened(picture, fold) {
  const { inside } = fold, end = fold.y + fold.h, more = inside.height + HEAD - fold.h;
  const down = (y) => (y >= end - 0.5 ? y + more : y);
  const moved = (shape) => ({ ...shape, y: down(shape.y), h: down(shape.y + shape.h) - down(shape.y) });
  const routed = (arrow, place) => ({ ...arrow, points: arrow.points.map(place), at: arrow.at && place(arrow.at) });
  const around = ([x, y]) => [x, down(y)], within = ([x, y]) => [x + fold.x, y + fold.y + HEAD];
  return {
    ...picture,
    height: picture.height + more,
    groups: [...picture.groups.map(moved), { ...fold, kind: "unfolded", h: fold.h + more }, ...inside.groups.map((g) => held(g, fold))],
    boxes: [...picture.boxes.filter((b) => b.id !== fold.id).map(moved), ...inside.boxes.map((b) => held(b, fold))],
    arrows: [...picture.arrows.map((a) => routed(a, around)), ...inside.arrows.map((a) => routed(a, within))],
  };
}

// The picture with these folds open; the lowest one first, so that it moves none of the others.
export function unfolded(picture, open) {
  const folds = picture.boxes.filter((b) => b.inside && open.has(b.id)).sort((a, b) => b.y - a.y);
  return folds.reduce(opened, picture);
}
