// What `--check` found: its sentences, the search for the line where the numbers differ, and the text of an issue.

import { button, h, withCode } from "./dom.js";
import { copyButton } from "./detail.js";

/** @import { Context, SelectablePart } from "./view" */

/**
 * @param {Context} ctx
 * @returns {SelectablePart & { drawButton(): void }}
 */
export function checkView(ctx) {
  const node = h("section", { cls: "dyn-check", "aria-label": "what the check found" });
  const search = button("dyn-btn", "Where does it begin?", () => ctx.request(ctx.pending.request({ check: "where" })), {
    title: "runs the cell again, then searches the line, what makes it, and what helps",
  });

  function drawButton() {
    search.hidden = !ctx.canRun() || !ctx.content?.check?.searchable;
    search.disabled = Boolean(ctx.host.get("busy"));
  }

  return {
    node,
    draw({ check }) {
      node.hidden = !check?.lines.length;
      if (!check) return;
      const { agrees, lines, id, issue } = check;
      node.classList.toggle("dyn-differs", agrees === false);
      node.replaceChildren(
        h("b", { text: "Check" }),
        search,
        id ? button("dyn-btn", "Show the errors in the graph", () => ctx.select(id)) : "",
        issue ? copyButton(issue, "Text for an issue") : "",
        ...lines.map((line) => h("p", { cls: "dyn-left" }, ...withCode(line))),
      );
      drawButton();
    },
    drawButton,
    highlight: () => () => {},
  };
}
