// The list of recompiles: what reached the limit first, then in the order of the calls.

import { closest, exclusive, h, idOf, OPTION, reveal, roving } from "./dom.js";

/** @import { Select, SelectablePart } from "./view" */
/** @import { RecompileRow } from "./wire" */

/**
 * One recompile, or a function that reached the limit.
 * @param {RecompileRow} r
 */
function recompileRow(r) {
  return h(
    "div",
    { cls: `dyn-rrow${r.refused ? " dyn-refused" : ""}`, ...OPTION, "data-id": r.id, title: r.full },
    h("span", { cls: "dyn-again", "aria-hidden": "true", text: r.refused ? "✗" : "↻" }),
    h("span", { cls: "dyn-place", text: r.place }),
    h("code", { text: r.name }),
    h("span", { cls: "dyn-cause", text: r.refused ? `recompile limit reached: ${r.cause}` : r.cause }),
    h("span", { cls: "dyn-hits", text: r.facts }),
  );
}

/**
 * @param {Select} select
 * @param {() => void} open goes to the detail
 * @returns {SelectablePart}
 */
export function recompilesView(select, open) {
  const box = h("div", { cls: "dyn-recompiles", role: "listbox", "aria-label": "recompiles" });
  const markSelected = exclusive("aria-selected");
  const mark = roving(box, ".dyn-rrow", {
    enter(row) {
      select(idOf(row));
      open();
    },
  });
  box.addEventListener("click", (event) => select(idOf(closest(event, ".dyn-rrow"))));
  /** @type {HTMLElement[]} */
  let rows = [];
  return {
    node: box,
    draw(content) {
      // the overview of a large report has them by cause
      rows = (content.overview ? [] : content.recompiles).map(recompileRow);
      box.hidden = !rows.length;
      box.replaceChildren(...rows);
      if (rows[0]) mark(rows[0]);
    },
    highlight(_, id) {
      const row = rows.find((r) => idOf(r) === id);
      markSelected(row ? [row] : []);
      if (row) mark(row);
      return () => reveal(box, row);
    },
  };
}
