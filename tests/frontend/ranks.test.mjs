// What the view of ranks computes.

import assert from "node:assert/strict";
import { test } from "node:test";
import { module } from "./load.mjs";

const { duration, findRank, matrixRows, median, runs, sideBySide, slowness } = await module("ranks_logic");
const rank = (number, group, status = "finished") => ({
  rank: number,
  group,
  status,
  words: `rank ${number} on node${number >> 3}`,
});

test("neighbouring ranks of one group and status are one run", () => {
  const ranks = [rank(0, 0), rank(1, 0), rank(2, 1), rank(4, 0), rank(5, 0, "failed")];
  assert.deepEqual(
    runs(ranks).map((run) => [run.group, run.first, run.last, run.status]),
    [
      [0, 0, 1, "finished"],
      [1, 2, 2, "finished"],
      [0, 3, 3, "finished"],
      [0, 4, 4, "failed"],
    ],
  );
  assert.deepEqual(runs([]), []);
});

test("a rank is found by number, host or status", () => {
  const ranks = [rank(0, 0), rank(8, 0), rank(12, 1, "failed")];
  assert.equal(findRank(ranks, "12"), 2);
  assert.equal(findRank(ranks, " Rank 8 "), 1);
  assert.equal(findRank(ranks, "node1"), 1);
  assert.equal(findRank(ranks, "failed"), 2);
  assert.equal(findRank(ranks, "99"), -1);
  assert.equal(findRank(ranks, ""), -1);
});

test("steps of two groups stand side by side, the same function beside itself", () => {
  const group = (...steps) => ({
    steps: steps.map(([name, same]) => ({ name, place: "f.py:1", same: same || name })),
  });
  const { rows, first } = sideBySide(
    group(["f"], ["g"], ["h", "other"]),
    group(["f"], ["rest of f"], ["g"], ["h"], ["k"]),
  );
  assert.deepEqual(
    rows.map((row) => row.at),
    [
      [0, 0],
      [-1, 1],
      [1, 2],
      [2, 3],
      [-1, 4],
    ],
  );
  assert.deepEqual(
    rows.map((row) => row.differs),
    [false, true, false, true, true],
  );
  assert.equal(first, 1);
  assert.equal(rows[1].pair[0], null);
  assert.equal(sideBySide(group(["f"]), group(["f"])).first, -1);
});

test("the matrix has a row for each step of any group", () => {
  const group = (...names) => ({ steps: names.map((name) => ({ name, place: "", same: name })) });
  const { names, at } = matrixRows([group("f", "g"), group("f", "rest", "g"), group("g", "k")]);
  assert.deepEqual(names, ["f", "rest", "g", "k"]);
  assert.deepEqual(at, [
    [0, -1, 1, -1],
    [0, 1, 2, -1],
    [-1, -1, 0, 1],
  ]);
  assert.deepEqual(matrixRows([]), { names: [], at: [] });
});

test("of very long sequences, positions stand side by side", () => {
  const steps = Array.from({ length: 2001 }, (_, n) => ({ name: `f${n}`, place: "", same: String(n) }));
  const { rows } = sideBySide({ steps }, { steps: steps.slice(1) });
  assert.deepEqual(rows[2000].at, [2000, -1]);
  assert.ok(rows[0].differs);
});

test("times", () => {
  assert.equal(median([-1, 5, 1, 3]), 3);
  assert.equal(median([-1]), -1);
  assert.equal(slowness(1000, 1000), 0);
  assert.equal(slowness(8000, 1000), 1);
  assert.equal(slowness(-1, 1000), 0);
  assert.equal(duration(-1), "time unknown");
  assert.equal(duration(1234), "1.23 s");
});
