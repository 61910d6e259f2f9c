// What the view of ranks computes.

import assert from "node:assert/strict";
import { test } from "node:test";
import { module } from "./load.mjs";

const { duration, findRank, median, runs, sideBySide, slowness } = await module("ranks_logic");
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

test("steps of two groups stand side by side", () => {
  const group = (...same) => ({ steps: same.map((value) => ({ same: value })) });
  const { rows, first } = sideBySide(group("a", "b", "c"), group("a", "x"));
  assert.equal(first, 1);
  assert.deepEqual(
    rows.map((row) => row.differs),
    [false, true, true],
  );
  assert.equal(rows[2].pair[1], null);
  assert.equal(sideBySide(group("a"), group("a")).first, -1);
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
