// What to do first: the one recommendation of a report, in the words that Python made.

import { copyButton } from "./detail.js";
import { button, h, withCode } from "./dom.js";

/** @import { Context, SelectablePart } from "./view" */

/**
 * @param {Context} ctx
 * @returns {SelectablePart & { drawButton(): void }}
 */
export function adviceView(ctx) {
  const node = h("section", { cls: "dyn-do", "aria-label": "what to do first" });
  const tryIt = button("dyn-btn", "Try it", () => ctx.request(ctx.pending.request({ second_call: true })), {
    title: "runs the cell again, then traces its calls with each of the compiler's hints",
  });

  function drawButton() {
    tryIt.hidden = !ctx.canRun() || !ctx.content?.advice?.hints;
    tryIt.disabled = Boolean(ctx.host.get("busy"));
  }

  return {
    node,
    draw({ advice }) {
      node.hidden = !advice;
      if (!advice) return;
      const { first, id, more, copies } = advice;
      node.replaceChildren(
        h("b", { text: "Do this first" }),
        id
          ? button("dyn-first", "", () => ctx.select(id), {}, ...withCode(first))
          : h("span", { cls: "dyn-first" }, ...withCode(first)),
        tryIt,
        ...Object.entries(copies).map(([label, text]) => copyButton(text, label)),
        ...more.map((sentence) => h("p", { cls: "dyn-left" }, ...withCode(sentence))),
      );
      drawButton();
    },
    drawButton,
    highlight: () => () => {},
  };
}
