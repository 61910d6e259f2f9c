// The time line of a call, to scale: one lane for the processor, one for each device.

import { button, h } from "./dom.js";
import { lanesView, shareItems } from "./lanes.js";

/** @import { Select, SelectablePart } from "./view" */
/** @import { TimeLine } from "./wire" */

/**
 * The table of inputs, and what was compiled for each.
 * @param {TimeLine} time
 * @param {Select} select
 */
function inputsTable(time, select) {
  const rows = time.inputs.map(({ arguments: given, outcome, words, id }, i) =>
    h(
      "tr",
      { cls: `dyn-in-${outcome}` },
      h("td", { text: i + 1 }),
      h("td", {}, h("code", { text: given })),
      h("td", {}, id ? button("dyn-link", words, () => select(id)) : words),
    ),
  );
  return [h("summary", { text: time.inputs_summary }), h("table", { cls: "dyn-table" }, ...rows)];
}

/**
 * @param {Select} select
 * @param {() => void} open goes to the detail
 * @returns {SelectablePart}
 */
export function timeView(select, open) {
  const lanes = lanesView("the call", select, open);
  const shares = h("ul", { cls: "dyn-shares", "aria-label": "where the time goes" });
  const inputs = h("details", { cls: "dyn-inputs", open: true });
  const title = h("h2");
  const summary = h("div", { cls: "dyn-verdict" });
  const bar = h("div", { cls: "dyn-bar" }, title, ...lanes.buttons);
  const node = h("section", { cls: "dyn-time", "aria-label": "run time" }, bar, summary, shares, lanes.pane, inputs);

  return {
    node,
    draw({ time }) {
      node.hidden = !time;
      if (!time) return;
      title.textContent = `Run time · ${time.call}`;
      title.title = time.devices;
      summary.replaceChildren(...(time.verdict ? [h("p", { text: time.verdict })] : []));
      shares.replaceChildren(h("li", { text: time.profiled }), ...shareItems(time.shares));
      inputs.hidden = !time.inputs.length;
      inputs.replaceChildren(...inputsTable(time, select));
      lanes.draw(time);
    },
    highlight: (_, id) => lanes.highlight(id),
  };
}
