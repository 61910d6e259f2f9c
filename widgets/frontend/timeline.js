// The time line of a call, to scale: one lane for the processor, one for each device.

import { h, lamp, reveal, roving } from "./dom.js";

// Pixels: what is narrower and has such neighbours is no piece of its own.
const ZOOM = 4,
  MOST_ZOOM = 256,
  NARROW = 3;
const percent = (part) => `${part >= 0.1 || part === 0 ? Math.round(part * 100) : (part * 100).toFixed(1)} %`;

// Neighbours of one lane too narrow to be told apart, as one neutral piece that counts them; larger, they come apart.
export function merged(segments, least) {
  const found = [];
  let run = [];
  const close = () => {
    const [first, last] = [run[0], run[run.length - 1]];
    if (run.length < 2) found.push(...run);
    else {
      const w = last.x + last.w - first.x;
      found.push({
        kind: "short",
        lane: first.lane,
        x: first.x,
        w,
        label: `${run.length} short stretches`,
        full: `${run.length} short stretches, ${percent(w)} of the call: zoom in to tell them apart`,
        ids: run.map((s) => s.id),
        id: (run.find((s) => s.id) || first).id,
      });
    }
    run = [];
  };
  for (const s of segments) {
    if (s.w >= least || (run.length && run[0].lane !== s.lane)) close();
    if (s.w < least) run.push(s);
    else found.push(s);
  }
  close();
  return found;
}

export function timeView(select, open) {
  const pane = h("div", { cls: "dyn-lanes" }),
    shares = h("ul", { cls: "dyn-shares", "aria-label": "where the time goes" }),
    inputs = h("details", { cls: "dyn-inputs", open: true });
  const title = h("h2"),
    told = h("div", { cls: "dyn-verdict" });
  let zoom = 1,
    time = null,
    now = "";
  const holds = new Map();
  const scale = (text, name, factor) =>
    h("button", {
      cls: "dyn-btn",
      type: "button",
      text,
      title: name,
      "aria-label": name,
      onclick: () => {
        const middle = (pane.scrollLeft + pane.clientWidth / 2) / zoom;
        zoom = factor ? Math.min(MOST_ZOOM, Math.max(1, zoom * factor)) : 1;
        lay();
        light();
        pane.scrollLeft = middle * zoom - pane.clientWidth / 2;
      },
    });
  const node = h(
    "section",
    { cls: "dyn-time", "aria-label": "run time" },
    h(
      "div",
      { cls: "dyn-bar" },
      title,
      scale("−", "show more of the call", 1 / ZOOM),
      scale("+", "show less of the call, larger", ZOOM),
      scale("fit", "the whole call", 0),
    ),
    told,
    shares,
    pane,
    inputs,
  );
  const mark = roving(pane, ".dyn-seg", {
    vertical: false,
    enter: (piece) => {
      pick(piece);
      open();
    },
  });
  const lamps = lamp("aria-selected");
  const pick = (piece) => {
    if (piece && piece.dataset.id) select(piece.dataset.id);
  };
  pane.addEventListener("click", (event) => pick(event.target.closest(".dyn-seg")));

  function lay() {
    const width = zoom * (pane.clientWidth || 1000),
      shown = merged(time.segments, NARROW / width);
    holds.clear();
    pane.replaceChildren(
      ...time.lanes.map((name, number) =>
        h(
          "div",
          {
            cls: "dyn-lane",
            role: "listbox",
            "aria-orientation": "horizontal",
            "aria-label": `${name}, ${time.total}`,
            "data-name": time.lanes.length > 1 && name,
            style: `width:${zoom * 100}%`,
          },
          ...shown.filter((s) => s.lane === number).map((s) => piece(s, width)),
        ),
      ),
    );
    const first = pane.querySelector(".dyn-seg");
    if (first) mark(first);
  }
  function light() {
    const on = now ? [...holds].filter(([, ids]) => ids.includes(now)).map(([part]) => part) : [];
    lamps(on);
    return () => {
      if (zoom > 1) reveal(pane, on[0]);
    };
  }
  function piece(s, width) {
    const tone = s.tone === undefined ? "" : `;--dyn-tone:var(--dyn-g${s.tone});--dyn-tint:var(--dyn-g${s.tone}-tint)`;
    const part = h(
      "div",
      {
        cls: `dyn-seg dyn-k-${s.kind}`,
        role: "option",
        "aria-selected": "false",
        tabindex: "-1",
        "data-id": s.id,
        title: s.full,
        "aria-label": s.full,
        style: `left:${s.x * 100}%;width:${s.w * 100}%${tone}`,
      },
      h("span", { text: s.kind === "unaccounted" || s.w * width < 6 * Math.min(8, s.label.length) + 8 ? "" : s.label }),
    );
    holds.set(part, s.ids || [s.id]);
    return part;
  }
  return {
    node,
    draw(content) {
      time = content.time;
      node.hidden = !time;
      if (!time) return;
      title.textContent = `Run time · ${time.median} a call under the profiler (${time.spread}; ${time.calls} calls)`;
      title.title = time.devices;
      told.replaceChildren(
        ...[time.verdict, time.first]
          .filter(Boolean)
          .map((text, i) =>
            text === time.first && time.first_id
              ? h("button", { cls: "dyn-first", type: "button", text, onclick: () => select(time.first_id) })
              : h("p", { text }),
          ),
      );
      shares.replaceChildren(
        ...time.shares.map((s) =>
          h(
            "li",
            { title: s.full },
            h("i", { cls: `dyn-swatch dyn-k-${s.kind}`, "aria-hidden": "true" }),
            `${s.name} `,
            h("b", { text: percent(s.part) }),
          ),
        ),
      );
      inputs.hidden = !time.inputs.length;
      inputs.replaceChildren(
        h("summary", { text: time.inputs_told }),
        h(
          "table",
          {},
          ...time.inputs.map((run, number) =>
            h(
              "tr",
              { cls: `dyn-in-${run.outcome}` },
              h("td", { text: `${number + 1}` }),
              h("td", {}, h("code", { text: run.arguments })),
              h(
                "td",
                {},
                run.id
                  ? h("button", { cls: "dyn-link", type: "button", text: run.words, onclick: () => select(run.id) })
                  : run.words,
              ),
            ),
          ),
        ),
      );
      lay();
    },
    light(content, id) {
      now = id;
      return light();
    },
  };
}
