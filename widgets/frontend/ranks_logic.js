// What the view of ranks computes from its model; needs no page.

/** @import { GroupModel, RankModel, RanksModel, StepModel } from "./rank_wire" */

/**
 * Runs of neighbouring ranks of one group and status: what the strip shows.
 * @param {RankModel[]} ranks
 * @returns {{ group: number, status: string, first: number, last: number }[]} positions, not numbers of ranks
 */
export function runs(ranks) {
  /** @type {{ group: number, status: string, first: number, last: number }[]} */
  const found = [];
  ranks.forEach((rank, at) => {
    const last = found.at(-1);
    if (last && last.group === rank.group && last.status === rank.status) last.last = at;
    else found.push({ group: rank.group, status: rank.status, first: at, last: at });
  });
  return found;
}

/**
 * The rank that a text asks for: its number, or else the first whose words have the text; -1 if there is none.
 * @param {RankModel[]} ranks
 * @param {string} text
 */
export function findRank(ranks, text) {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return -1;
  const number = /^(?:rank\s*)?(\d+)$/.exec(wanted);
  if (number) return ranks.findIndex((rank) => rank.rank === Number(number[1]));
  return ranks.findIndex((rank) => rank.words.toLowerCase().includes(wanted) || rank.status.includes(wanted));
}

/** Most cells of the table that aligns two sequences; longer sequences are paired by position. */
const MOST_ALIGNED = 4_000_000;

/** What a step compiles. @param {StepModel} step */
const compiled = (step) => `${step.name} ${step.place}`;

/**
 * Steps of two groups side by side, the same function in the same row, and the number of the first row that differs (-1:
 * none).
 * The steps of a row are given by their positions; -1: the group has none there.
 * @param {GroupModel} one
 * @param {GroupModel} other
 */
export function sideBySide(one, other) {
  const rows = aligned(one.steps.map(compiled), other.steps.map(compiled)).map((at) => {
    const pair = [one.steps[at[0]] || null, other.steps[at[1]] || null];
    return { at, pair, differs: pair[0]?.same !== pair[1]?.same };
  });
  return { rows, first: rows.findIndex((row) => row.differs) };
}

/**
 * Pairs of positions of two sequences with as many equal elements beside each other as possible.
 * @param {string[]} one
 * @param {string[]} other
 * @returns {[number, number][]}
 */
function aligned(one, other) {
  /** @type {[number, number][]} */
  const pairs = [];
  const [n, m] = [one.length, other.length];
  if (n * m > MOST_ALIGNED) {
    for (let at = 0; at < Math.max(n, m); at++) pairs.push([at < n ? at : -1, at < m ? at : -1]);
    return pairs;
  }
  // longest[i * (m + 1) + j]: how many elements of one[i..] and other[j..] can stand beside each other
  const longest = new Uint32Array((n + 1) * (m + 1));
  const longestFrom = (/** @type {number} */ i, /** @type {number} */ j) => longest[i * (m + 1) + j];
  for (let i = n - 1; i >= 0; i--)
    for (let j = m - 1; j >= 0; j--)
      longest[i * (m + 1) + j] =
        one[i] === other[j] ? longestFrom(i + 1, j + 1) + 1 : Math.max(longestFrom(i + 1, j), longestFrom(i, j + 1));
  let [i, j] = [0, 0];
  while (i < n || j < m) {
    if (i < n && j < m && one[i] === other[j]) pairs.push([i++, j++]);
    else if (i < n && (j === m || longestFrom(i + 1, j) >= longestFrom(i, j + 1))) pairs.push([i++, -1]);
    else pairs.push([-1, j++]);
  }
  return pairs;
}

/**
 * The rows of the matrix: the steps of all groups in one sequence, and for each group which of its steps is in which row.
 * @param {GroupModel[]} groups
 * @returns {{ names: string[], at: number[][] }} -1: the group has no step in the row
 */
export function matrixRows(groups) {
  /** @type {{ what: string, name: string, at: number[] }[]} */
  let rows = [];
  groups.forEach((group, g) => {
    const pairs = aligned(
      rows.map((row) => row.what),
      group.steps.map(compiled),
    );
    rows = pairs.map(([row, step]) => {
      const made = group.steps[step];
      const before = rows[row] || { what: compiled(made), name: made.name, at: Array(g).fill(-1) };
      return { ...before, at: [...before.at, step] };
    });
  });
  return { names: rows.map((row) => row.name), at: groups.map((_, g) => rows.map((row) => row.at[g])) };
}

/**
 * The median of numbers; those below 0 are unknown.
 * @param {number[]} values
 */
export function median(values) {
  const known = values.filter((value) => value >= 0).sort((a, b) => a - b);
  return known.length ? known[known.length >> 1] : -1;
}

/**
 * How far a compile time is above the median of its step: 0 (not slower, or at most 50 ms) to 1 (at least eight times as
 * long).
 * @param {number} time
 * @param {number} usual
 */
export function slowness(time, usual) {
  if (time < 0 || usual < 0 || time <= 50) return 0;
  return Math.max(0, Math.min(1, Math.log2(time / Math.max(usual, 1)) / 3));
}

/** @param {number} milliseconds */
export function duration(milliseconds) {
  if (milliseconds < 0) return "time unknown";
  return milliseconds < 1000
    ? `${milliseconds} ms`
    : `${(milliseconds / 1000).toFixed(milliseconds < 10000 ? 2 : 0)} s`;
}

/**
 * The first difference that one of the two groups has from the other, if the model has it.
 * @param {RanksModel} model
 * @param {number} one
 * @param {number} other
 */
export const differenceOf = (model, one, other) =>
  model.differences.find(
    (d) => (d.group === one && d.reference === other) || (d.group === other && d.reference === one),
  ) || null;
