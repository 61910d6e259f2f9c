// The split graph as the kernel drew it, with zoom, search and the keyboard.

import { button, closest, exclusive, fill, h, handled, idOf, markup, reveal, s } from "./dom.js";
import { focused, framesOf } from "./focus.js";
import { search, step } from "./logic.js";

/** @import { DrawnPicture, Select, SelectablePart } from "./view" */
/** @import { ViewModel } from "./wire" */

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
  ["empty", "empty frame"],
  ["allow", "region: breaks allowed"],
  ["error", "region: breaks are errors"],
];

const PRESSABLE = { role: "button", "aria-pressed": "false", tabindex: "-1" };

let serial = 0;

/**
 * A picture that Python drew, with names of its own for what its parts refer to.
 * @param {string} text
 * @returns {DrawnPicture}
 */
export function parsed(text) {
  serial++;
  const own = text.replace(/(id="|url\(#)dyn-/g, `$1dyn-${serial}-`);
  return picture(/** @type {SVGSVGElement} */ (markup(own).firstElementChild));
}

/**
 * The shapes and arrows of a picture.
 * @param {SVGSVGElement} svg
 * @returns {DrawnPicture}
 */
export function picture(svg) {
  /** @type {SVGElement[]} */
  const nodes = [...svg.querySelectorAll(/** @type {"g"} */ (".dyn-node"))];
  const shapes = nodes.map((node) => {
    const { id = "", kind = "", group = "", contents = "", box = "" } = node.dataset;
    const [x, y, w, h] = box.split(" ").map(Number);
    return { node, id, kind, group, contents: contents ? contents.split(" ") : [], x, y, w, h };
  });
  const arrows = [...svg.querySelectorAll(/** @type {"path"} */ (".dyn-arrow"))].map((path) => {
    const { s: source = "", t: target = "", kind = "", label = "" } = path.dataset;
    return { path, source, target, kind, label };
  });
  const [, , width, height] = String(svg.getAttribute("viewBox")).split(" ").map(Number);
  return { svg, shapes, arrows, width, height };
}

/**
 * What a kind of shape or arrow looks like, small.
 * @param {string} kind
 */
function keyOf(kind) {
  const size = { x: 1, y: 1, width: 18, height: 11, rx: kind === "break" || kind === "allowed" ? 5.5 : 3 };
  const shape = s("rect", { cls: "dyn-main dyn-frame", ...size });
  const behind = kind === "recompile" && s("rect", { cls: "dyn-frame", ...size, x: 4, y: -2 });
  const cls = `dyn-k-${kind === "allowed" ? "break" : kind} dyn-is-${kind} dyn-r-${kind} ${kind === "graph" && "dyn-g0"}`;
  return s("svg", { cls: "dyn-picture", width: 20, height: 13, "aria-hidden": "true" }, s("g", { cls }, behind, shape));
}

/**
 * The legend's entries for what is in a picture.
 * @param {Element} svg
 */
function legendOf(svg) {
  const shown = LEGEND.filter(([kind]) => svg.querySelector(`.dyn-k-${kind}, .dyn-is-${kind}, .dyn-r-${kind}`));
  return shown.map(([kind, text]) => h("span", {}, keyOf(kind), text));
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
  const wholeButton = button("dyn-btn", "Whole graph", () => showAll(!showWhole));
  const tools = h(
    "div",
    { cls: "dyn-tools" },
    field,
    found,
    wholeButton,
    icon("−", "zoom out", () => zoom(scale / 1.25)),
    icon("+", "zoom in", () => zoom(scale * 1.25)),
    icon("⤢", "fit", () => fit(0, 1)),
  );
  const legend = h("div", { cls: "dyn-legend", "aria-label": "legend", role: "note" });
  const bar = h("div", { cls: "dyn-bar" }, h("h2", { text: "Split graph" }), tools);
  const node = h("section", { cls: "dyn-split", "aria-label": "split graph" }, bar, pane, legend);
  const markPressed = exclusive("aria-pressed");
  const wasDragged = draggable(pane);

  /** @type {ViewModel | null} */
  let content = null;
  let selected = "";
  /** What is shown. @type {DrawnPicture | null} */
  let shown = null;
  /** @type {Map<string, SVGElement>} */
  let nodes = new Map();
  /** @type {SVGElement | undefined} */
  let stop;
  /** Ids that the search finds. @type {string[]} */
  let ids = [];
  let scale = 1;
  let zoomed = false;
  /** Whether the browser has laid out the pane; to ask for its width before would make it lay out the page twice. */
  let isPlaced = false;
  /** Of a large report, the whole picture, of which the frames around the selected one are shown. @type {DrawnPicture | null} */
  let whole = null;
  /** Its frames. @type {ReturnType<typeof framesOf> | null} */
  let frames = null;
  /** Ids of frames of which all neighbours are shown. @type {Set<string>} */
  let wide = new Set();
  let showWhole = false;

  /** @param {number} to */
  function zoom(to) {
    scale = Math.min(3, Math.max(0.2, to));
    zoomed = true;
    resize();
  }
  function resize() {
    shown?.svg.setAttribute("width", String(Math.round(shown.width * scale)));
    shown?.svg.setAttribute("height", String(Math.round(shown.height * scale)));
  }
  /**
   * Fit the whole width; if that needs a scale below `least` (0.5 in a large report), use `otherwise`, unless the whole
   * graph is shown.
   */
  function fit(least = 0.6, otherwise = 0.8) {
    const room = pane.clientWidth - 2;
    if (!shown || room < 50) return;
    const all = Math.min(1, room / shown.width);
    scale = all < (frames ? 0.5 : least) && !(frames && showWhole) ? otherwise : all;
    resize();
  }

  /** Show all frames, or those that are shown at first. @param {boolean} all */
  function showAll(all) {
    showWhole = all;
    zoomed = false;
    if (content) draw(content);
    highlight(selected)();
  }
  /** @param {ViewModel} model */
  function draw(model) {
    if (content !== model) {
      whole = model.split.large ? parsed(model.split.svg) : null;
      frames = whole && framesOf(whole);
      wide = new Set();
    }
    content = model;
    const { split } = model;
    if (!split.svg) return;
    if (frames && whole) shown = (!showWhole && focused(frames, selected || model.first, wide)) || whole;
    else shown = parsed(split.svg);
    const { svg } = shown;
    svg.setAttribute("role", "group");
    const description = `split graph of ${model.name.slice(0, 200)}; use the arrow keys to follow the arrows`;
    svg.setAttribute("aria-label", description);
    markPressed([]);
    nodes = new Map(shown.shapes.map(({ id, node }) => [id, fill(node, PRESSABLE)]));
    stop = undefined;
    pane.replaceChildren(svg);
    if (zoomed || !isPlaced) resize();
    else fit();
    if (!svg.hasAttribute("width")) resize();
    wholeButton.hidden = !frames;
    wholeButton.setAttribute("aria-pressed", String(showWhole));
    legend.replaceChildren(...legendOf(svg));
    tabStop(selected);
    find();
  }

  /** The id of the shape that shows something: its own, or that of a version's box. @type {(id: string) => string} */
  function shownAs(id) {
    if (nodes.has(id)) return id;
    return shown?.shapes.find((shape) => shape.contents.includes(id))?.id || id;
  }
  /** Whether the frame of something is drawn with all frames after it. @param {string} id */
  function isAround(id) {
    const frame = frames?.owner.get(id);
    if (!frame) return true;
    return nodes.has(frame.id) && frame.out.every(({ to }) => nodes.has(to.id));
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
    if (!shown) return () => {};
    if (frames && !showWhole && moved && !isAround(chosen) && content) draw(content);
    const id = shownAs(chosen);
    const node = nodes.get(id);
    markPressed(node ? [node] : []);
    for (const { path, source, target } of shown.arrows) {
      path.classList.toggle("dyn-on", source === id || target === id);
    }
    tabStop(id);
    return () => {
      for (const part of [nodes.get(node?.dataset.group || ""), node]) {
        if (part) reveal(pane, part.querySelector(".dyn-main"));
      }
    };
  }

  function find() {
    ids = content ? search(content, field.value) : [];
    const searching = Boolean(field.value.trim());
    const matching = new Set(ids.map(shownAs));
    for (const [id, n] of nodes) n.classList.toggle("dyn-dim", searching && !matching.has(id));
    const hidden = ids.filter((id) => !nodes.has(id)).length;
    const count = ids.length ? `${ids.length} found${hidden ? `, ${hidden} elsewhere` : ""}` : "nothing found";
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
    const next = shown && tabStop(step(shown, id, key));
    if (!next) return;
    next.focus({ preventScroll: true });
    reveal(pane, next.querySelector(".dyn-main"));
  }
  /** Show the neighbours that a box stands for; returns false for any other box. @param {string} id */
  function widen(id) {
    const box = shown?.shapes.find((shape) => shape.id === id && shape.kind === "more");
    const [of] = box?.contents || [];
    if (!content || !of) return false;
    wide.add(of);
    if (frames?.owner.get(selected)?.id === of) draw(content);
    else select(of);
    highlight(selected)();
    tabStop(of)?.focus({ preventScroll: true });
    return true;
  }
  /** Select, and perhaps go to the detail. @type {(id: string, further: boolean) => void} */
  function choose(id, further) {
    if (widen(id)) return;
    select(id);
    if (further) enter();
  }

  const observer = new ResizeObserver(() => {
    isPlaced = true;
    if (zoomed || !content) return;
    fit();
    highlight(selected)();
  });
  observer.observe(pane);
  return { node, draw, highlight: (_, id) => highlight(id), stop: () => observer.disconnect() };
}
