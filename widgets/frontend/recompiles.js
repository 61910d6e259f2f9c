// The list of recompiles: functions that reached the limit, then recompiles in order.

import { h, OPTION, placeParts } from "./dom.js";
import { rowsView } from "./rows.js";

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
    placeParts(r.place),
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
  return rowsView(
    "dyn-recompiles",
    "dyn-rrow",
    "recompiles",
    (content) => content.recompiles.map(recompileRow),
    select,
    open,
  );
}
