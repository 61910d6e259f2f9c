// The list of graph breaks, the most important first.

import { h, OPTION, placeParts } from "./dom.js";
import { rowsView } from "./rows.js";

/** @import { Select, SelectablePart } from "./view" */
/** @import { BreakRow } from "./wire" */

/**
 * One break.
 * @param {BreakRow} b
 */
function breakRow(b) {
  return h(
    "div",
    {
      cls: `dyn-brow dyn-o-${b.outcome}${b.allowed ? " dyn-allowed" : ""}`,
      ...OPTION,
      "data-id": b.id,
      title: b.type,
    },
    h("span", { cls: "dyn-cut", "aria-hidden": "true", text: "✂" }),
    placeParts(b.place),
    h("code", { text: b.code }),
    h("span", { cls: "dyn-pill", text: b.allowed ? "allowed" : b.outcome_text }),
    h("span", { cls: "dyn-type", text: b.type }),
    h("span", { cls: "dyn-hits", text: b.cost || (b.hits > 1 ? `${b.hits} hits` : "") }),
  );
}

/**
 * @param {Select} select
 * @param {() => void} open goes to the detail
 * @returns {SelectablePart}
 */
export function breaksView(select, open) {
  return rowsView("dyn-breaks", "dyn-brow", "graph breaks", (content) => content.breaks.map(breakRow), select, open);
}
