// The list of breaks: what matters most stands first.

import { h, lamp, reveal, roving } from "./dom.js";

export function breaksView(select, open) {
  const box = h("div", { cls: "dyn-breaks", role: "listbox", "aria-label": "graph breaks" });
  const lamps = lamp("aria-selected");
  const mark = roving(box, ".dyn-brow", {
    enter: (row) => {
      select(row.dataset.id);
      open();
    },
  });
  box.addEventListener("click", (event) => {
    const row = event.target.closest(".dyn-brow");
    if (row) select(row.dataset.id);
  });
  return {
    node: box,
    draw(content) {
      box.hidden = !content.breaks.length;
      box.replaceChildren(
        ...content.breaks.map((b) =>
          h(
            "div",
            {
              cls: `dyn-brow dyn-o-${b.outcome}${b.allowed ? " dyn-allowed" : ""}`,
              role: "option",
              "aria-selected": "false",
              tabindex: "-1",
              "data-id": b.id,
              title: b.type,
            },
            h("span", { cls: "dyn-cut", "aria-hidden": "true", text: "✂" }),
            h("span", { cls: "dyn-place", text: b.place }),
            h("code", { text: b.code }),
            h("span", { cls: "dyn-pill", text: b.allowed ? "allowed" : b.told }),
            h("span", { cls: "dyn-type", text: b.type }),
            h("span", { cls: "dyn-hits", text: b.cost || (b.hits > 1 ? `${b.hits} hits` : "") }),
          ),
        ),
      );
      if (box.firstChild) mark(box.firstChild);
    },
    // Light up the row of what is selected; returns how to bring it into sight.
    light(content, id) {
      const row = [...box.children].find((r) => r.dataset.id === id);
      lamps(row ? [row] : []);
      if (row) mark(row);
      return () => reveal(box, row);
    },
  };
}
