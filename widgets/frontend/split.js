// The split graph: shapes at the positions that the kernel computed, with zoom, fit, search and the keyboard.

import { h, lamp, reveal, s } from "./dom.js";
import { rounded, search, step } from "./logic.js";
import { unfolded } from "./unfold.js";

let serial = 0;

// Before the name of a fold: a triangle that says whether it is open.
export const triangle = (b, down) => s("path", { cls: "dyn-fold", d: down ? `M${b.x + 11} ${b.y + 14}h9l-4.5 6z` : `M${b.x + 13} ${b.y + b.h / 2 - 4.5}v9l6 -4.5z` });

// A fold that is open: the frame around what it holds.
export const openShape = (g) => [s("rect", { cls: "dyn-main", x: g.x, y: g.y, width: g.w, height: g.h, rx: 8 }), triangle(g, true), s("text", { x: g.x + 26, y: g.y + 21, cls: "dyn-strong", text: g.title }),
  s("text", { x: g.x + g.w - 12, y: g.y + 21, cls: "dyn-soft", "text-anchor": "end", text: g.note })];

function groupShape(g, ids) {
  if (g.kind === "unfolded") return openShape(g);
  const head = 26 + 16 * (g.lines || []).length;
  return [
    g.badge === "recompile" && s("rect", { cls: "dyn-frame", x: g.x + 4, y: g.y - 4, width: g.w, height: g.h, rx: 8 }),
    s("rect", { cls: "dyn-frame dyn-main", x: g.x, y: g.y, width: g.w, height: g.h, rx: 8, fill: g.kind === "skipped" ? `url(#${ids.hatch})` : null }),
    g.kind === "skipped" && s("rect", { cls: "dyn-under", x: g.x + 5, y: g.y + 5, width: g.w - 10, height: head, rx: 5 }),
    s("text", { x: g.x + 12, y: g.y + 22, cls: "dyn-name", text: g.title }),
    s("text", { x: g.x + g.w - 12, y: g.y + 22, cls: "dyn-soft dyn-mono", "text-anchor": "end", text: g.note }),
    ...(g.lines || []).map((line, i) => s("text", { x: g.x + 12, y: g.y + 40 + 16 * i, cls: "dyn-soft", text: line })),
  ];
}

// As shapes.REGION_HEIGHT: the strip above a break that names its region.
const STRIP = 20;

function boxShape(b) {
  const strip = b.kind === "break" && b.region ? STRIP : 0, top = b.y + strip, height = b.h - strip;
  const round = b.kind === "break" ? height / 2 : 5, inset = b.kind === "break" ? 14 : 12, shift = b.inside ? 14 : 0, y = top + height / 2 + 4;
  return [
    strip && s("rect", { cls: "dyn-area", x: b.x - 6, y: b.y, width: b.w + 12, height: b.h + 6, rx: 8 }),
    strip && s("text", { cls: "dyn-soft", x: b.x + 6, y: b.y + 14, text: b.lines[0] }),
    s("rect", { cls: "dyn-main", x: b.x, y: top, width: b.w, height, rx: round }),
    shift && triangle(b, false),
    s("text", { x: b.x + inset + shift, y, cls: "dyn-strong", text: b.title }),
    s("text", { x: b.x + b.w - inset, y, cls: "dyn-soft", "text-anchor": "end", text: b.note }),
  ];
}

function tip(id, cls) {
  return s("marker", { id, markerWidth: 8, markerHeight: 8, refX: 7, refY: 4, orient: "auto", markerUnits: "userSpaceOnUse" }, s("path", { d: "M0 0.5L8 4L0 7.5z", cls }));
}

