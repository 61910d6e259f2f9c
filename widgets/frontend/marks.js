// What the marks and words of the view mean: folded, in the header.

import { h } from "./dom.js";

/** Class, mark and meaning. @type {[string, string, string][]} */
const MARKS = [
  ["dyn-b-graph dyn-tone-0", "0", "graph 0 captured this line; it has the same color in the split graph"],
  ["dyn-b-break", "✂", "graph break: the compiler cannot trace this expression, so Python runs it"],
  ["dyn-b-skip", "–", "a line of a skipped or failed frame: it runs eagerly"],
  ["dyn-b-skip", "…", "a line of a compile without a recorded end"],
  ["dyn-no dyn-in-allow", "7", "a region in which graph breaks are allowed"],
  ["dyn-no dyn-in-error", "7", "a region in which graph breaks are errors"],
  ["dyn-again", "↻", "recompile: a guard failed, and the function was compiled again"],
  ["", "frame 0/1", "the second compile (1) of the first function (0)"],
  ["", "runs eagerly", "runs as without torch.compile"],
  ["", "resumes, ↳", "the rest of a function after a graph break, compiled on its own"],
  ["", "skipped frame", "it runs eagerly; functions that it calls may be compiled"],
  ["", "empty frame", "nothing in it had to be compiled"],
  ["", "2 hits", "the same graph break, seen from 2 frames"],
  ["", "2 of 8 versions", "compiled versions in the cache of a function, and the recompile limit"],
  ["", "◆", "your own code; other names are those of libraries"],
];

/** @param {[string, string, string]} entry */
function row([cls, mark, meaning]) {
  const badge = cls.startsWith("dyn-b-") && h("span", { cls: "dyn-badge" }, h("b", { cls, text: mark }));
  return [h("dt", {}, badge || h("span", { cls, text: mark })), h("dd", { text: meaning })];
}

export const marksView = () =>
  h(
    "details",
    { cls: "dyn-marks" },
    h("summary", { text: "Legend", title: "what the marks and words mean" }),
    h("dl", { cls: "dyn-facts" }, ...MARKS.flatMap(row)),
  );
