// What the view of ranks computes from its model; needs no page.

/** @import { GroupModel, RankModel, RanksModel } from "./rank_wire" */

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

/**
 * Steps of two groups side by side, and the number of the first that differs (-1: none).
 * @param {GroupModel} one
 * @param {GroupModel} other
 */
export function sideBySide(one, other) {
  const count = Math.max(one.steps.length, other.steps.length);
  const rows = Array.from({ length: count }, (_, n) => {
    const pair = [one.steps[n] || null, other.steps[n] || null];
    return { number: n, pair, differs: pair[0]?.same !== pair[1]?.same };
  });
  return { rows, first: rows.findIndex((row) => row.differs) };
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
 * How far a compile time is above the median of its step: 0 (not slower) to 1 (eight times as long, or more).
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