export function drawPicture(picture, name) {
  const n = ++serial, ids = { hatch: `dyn-hatch-${n}`, soft: `dyn-tip-${n}`, hits: `dyn-tipb-${n}` };
  const hatch = s("pattern", { id: ids.hatch, width: 8, height: 8, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
    s("rect", { width: 8, height: 8, cls: "dyn-hatch-a" }), s("rect", { width: 4, height: 8, cls: "dyn-hatch-b" }));
  const node = (shape, parts) => s("g", { cls: `dyn-node dyn-k-${shape.kind}${shape.tone === undefined ? "" : ` dyn-g${shape.tone}`}${shape.badge ? ` dyn-is-${shape.badge}` : ""}${shape.region ? ` dyn-r-${shape.region}` : ""}`,
    role: "button", "aria-pressed": "false", "aria-expanded": shape.inside ? String(shape.kind === "unfolded") : null, tabindex: "-1", "data-id": shape.id }, s("title", { text: shape.full }), ...parts);
  return s("svg", { viewBox: `0 0 ${picture.width} ${picture.height}`, role: "group", "aria-label": `split graph of ${name}; arrow keys follow the arrows` },
    s("defs", {}, hatch, tip(ids.soft, "dyn-tip"), tip(ids.hits, "dyn-tip dyn-tip-hits")),
    ...picture.groups.map((g) => node(g, groupShape(g, ids))),
    ...picture.arrows.map((a) => s("path", { cls: `dyn-arrow dyn-a-${a.kind}`, d: rounded(a.points), "marker-end": `url(#${a.kind === "hits" ? ids.hits : ids.soft})`, "data-s": a.source, "data-t": a.target }, s("title", { text: a.full }))),
    ...picture.boxes.map((b) => node(b, boxShape(b))),
    ...picture.arrows.filter((a) => a.label).map((a) => s("text", { cls: "dyn-label", x: a.at[0], y: a.at[1], text: a.label })));
}

const LEGEND = [["graph", "graph"], ["break", "graph break"], ["allowed", "allowed break"], ["compiled", "frame"], ["recompile", "compiled again"], ["skipped", "skipped frame"], ["failed", "failed frame"], ["cached", "cached frame"], ["unfinished", "unfinished frame"], ["fold", "folded"], ["empty", "empty frame"], ["hits", "same break, met again"], ["allow", "region: breaks allowed"], ["error", "region: breaks are errors"]];

export function splitView(select, enter) {
  const pane = h("div", { cls: "dyn-pane", tabindex: "-1" });
  const field = h("input", { cls: "dyn-search", type: "search", placeholder: "Search name or line", "aria-label": "search the split graph by name or line" });
  const found = h("span", { cls: "dyn-found", role: "status" });
  const foldButton = h("button", { cls: "dyn-btn", type: "button", onclick: () => redraw(opened() ? [] : folds()) });
  const zoomer = (text, name, act) => h("button", { cls: "dyn-btn dyn-icon", type: "button", "aria-label": name, title: name, text, onclick: act });
  const tools = h("div", { cls: "dyn-tools" }, field, found, foldButton, zoomer("−", "zoom out", () => zoom(scale / 1.25)), zoomer("+", "zoom in", () => zoom(scale * 1.25)), zoomer("⤢", "fit", () => fit(0, 1)));
  const legend = h("div", { cls: "dyn-legend", "aria-label": "legend", role: "note" });
  const folded = h("div", { cls: "dyn-folded" });
  const node = h("section", { cls: "dyn-split", "aria-label": "split graph" }, h("div", { cls: "dyn-bar" }, h("h2", { text: "Split graph" }), tools), pane, folded, legend);
  let last = null, picture = null, svg = null, scale = 1, now = "", open = new Set(), ids = [], touched = false, nodes = new Map(), arrows = [], stop = null;
  const lamps = lamp("aria-pressed");
  const folds = () => last.split.boxes.filter((b) => b.inside).map((b) => b.id);
  const opened = () => folds().some((id) => open.has(id));

  function zoom(to) {
    scale = Math.min(3, Math.max(0.2, to));
    touched = true;
    size();
  }
  function size() {
    if (!svg) return;
    svg.setAttribute("width", Math.round(picture.width * scale));
    svg.setAttribute("height", Math.round(picture.height * scale));
  }
  // The whole width in sight, but never smaller than can be read unless asked for.
  function fit(least = 0.6, otherwise = 0.8) {
    const room = pane.clientWidth - 2;
    if (!picture || room < 50) return;
    const all = Math.min(1, room / picture.width);
    scale = all < least ? otherwise : all;
    size();
  }
  function redraw(ids) {
    open = new Set(ids);
    draw(last);
    light(last, now)();
  }
  // Open a fold in place, or fold it again, and stay on it.
  function toggle(id) {
    if (!folds().includes(id)) return;
    const place = () => nodes.get(id).getBoundingClientRect().top, before = place();
    redraw(open.has(id) ? [...open].filter((other) => other !== id) : [...open, id]);
    tabStop(id).focus({ preventScroll: true });
    const top = pane.getBoundingClientRect().top + 40;
    pane.scrollTop += place() - (open.has(id) ? Math.min(before, top) : before);
  }
  function draw(content) {
    last = content;
    picture = unfolded(content.split, open);
    svg = drawPicture(picture, content.name.slice(0, 200));
    nodes = new Map([...svg.querySelectorAll(".dyn-node")].map((n) => [n.dataset.id, n]));
    arrows = [...svg.querySelectorAll(".dyn-arrow")];
    stop = null;
    pane.replaceChildren(svg);
    if (touched) size();
    else fit();
    if (!svg.hasAttribute("width")) size();
    foldButton.hidden = !folds().length;
    foldButton.textContent = opened() ? "Fold all" : "Unfold all";
    folded.textContent = picture.folded && !opened() ? `folded: ${picture.folded}` : "";
    const kinds = new Set([...picture.groups, ...picture.boxes].map((shape) => shape.kind));
    if (picture.arrows.some((a) => a.kind === "hits")) kinds.add("hits");
    for (const { badge, region } of [...picture.groups, ...picture.boxes]) kinds.add(badge).add(region);
    legend.replaceChildren(...LEGEND.filter(([kind]) => kinds.has(kind)).map(([kind, text]) => h("span", {}, h("i", { cls: `dyn-key dyn-key-${kind}` }), text)));
    tabStop(now);
    find();
  }
  // What stands for a thing in the picture: itself, or the fold that holds it.
  const seenAs = (id) => {
    if (!picture || nodes.has(id)) return id;
    const fold = picture.boxes.find((b) => b.holds && b.holds.includes(id));
    return fold ? fold.id : id;
  };
  function tabStop(id) {
    if (stop) stop.setAttribute("tabindex", "-1");
    stop = nodes.get(id) || [...nodes.values()][0];
    if (stop) stop.setAttribute("tabindex", "0");
    return stop;
  }
  // Light up what is selected; returns how to bring it into sight.
  function light(content, chosen) {
    now = chosen;
    if (!svg) return () => {};
    const id = seenAs(chosen);
    lamps(nodes.has(id) ? [nodes.get(id)] : []);
    for (const a of arrows) a.classList.toggle("dyn-on", a.dataset.s === id || a.dataset.t === id);
    const at = tabStop(id);
    const { group } = picture.boxes.find((b) => b.id === id) || {};
    return () => {
      if (!at || at.dataset.id !== id) return;
      for (const node of [nodes.get(group), at]) if (node) reveal(pane, node.querySelector(".dyn-main"));
    };
  }
  function find() {
    ids = last ? search(last, field.value) : [];
    const on = Boolean(field.value.trim());
    const lit = new Set(ids.map(seenAs));
    for (const [id, n] of nodes) n.classList.toggle("dyn-dim", on && !lit.has(id));
    const hidden = ids.filter((id) => !nodes.has(id)).length;
    found.textContent = !on ? "" : ids.length ? `${ids.length} found${hidden ? `, ${hidden} folded` : ""}` : "nothing found";
  }
  field.addEventListener("input", find);
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && ids.length) select(ids[(ids.indexOf(now) + 1) % ids.length], "search");
    else if (event.key === "Escape") { field.value = ""; find(); }
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  let drag = null;
  pane.addEventListener("pointerdown", (event) => { if (event.button === 0 && event.pointerType === "mouse") drag = { x: event.clientX, y: event.clientY, left: pane.scrollLeft, top: pane.scrollTop, far: false }; });
  pane.addEventListener("pointermove", (event) => {
    if (!drag || !(event.buttons & 1)) return;
    const [dx, dy] = [event.clientX - drag.x, event.clientY - drag.y];
    drag.far = drag.far || Math.hypot(dx, dy) > 5;
    if (drag.far) [pane.scrollLeft, pane.scrollTop] = [drag.left - dx, drag.top - dy];
  });
  pane.addEventListener("click", (event) => {
    const far = drag && drag.far;
    drag = null;
    const hit = event.target.closest(".dyn-node");
    if (!hit || far) return;
    const { id } = hit.dataset;
    select(id);
    toggle(id);
    (nodes.get(id) || hit).focus({ preventScroll: true });
  });
  pane.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    zoom(scale * (event.deltaY < 0 ? 1.12 : 0.89));
  }, { passive: false });
  pane.addEventListener("keydown", (event) => {
    const at = event.target.closest(".dyn-node");
    if (event.key === "+" || event.key === "-") zoom(event.key === "+" ? scale * 1.25 : scale / 1.25);
    else if (!at || event.ctrlKey || event.metaKey || event.altKey) return;
    else if (event.key.startsWith("Arrow")) {
      const stop = tabStop(step(picture, at.dataset.id, event.key));
      stop.focus({ preventScroll: true });
      reveal(pane, stop.querySelector(".dyn-main"));
    } else if (event.key === "Enter" || event.key === " ") {
      const { id } = at.dataset;
      select(id);
      if (event.key === "Enter") folds().includes(id) ? toggle(id) : enter();
    }
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  const watch = new ResizeObserver(() => {
    if (touched || !last) return;
    fit();
    light(last, now)();
  });
  watch.observe(pane);
  return { node, draw, light, stop: () => watch.disconnect() };
}
