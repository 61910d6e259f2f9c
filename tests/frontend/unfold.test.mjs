import assert from "node:assert/strict";
import { test } from "node:test";
import { module } from "./load.mjs";

const view = await module("unfold");
const HEAD = 34;
const unfolded = (picture, open) => view.unfolded(picture, open, HEAD);

const inside = {
  width: 270,
  height: 300,
  groups: [{ id: "f5", kind: "compiled", x: 14, y: 14, w: 240, h: 100 }],
  boxes: [{ id: "g5", kind: "graph", group: "f5", x: 26, y: 48, w: 216, h: 34 }],
  arrows: [
    {
      source: "f5",
      target: "g5",
      points: [
        [20, 20],
        [20, 60],
      ],
    },
  ],
};
const picture = {
  width: 600,
  height: 400,
  groups: [
    { id: "f0", kind: "compiled", x: 14, y: 14, w: 240, h: 100 },
    { id: "f8", kind: "compiled", x: 14, y: 250, w: 240, h: 100 },
    { id: "f9", kind: "compiled", x: 340, y: 100, w: 240, h: 100 },
  ],
  boxes: [
    { id: "fold0", kind: "fold", x: 14, y: 150, w: 270, h: 34, inside },
    { id: "fold1", kind: "fold", x: 14, y: 360, w: 270, h: 34, inside },
  ],
  arrows: [
    {
      source: "f0",
      target: "fold0",
      points: [
        [100, 114],
        [100, 150],
      ],
      at: [108, 141],
    },
    {
      source: "fold0",
      target: "f8",
      points: [
        [100, 184],
        [100, 250],
      ],
    },
  ],
};
const more = inside.height + 34 - 34;
const shape = (shown, id) => [...shown.groups, ...shown.boxes].find((s) => s.id === id);

test("nothing open is the picture itself", () => assert.equal(unfolded(picture, new Set()), picture));

test("a fold opens in place and what stands below makes room", () => {
  const shown = unfolded(picture, new Set(["fold0"]));
  assert.equal(shown.height, picture.height + more);
  assert.deepEqual(shape(shown, "f0"), picture.groups[0]);
  assert.equal(shape(shown, "f8").y, 250 + more);
  assert.equal(shape(shown, "fold1").y, 360 + more);
  assert.deepEqual([shape(shown, "f9").y, shape(shown, "f9").h], [100, 100 + more]); // beside it: stretched
  const open = shape(shown, "fold0");
  assert.deepEqual([open.kind, open.y, open.h], ["unfolded", 150, inside.height + 34]);
  for (const id of ["f5", "g5"]) {
    const { x, y, w, h } = shape(shown, id);
    assert.ok(x >= open.x && x + w <= open.x + open.w && y >= open.y + 34 && y + h <= open.y + open.h, id);
  }
  assert.deepEqual(shown.arrows[0], picture.arrows[0]);
  assert.deepEqual(shown.arrows[1].points, [
    [100, 184 + more],
    [100, 250 + more],
  ]);
  assert.deepEqual(shown.arrows[2].points, [
    [34, 20 + 150 + 34],
    [34, 60 + 150 + 34],
  ]);
});

test("several folds are open at once, and the picture that was given stays as it was", () => {
  const before = structuredClone(picture);
  const shown = unfolded(picture, new Set(["fold0", "fold1", "gone"]));
  assert.deepEqual(picture, before);
  assert.equal(shown.height, picture.height + 2 * more);
  assert.equal(shape(shown, "fold1").y, 360 + more);
  assert.equal(shown.groups.filter((g) => g.kind === "unfolded").length, 2);
});

const wide = { width: 500, height: 100, groups: [], boxes: [{ id: "n1", x: 14, y: 14, w: 80, h: 28 }], arrows: [] };
const deep = { ...wide, boxes: [...wide.boxes, { id: "2+9", x: 14, y: 60, w: 100, h: 40, inside: wide }] };
const columns = {
  width: 400,
  height: 200,
  groups: [],
  boxes: [
    { id: "0+5", x: 20, y: 100, w: 100, h: 40, inside: deep },
    { id: "a", x: 40, y: 20, w: 60, h: 28 },
    { id: "b", x: 200, y: 100, w: 60, h: 40 },
    { id: "c", x: 200, y: 170, w: 60, h: 28 },
  ],
  arrows: [
    {
      source: "b",
      target: "c",
      points: [
        [230, 140],
        [230, 170],
      ],
    },
  ],
};

test("a fold that grows wider moves what stands to its right; boxes beside it keep their size, their arrows grow", () => {
  const shown = unfolded(columns, new Set(["0+5"]));
  const grown = deep.height + 34 - 40,
    wider = deep.width - 100;
  assert.deepEqual([shown.width, shown.height], [400 + wider, 200 + grown]);
  assert.deepEqual(shape(shown, "a"), columns.boxes[1]);
  assert.deepEqual([shape(shown, "b").x, shape(shown, "b").y, shape(shown, "b").h], [200 + wider, 100, 40]);
  assert.deepEqual([shape(shown, "c").x, shape(shown, "c").y], [200 + wider, 170 + grown]);
  assert.deepEqual(shown.arrows[0].points, [
    [230 + wider, 140],
    [230 + wider, 140 + grown],
    [230 + wider, 170 + grown],
  ]);
});

test("a fold in a fold opens, and the outer one makes room for it", () => {
  const shown = unfolded(columns, new Set(["0+5", "2+9"]));
  const outer = shape(shown, "0+5"),
    inner = shape(shown, "2+9");
  assert.equal(inner.kind, "unfolded");
  assert.ok(inner.x > outer.x && inner.x + inner.w <= outer.x + outer.w && inner.y + inner.h <= outer.y + outer.h);
  assert.equal(unfolded(columns, new Set(["2+9"])).groups.length, 0);
});

test("two folds side by side are open at once and do not overlap", () => {
  const row = { ...columns, boxes: [columns.boxes[0], { ...columns.boxes[2], id: "5+5", inside: wide }] };
  const shown = unfolded(row, new Set(["0+5", "5+5"])),
    left = shape(shown, "0+5"),
    right = shape(shown, "5+5");
  assert.ok(left.x + left.w <= right.x);
  assert.deepEqual([left.w, right.w], [deep.width, wide.width]);
});
