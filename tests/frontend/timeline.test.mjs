import assert from "node:assert/strict";
import { test } from "node:test";
import { module } from "./load.mjs";

const { merged } = await module("timeline");

const piece = (x, w, id, lane = 0) => ({ kind: "gap", lane, x, w, label: "gap", full: `gap ${id}`, id });

test("what is wide enough stays, also alone what is not", () => {
  const segments = [piece(0, 0.5, "b0"), piece(0.5, 0.0001, "b1"), piece(0.5001, 0.4999, "b2")];
  assert.deepEqual(merged(segments, 0.001), segments);
});

test("narrow neighbours become one neutral piece that counts them and stands for each", () => {
  const narrow = Array.from({ length: 400 }, (_, i) => piece(0.2 + i / 4000, 1 / 4000, i % 2 ? `b${i}` : ""));
  const shown = merged([piece(0, 0.2, "g0"), ...narrow, piece(0.3, 0.7, "g1")], 0.001);
  assert.deepEqual(
    shown.map((s) => s.kind),
    ["gap", "short", "gap"],
  );
  const [, joined] = shown;
  assert.match(joined.full, /^400 short stretches, 10(\.0)?% of the call: zoom in to see each$/);
  assert.ok(Math.abs(joined.x - 0.2) < 1e-9 && Math.abs(joined.w - 0.1) < 1e-9);
  assert.equal(joined.id, "b1");
  assert.ok(joined.ids.includes("b399"));
  assert.equal(merged(narrow, 0.0001).length, 400); // larger, they come apart
});

test("lanes are not mixed", () => {
  const shown = merged(
    [piece(0, 0.0001, "a"), piece(0.0002, 0.0001, "b"), piece(0, 0.0001, "c", 1), piece(0.0002, 0.0001, "d", 1)],
    0.001,
  );
  assert.deepEqual(
    shown.map((s) => [s.lane, s.ids]),
    [
      [0, ["a", "b"]],
      [1, ["c", "d"]],
    ],
  );
});

test("narrow pieces far from one another stay apart: what is between them is empty", () => {
  const far = [piece(0, 0.0001, "a"), piece(0.5, 0.0001, "b"), piece(0.9, 0.0001, "c")];
  assert.deepEqual(merged(far, 0.001), far);
});
