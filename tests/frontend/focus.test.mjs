// The part of a split graph around a frame, and the rows of a tree that are in sight.

import assert from "node:assert/strict";
import test from "node:test";
import { focused, framesOf } from "../../widgets/frontend/focus.js";
import { inSight } from "../../widgets/frontend/logic.js";

/** As much of an element as copying and placing shapes needs. */
class Element {
  dataset = {};
  children = [];
  setAttribute() {}
  append(...nodes) {
    this.children.push(...nodes);
  }
  replaceChildren() {}
  cloneNode() {
    return Object.assign(new Element(), { textContent: this.textContent });
  }
  querySelector() {
    return Object.assign(new Element(), { textContent: this.textContent });
  }
}
globalThis.Node = Element;
globalThis.document = { createElementNS: () => new Element() };

const group = (id) => ({
  ...{ id, kind: "compiled", group: "", contents: [], x: 0, y: 0, w: 246, h: 60 },
  node: Object.assign(new Element(), { textContent: id }),
});
const calls = (source, target) => ({ source, target, kind: "calls", label: "calls", path: new Element() });
const chain = (n) => [...Array(n).keys()].map((i) => `f${i}`);

/** A caller with many calls, each of which calls another. */
function wide(n) {
  const ids = chain(2 * n + 1);
  const arrows = chain(n).flatMap((_, i) => [calls("f0", `f${i + 1}`), calls(`f${i + 1}`, `f${n + i + 1}`)]);
  return { svg: new Element(), width: 0, height: 0, shapes: ids.map(group), arrows };
}

const shown = (picture) => picture.shapes.filter(({ kind }) => kind !== "more").map(({ id }) => id);

test("a frame is shown with what leads to it and what follows, and what is not shown has a box", () => {
  const frames = framesOf(wide(20));
  const all = focused(frames, "f0", new Set());
  assert.deepEqual(shown(all), ["f0", "f1", "f2", "f3", "f4", "f5"]);
  const boxes = all.shapes.filter(({ kind }) => kind === "more").map(({ id }) => id);
  assert.deepEqual(boxes.slice(-1), ["more-calls-f0"]);
  assert.ok(boxes.includes("more-calls-f1") || boxes.includes("more-after-f1"), String(boxes));
  const one = focused(frames, "f1", new Set());
  assert.deepEqual(shown(one), ["f1", "f21"]);
  assert.deepEqual(
    one.shapes.filter(({ kind }) => kind === "more").map(({ id }) => id),
    ["more-before-f1"],
  );
});

test("all calls of a frame are shown where that was asked for", () => {
  const frames = framesOf(wide(20));
  assert.equal(shown(focused(frames, "f0", new Set(["f0"]))).length, 21);
});

test("every arrow joins what is drawn, and frames are apart", () => {
  const frames = framesOf(wide(6));
  for (const id of frames.frames.keys()) {
    const { shapes, arrows } = focused(frames, id, new Set());
    const ids = new Set(shapes.map((shape) => shape.id));
    for (const { source, target } of arrows) assert.ok(ids.has(source) && ids.has(target));
    const over = shapes.filter((a) => shapes.some((b) => a !== b && a.x === b.x && a.y < b.y + b.h && b.y < a.y + a.h));
    assert.deepEqual(over, []);
  }
});

test("frames that call each other in a circle end", () => {
  const picture = { ...wide(0), shapes: chain(2).map(group), arrows: [calls("f0", "f1"), calls("f1", "f0")] };
  assert.ok(focused(framesOf(picture), "f1", new Set()));
  assert.equal(focused(framesOf({ ...picture, shapes: [], arrows: [] }), "f1", new Set()), null);
});

test("rows are in sight where their callers are open", () => {
  const rows = [0, 1, 2, 1, 1, 2].map((depth) => ({ depth }));
  assert.deepEqual(inSight(rows, new Set([0])), [0, 1, 3, 4]);
  assert.deepEqual(inSight(rows, new Set([0, 1, 4])), [0, 1, 2, 3, 4, 5]);
});
