// The list of graph breaks, the most important first.

import { closest, exclusive, h, idOf, OPTION, reveal, roving } from "./dom.js";

/** @import { Select, SelectablePart } from "./view" */
/** @import { Row } from "./wire" */

/**
 * One break.
 * @param {Row} b
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
    h("span", { cls: "dyn-place", text: b.place }),
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
  const box = h("div", { cls: "dyn-breaks", role: "listbox", "aria-label": "graph breaks" });
  const markSelected = exclusive("aria-selected");
  const mark = roving(box, ".dyn-brow", {
    enter(row) {
      select(idOf(row));
      open();
    },
  });
  box.addEventListener("click", (event) => select(idOf(closest(event, ".dyn-brow"))));
  /** @type {HTMLElement[]} */
  let rows = [];
  return {
    node: box,
    draw(content) {
      // the overview of a large report has them by cause
      rows = content.overview ? [] : content.breaks.map(breakRow);
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
