// The split graph: shapes where the kernel placed them, with zoom, search, folds and the keyboard.

import { button, closest, exclusive, h, handled, idOf, label, reveal, s } from "./dom.js";
import { focused, framesOf, miniMap } from "./focus.js";
import { rounded, search, step } from "./logic.js";
import { unfolded } from "./unfold.js";

/** @import { FoldableBox, Select, SelectablePart } from "./view" */
/** @import { Arrow, Drawing, Picture, Shape, ViewModel } from "./wire" */
/** @typedef {{ hatch: string, soft: string, hits: string }} DefinitionIds */

// Pixels that a pointer may move in a click.
const CLICK = 5;
const LEGEND = [
  ["graph", "graph"],
  ["break", "graph break"],
  ["allowed", "allowed break"],
  ["compiled", "frame"],
  ["recompile", "recompiled"],
  ["skipped", "skipped frame"],
  ["failed", "failed frame"],
  ["cached", "cached frame"],
  ["unfinished", "unfinished frame"],
  ["fold", "folded"],
  ["empty", "empty frame"],
  ["hits", "same break, hit again"],
  ["allow", "region: breaks allowed"],
  ["error", "region: breaks are errors"],
];

let serial = 0;

/**
 * The triangle before the name of a fold; it says whether the fold is open.
 * @param {FoldableBox} box
 * @param {boolean} open
 */
export function triangle({ x, y, h }, open) {
  const d = open ? `M${x + 11} ${y + 14}h9l-4.5 6z` : `M${x + 13} ${y + h / 2 - 4.5}v9l6 -4.5z`;
  return s("path", { cls: "dyn-fold", d });
}

/**
 * The frame around what an open fold holds.
 * @param {FoldableBox & { title: string, note: string }} fold
 * @param {Drawing} sizes
 */
export function openShape(fold, { corner, inset }) {
  const { x, y, w, h, title, note } = fold;
  return [
    s("rect", { cls: "dyn-main", x, y, width: w, height: h, rx: corner }),
    triangle(fold, true),
    label("dyn-strong", x + 26, y + 21, title),
    label("dyn-soft", x + w - inset, y + 21, note, "end"),
  ];
}

/**
 * A frame with its name and the lines below it.
 * @param {Shape} group
 * @param {DefinitionIds} ids
 * @param {Drawing} sizes
 */
function groupShape(group, ids, sizes) {
  if (group.kind === "unfolded") return openShape(group, sizes);
  const { x, y, w, h, lines = [], kind } = group;
  const skipped = kind === "skipped";
  const { inset, corner, line_height, title_height } = sizes;
  const frame = { width: w, height: h, rx: corner };
  const header = title_height + line_height * lines.length;
  const baseline = y + sizes.title_baseline;
  return [
    group.badge === "recompile" && s("rect", { cls: "dyn-frame", x: x + 4, y: y - 4, ...frame }),
    s("rect", { cls: "dyn-frame dyn-main", x, y, ...frame, fill: skipped && `url(#${ids.hatch})` }),
    skipped && s("rect", { cls: "dyn-under", x: x + 5, y: y + 5, width: w - 10, height: header - 8, rx: 5 }),
    label("dyn-name", x + inset, baseline, group.title),
    label("dyn-soft dyn-mono", x + w - inset, baseline, group.note, "end"),
    ...lines.map((text, i) => label("dyn-soft", x + inset, y + sizes.first_line + line_height * i, text)),
  ];
}

/**
 * A graph, a break or a fold.
 * @param {Shape} box
 * @param {Drawing} sizes
 */
function boxShape(box, sizes) {
  const { x, w } = box;
  const isBreak = box.kind === "break";
  const strip = isBreak && box.region ? sizes.region_height : 0;
  const top = box.y + strip;
  const height = box.h - strip;
  const inset = isBreak ? sizes.break_inset : sizes.inset;
  const shift = box.inside ? 14 : 0;
  const y = top + height / 2 + 4;
  return [
    strip > 0 && s("rect", { cls: "dyn-area", x: x - 6, y: box.y, width: w + 12, height: box.h + 6, rx: sizes.corner }),
    strip > 0 && label("dyn-soft", x + 6, box.y + 14, box.lines?.[0]),
    s("rect", { cls: "dyn-main", x, y: top, width: w, height, rx: isBreak ? height / 2 : sizes.box_corner }),
    shift > 0 && triangle(box, false),
    box.kind === "version"
      ? label("dyn-strong", x + w / 2, y, box.title, "middle")
      : label("dyn-strong", x + inset + shift, y, box.title),
    label("dyn-soft", x + w - inset, y, box.note, "end"),
  ];
}

