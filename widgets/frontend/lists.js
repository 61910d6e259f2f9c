// The lists of graph breaks and of recompiles: a row for each, by mouse and keyboard, with the selected one marked.

import { closest, exclusive, h, idOf, OPTION, placeParts, reveal, roving } from "./dom.js";

/** @import { Select, SelectablePart } from "./view" */
/** @import { BreakRow, RecompileRow, ViewModel } from "./wire" */

/** One break. @param {BreakRow} b */
const breakRow = (b) =>
  h(
    "div",
    {
      cls: `dyn-item dyn-brow dyn-o-${b.outcome}${b.allowed ? " dyn-allowed" : ""}`,
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

/** One recompile, or a function that reached the limit. @param {RecompileRow} r */
const recompileRow = (r) =>
  h(
    "div",
    { cls: `dyn-item${r.refused ? " dyn-refused" : ""}`, ...OPTION, "data-id": r.id, title: r.full },
    h("span", { cls: "dyn-again", "aria-hidden": "true", text: r.refused ? "✗" : "↻" }),
    placeParts(r.place),
    h("code", { text: r.name }),
    h("span", { cls: "dyn-cause", text: r.refused ? `recompile limit reached: ${r.cause}` : r.cause }),
    h("span", { cls: "dyn-hits", text: r.facts }),
  );

/**
 * @param {string} cls of the list
 * @param {string} label for screen readers
 * @param {(content: ViewModel) => HTMLElement[]} rowsOf
 * @param {Select} select
 * @param {() => void} open goes to the detail
 * @returns {SelectablePart}
 */
function listView(cls, label, rowsOf, select, open) {
  const box = h("div", { cls: `dyn-list ${cls}`, role: "listbox", "aria-label": label });
  const markSelected = exclusive("aria-selected");
  const mark = roving(box, ".dyn-item", {
    enter(row) {
      select(idOf(row));
      open();
    },
  });
  box.addEventListener("click", (event) => select(idOf(closest(event, ".dyn-item"))));
  /** @type {HTMLElement[]} */
  let rows = [];
  return {
    node: box,
    draw(content) {
      // a large report lists these rows in its overview, by cause
      rows = content.overview ? [] : rowsOf(content);
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

/** @type {(select: Select, open: () => void) => SelectablePart[]} the lists of breaks and of recompiles */
export const listViews = (select, open) => [
  listView("dyn-breaks", "graph breaks", ({ breaks }) => breaks.map(breakRow), select, open),
  listView("dyn-recompiles", "recompiles", ({ recompiles }) => recompiles.map(recompileRow), select, open),
];
