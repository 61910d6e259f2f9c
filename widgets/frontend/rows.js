// A list of rows, one for each break or recompile: by mouse and keyboard, with the selected one marked.

import { closest, exclusive, h, idOf, reveal, roving } from "./dom.js";

/** @import { Select, SelectablePart } from "./view" */
/** @import { ViewModel } from "./wire" */

/**
 * @param {string} cls of the list
 * @param {string} rowClass
 * @param {string} label for screen readers
 * @param {(content: ViewModel) => HTMLElement[]} rowsOf
 * @param {Select} select
 * @param {() => void} open goes to the detail
 * @returns {SelectablePart}
 */
export function rowsView(cls, rowClass, label, rowsOf, select, open) {
  const box = h("div", { cls, role: "listbox", "aria-label": label });
  const markSelected = exclusive("aria-selected");
  const mark = roving(box, `.${rowClass}`, {
    enter(row) {
      select(idOf(row));
      open();
    },
  });
  box.addEventListener("click", (event) => select(idOf(closest(event, `.${rowClass}`))));
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