/**
 * One thing that can be selected: its shapes, title and state.
 * @param {Shape} shape
 * @param {(SVGElement | false | null)[]} parts
 */
function shapeNode(shape, parts) {
  const classes = [
    `dyn-node dyn-k-${shape.kind}`,
    shape.tone !== undefined && `dyn-g${shape.tone}`,
    shape.badge && `dyn-is-${shape.badge}`,
    shape.region && `dyn-r-${shape.region}`,
  ];
  const props = {
    cls: classes.filter(Boolean).join(" "),
    role: "button",
    "aria-pressed": "false",
    "aria-expanded": shape.inside ? String(shape.kind === "unfolded") : null,
    tabindex: "-1",
    "data-id": shape.id,
  };
  return s("g", props, s("title", { text: shape.full }), ...parts);
}

/**
 * The hatch of skipped frames and the tips of arrows.
 * @param {DefinitionIds} ids
 */
function definitions(ids) {
  const pattern = { width: 8, height: 8, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" };
  const hatch = s(
    "pattern",
    { id: ids.hatch, ...pattern },
    s("rect", { width: 8, height: 8, cls: "dyn-hatch-a" }),
    s("rect", { width: 4, height: 8, cls: "dyn-hatch-b" }),
  );
  const tip = (/** @type {string} */ id, /** @type {string} */ cls) => {
    const marker = { markerWidth: 8, markerHeight: 8, refX: 7, refY: 4, orient: "auto", markerUnits: "userSpaceOnUse" };
    return s("marker", { id, ...marker }, s("path", { d: "M0 0.5L8 4L0 7.5z", cls }));
  };
  return s("defs", {}, hatch, tip(ids.soft, "dyn-tip"), tip(ids.hits, "dyn-tip dyn-tip-hits"));
}

/**
 * @param {Arrow} arrow
 * @param {DefinitionIds} ids
 * @param {number} bend
 */
function arrowPath(arrow, ids, bend) {
  const props = {
    cls: `dyn-arrow dyn-a-${arrow.kind}`,
    d: rounded(arrow.points, bend),
    "marker-end": `url(#${arrow.kind === "hits" ? ids.hits : ids.soft})`,
    "data-s": arrow.source,
    "data-t": arrow.target,
  };
  return s("path", props, s("title", { text: arrow.full }));
}

/** @param {Arrow} arrow */
const arrowLabel = ({ label: text, at }) => at && label("dyn-label", at[0], at[1], text);

/**
 * The picture as SVG: frames first, then arrows, boxes and labels above them.
 * @param {Picture} picture
 * @param {Drawing} sizes
 * @param {string} name
 */
function drawPicture(picture, sizes, name) {
  const n = ++serial;
  const ids = { hatch: `dyn-hatch-${n}`, soft: `dyn-tip-${n}`, hits: `dyn-tipb-${n}` };
  const description = `split graph of ${name}; use the arrow keys to follow the arrows`;
  return s(
    "svg",
    { viewBox: `0 0 ${picture.width} ${picture.height}`, role: "group", "aria-label": description },
    definitions(ids),
    picture.groups.map((group) => shapeNode(group, groupShape(group, ids, sizes))),
    picture.arrows.map((arrow) => arrowPath(arrow, ids, sizes.bend)),
    picture.boxes.map((box) => shapeNode(box, boxShape(box, sizes))),
    picture.arrows.map(arrowLabel),
  );
}

/**
 * The legend's entries for what is in a picture.
 * @param {Picture} picture
 */
function legendOf(picture) {
  const shapes = [...picture.groups, ...picture.boxes];
  const kinds = new Set(shapes.flatMap(({ kind, badge, region }) => [kind, badge, region]));
  if (picture.arrows.some((arrow) => arrow.kind === "hits")) kinds.add("hits");
  const shown = LEGEND.filter(([kind]) => kinds.has(kind));
  return shown.map(([kind, text]) => h("span", {}, h("i", { cls: `dyn-key dyn-key-${kind}` }), text));
}

/**
 * Let the mouse drag what is in a pane; returns a function that says whether the click being handled ends a drag.
 * @param {HTMLElement} pane
 */
function draggable(pane) {
  /** @type {{ x: number, y: number, left: number, top: number, far: boolean } | null} */
  let drag = null;
  pane.addEventListener("pointerdown", ({ button, pointerType, clientX: x, clientY: y }) => {
    if (button !== 0 || pointerType !== "mouse") return;
    drag = { x, y, left: pane.scrollLeft, top: pane.scrollTop, far: false };
  });
  pane.addEventListener("pointermove", (event) => {
    if (!drag || !(event.buttons & 1)) return;
    const dx = event.clientX - drag.x;
    const dy = event.clientY - drag.y;
    drag.far = drag.far || Math.hypot(dx, dy) > CLICK;
    if (drag.far) [pane.scrollLeft, pane.scrollTop] = [drag.left - dx, drag.top - dy];
  });
  return () => {
    const far = Boolean(drag?.far);
    drag = null;
    return far;
  };
}

/**
 * @param {Select} select
 * @param {() => void} enter goes to the detail
 * @returns {SelectablePart & { stop: () => void }}
 */
export function splitView(select, enter) {
  const icon = (/** @type {string} */ text, /** @type {string} */ name, /** @type {() => void} */ act) =>
    button("dyn-btn dyn-icon", text, act, { "aria-label": name, title: name });
  const pane = h("div", { cls: "dyn-pane", tabindex: "-1" });
  const field = h("input", {
    cls: "dyn-search",
    type: "search",
    placeholder: "Search name or line",
    "aria-label": "search the split graph by name or line",
  });
  const found = h("span", { cls: "dyn-found", role: "status" });
  const foldAll = () => redraw(someOpen() ? [] : folds());
  const foldButton = button("dyn-btn", "", foldAll);
  const wholeButton = button("dyn-btn", "Whole graph", () => {
    showWhole = !showWhole;
    zoomed = false;
    redraw([]);
  });
  const tools = h(
    "div",
    { cls: "dyn-tools" },
    field,
    found,
    foldButton,
    wholeButton,
    icon("−", "zoom out", () => zoom(scale / 1.25)),
    icon("+", "zoom in", () => zoom(scale * 1.25)),
    icon("⤢", "fit", () => fit(0, 1)),
  );
  const legend = h("div", { cls: "dyn-legend", "aria-label": "legend", role: "note" });
  const foot = h("div", { cls: "dyn-foot" }, legend);
  const folded = h("div", { cls: "dyn-folded" });
  const bar = h("div", { cls: "dyn-bar" }, h("h2", { text: "Split graph" }), tools);
  const node = h("section", { cls: "dyn-split", "aria-label": "split graph" }, bar, pane, folded, foot);
  const markPressed = exclusive("aria-pressed");
  const wasDragged = draggable(pane);

  /** @type {ViewModel | null} */
  let content = null;
  let selected = "";
  /** What is drawn: the split graph with the folds that are open. @type {Picture} */
  let picture = { width: 0, height: 0, groups: [], boxes: [], arrows: [], folded: "" };
  /** @type {SVGSVGElement | null} */
  let svg = null;
  /** @type {Map<string, SVGElement>} */
  let nodes = new Map();
  /** @type {SVGElement[]} */
  let arrows = [];
  /** @type {SVGElement | undefined} */
  let stop;
  /** Ids of the folds that are open. @type {Set<string>} */
  let open = new Set();
  /** Ids that the search finds. @type {string[]} */
  let ids = [];
  let scale = 1;
  let zoomed = false;
  /** Of a large report, the frames of the split graph, of which those around the selected one are shown. @type {ReturnType<typeof framesOf> | null} */
  let frames = null;
  /** @type {ReturnType<typeof miniMap> | null} */
  let map = null;
  /** Ids of frames of which all neighbours are shown. @type {Set<string>} */
  let wide = new Set();
  let showWhole = false;

  const folds = () => (content ? content.split.boxes.filter((box) => box.inside).map((box) => box.id) : []);
  const someOpen = () => folds().some((id) => open.has(id));

  /** @param {number} to */
  function zoom(to) {
    scale = Math.min(3, Math.max(0.2, to));
    zoomed = true;
    resize();
  }
  function resize() {
    if (!svg) return;
    svg.setAttribute("width", String(Math.round(picture.width * scale)));
    svg.setAttribute("height", String(Math.round(picture.height * scale)));
  }
  /**
   * Fit the whole width; if that needs a scale below `least` (0.5 in a large report), use `otherwise`, unless the whole
   * graph is shown.
   */
  function fit(least = 0.6, otherwise = 0.8) {
    const room = pane.clientWidth - 2;
    if (!svg || room < 50) return;
    const all = Math.min(1, room / picture.width);
    scale = all < (frames ? 0.5 : least) && !showWhole ? otherwise : all;
    resize();
  }

  /** @param {string[]} ids of the folds to be open */
  function redraw(ids) {
    if (!content) return;
    open = new Set(ids);
    draw(content);
    highlight(selected)();
  }
  /** Open a fold in place, or fold it again, and stay on it. @type {(id: string) => void} */
  function toggle(id) {
    if (!folds().includes(id)) return;
    const place = () => /** @type {SVGElement} */ (nodes.get(id)).getBoundingClientRect().top;
    const before = place();
    redraw(open.has(id) ? [...open].filter((other) => other !== id) : [...open, id]);
    const at = tabStop(id);
    if (at) at.focus({ preventScroll: true });
    const top = pane.getBoundingClientRect().top + 40;
    pane.scrollTop += place() - (open.has(id) ? Math.min(before, top) : before);
  }

  /** @param {ViewModel} model */
  function draw(model) {
    if (content !== model) {
      frames = model.overview && model.split.groups.length ? framesOf(model.split) : null;
      map?.node.remove();
      map = frames && miniMap(model.split, select);
      if (map) foot.append(map.node);
      wide = new Set();
    }
    content = model;
    const part = frames && !showWhole ? focused(frames, selected || model.first, wide) : null;
    picture = part || unfolded(content.split, open, content.drawing.fold_head);
    wholeButton.hidden = !frames;
    wholeButton.setAttribute("aria-pressed", String(showWhole));
    svg = drawPicture(picture, content.drawing, content.name.slice(0, 200));
    const drawn = /** @type {SVGElement[]} */ ([...svg.querySelectorAll(".dyn-node")]);
    nodes = new Map(drawn.map((n) => [idOf(n), n]));
    arrows = [...svg.querySelectorAll(/** @type {"path"} */ (".dyn-arrow"))];
    stop = undefined;
    pane.replaceChildren(svg);
    if (zoomed) resize();
    else fit();
    if (!svg.hasAttribute("width")) resize();
    foldButton.hidden = !folds().length;
    foldButton.textContent = someOpen() ? "Fold all" : "Unfold all";
    folded.textContent = picture.folded && !someOpen() ? `folded: ${picture.folded}` : "";
    legend.replaceChildren(...legendOf(picture));
    tabStop(selected);
    find();
  }

  /** The id of the shape that shows something: its own, or that of the fold that contains it. @type {(id: string) => string} */
  function shownAs(id) {
    if (nodes.has(id)) return id;
    const fold = picture.boxes.find((box) => box.contents?.includes(id));
    return fold ? fold.id : id;
  }
  /** Whether the frame of something is drawn with all frames before and after it. @param {string} id */
  function isAround(id) {
    const frame = frames?.owner.get(id);
    if (!frame) return true;
    const missing = [...frame.into, ...frame.out].some(({ arrow, from, to }) => {
      return arrow.kind !== "hits" && !(nodes.has(from.id) && nodes.has(to.id));
    });
    return nodes.has(frame.id) && !missing;
  }
  /** @param {string} id */
  function tabStop(id) {
    if (stop) stop.setAttribute("tabindex", "-1");
    stop = nodes.get(id) || [...nodes.values()][0];
    if (stop) stop.setAttribute("tabindex", "0");
    return stop;
  }
  /** @param {string} chosen */
  function highlight(chosen) {
    const moved = selected !== chosen;
    selected = chosen;
    if (!svg) return () => {};
    if (frames && !showWhole && moved && !isAround(chosen) && content) draw(content);
    const id = shownAs(chosen);
    if (map) map.mark(new Set(picture.groups.map((group) => group.id)), frames?.owner.get(chosen)?.id || "");
    const shown = nodes.get(id);
    markPressed(shown ? [shown] : []);
    for (const { dataset, classList } of arrows) classList.toggle("dyn-on", dataset.s === id || dataset.t === id);
    tabStop(id);
    const box = picture.boxes.find((b) => b.id === id);
    const group = nodes.get(box?.group || "");
    return () => {
      if (!shown) return;
      for (const node of [group, shown]) if (node) reveal(pane, node.querySelector(".dyn-main"));
    };
  }

  function find() {
    ids = content ? search(content, field.value) : [];
    const searching = Boolean(field.value.trim());
    const matching = new Set(ids.map(shownAs));
    for (const [id, n] of nodes) n.classList.toggle("dyn-dim", searching && !matching.has(id));
    const hidden = ids.filter((id) => !nodes.has(id)).length;
    const count = ids.length
      ? `${ids.length} found${hidden ? `, ${hidden} ${frames ? "elsewhere" : "folded"}` : ""}`
      : "nothing found";
    found.textContent = searching ? count : "";
  }
  field.addEventListener("input", find);
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && ids.length) select(ids[(ids.indexOf(selected) + 1) % ids.length]);
    else if (event.key === "Escape") {
      field.value = "";
      find();
    } else return;
    handled(event);
  });

  pane.addEventListener("click", (event) => {
    const dragged = wasDragged();
    const hit = closest(event, ".dyn-node");
    if (!hit || dragged) return;
    const id = idOf(hit);
    if (widen(id)) return;
    select(id);
    toggle(id);
    (nodes.get(id) || hit).focus({ preventScroll: true });
  });
  const onWheel = (/** @type {WheelEvent} */ event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    zoom(scale * (event.deltaY < 0 ? 1.12 : 0.89));
  };
  pane.addEventListener("wheel", onWheel, { passive: false });
  pane.addEventListener("keydown", (event) => {
    const { key } = event;
    const at = closest(event, ".dyn-node");
    if (key === "+" || key === "-") zoom(key === "+" ? scale * 1.25 : scale / 1.25);
    else if (!at || event.ctrlKey || event.metaKey || event.altKey) return;
    else if (key.startsWith("Arrow")) walk(idOf(at), key);
    else if (key === "Enter" || key === " ") choose(idOf(at), key === "Enter");
    else return;
    handled(event);
  });
  /** Move the focus along an arrow. @type {(id: string, key: string) => void} */
  function walk(id, key) {
    const next = tabStop(step(picture, id, key));
    if (!next) return;
    next.focus({ preventScroll: true });
    reveal(pane, next.querySelector(".dyn-main"));
  }
  /** Show the neighbours that a box stands for; returns false for any other box. @param {string} id */
  function widen(id) {
    const box = picture.boxes.find((shape) => shape.id === id && shape.kind === "more");
    const [of] = box?.contents || [];
    if (!content || !of) return false;
    wide.add(of);
    if (frames?.owner.get(selected)?.id === of) draw(content);
    else select(of);
    highlight(selected)();
    tabStop(of)?.focus({ preventScroll: true });
    return true;
  }
  /** Select; and open the fold, or go to the detail. @type {(id: string, further: boolean) => void} */
  function choose(id, further) {
    if (widen(id)) return;
    select(id);
    if (!further) return;
    if (folds().includes(id)) toggle(id);
    else enter();
  }

  const observer = new ResizeObserver(() => {
    if (zoomed || !content) return;
    fit();
    highlight(selected)();
  });
  observer.observe(pane);
  return { node, draw, highlight: (_, id) => highlight(id), stop: () => observer.disconnect() };
}
