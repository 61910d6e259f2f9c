// Where the time of the compiles went: its phases to scale, the most expensive ones, the caches.

import { button, h } from "./dom.js";
import { kindClass, lanesView, shareItems } from "./lanes.js";

/** @import { Select, SelectablePart } from "./view" */
/** @import { PhaseRow, TunedRow } from "./wire" */

/**
 * @param {string} where
 * @param {string} id
 * @param {Select} select
 */
const frameLink = (where, id, select) => (id ? button("dyn-link", where, () => select(id)) : where);

/**
 * A table's head, and its rows.
 * @param {string[]} names
 * @param {HTMLElement[]} rows
 */
const withHead = (names, rows) => [h("tr", {}, ...names.map((text) => h("th", { text, scope: "col" }))), ...rows];

/**
 * One of the most expensive phases.
 * @param {PhaseRow} row
 * @param {Select} select
 */
const phaseRow = ({ name, kind, what, own, total, count, where, id }, select) =>
  h(
    "tr",
    {},
    h("td", { cls: "dyn-number", text: own }),
    h("td", { cls: "dyn-number", text: total }),
    h("td", { cls: "dyn-number", text: count > 1 ? `${count}×` : "" }),
    h("td", {}, h("code", { text: name })),
    h("td", {}, h("i", { cls: `dyn-swatch ${kindClass(kind)}`, "aria-hidden": "true" }), what),
    h("td", {}, frameLink(where, id, select)),
  );

/**
 * An operation for which kernels were timed.
 * @param {TunedRow} row
 * @param {Select} select
 */
const tunedRow = ({ name, tried, best, where, id }, select) =>
  h(
    "tr",
    {},
    h("td", {}, h("code", { text: name })),
    h("td", { text: tried }),
    h("td", {}, h("code", { text: best })),
    h("td", {}, frameLink(where, id, select)),
  );

/**
 * @param {Select} select
 * @param {() => void} open goes to the detail
 * @returns {SelectablePart}
 */
export function compileTimeView(select, open) {
  const lanes = lanesView("the compile time", select, open);
  const shares = h("ul", { cls: "dyn-shares", "aria-label": "where the compile time goes" });
  const title = h("h2");
  const table = h("table", { cls: "dyn-table" });
  const tuned = h("table", { cls: "dyn-table", "aria-label": "autotuning" });
  const words = h("div", { cls: "dyn-verdict" });
  const bar = h("div", { cls: "dyn-bar" }, shares, ...lanes.buttons);
  const heads = ["alone", "with inner", "", "phase", "part of the compiler", "most of it in"];
  const folded = h(
    "details",
    { cls: "dyn-compile-time" },
    h("summary", {}, title),
    bar,
    lanes.pane,
    words,
    table,
    tuned,
  );
  const node = h("section", { cls: "dyn-time dyn-compile", "aria-label": "compile time" }, folded);
  /** @type {import("./wire").CompileTimeLine | null} */
  let time = null;
  let stale = false;
  const draw = () => {
    if (!time || !folded.open || !stale) return;
    stale = false;
    lanes.draw(time); // while the box was folded, it had no width
  };
  folded.addEventListener("toggle", draw);

  return {
    node,
    draw(content) {
      time = content.compile_time;
      node.hidden = !time;
      if (!time) return;
      title.textContent = time.title;
      shares.replaceChildren(...shareItems(time.shares));
      const lines = [...time.repeats, ...time.caches, ...time.notes];
      words.replaceChildren(...lines.map((text) => h("p", { text })));
      table.replaceChildren(
        ...withHead(
          heads,
          time.rows.map((row) => phaseRow(row, select)),
        ),
      );
      tuned.hidden = !time.tuned.length;
      tuned.replaceChildren(
        ...withHead(
          ["autotuning of", "", "fastest", "in the frame"],
          time.tuned.map((row) => tunedRow(row, select)),
        ),
      );
      stale = true;
      draw();
    },
    highlight: (_, id) => lanes.highlight(id),
  };
}
