// An FX graph in the detail: drawn, a large one in parts, or as a list that draws only what is in sight.

import { button, closest, h, handled, idOf, label, roving, s } from "./dom.js";
import { plural, rounded } from "./logic.js";

/** @import { FxBox, FxDrawing } from "./view" */
/** @import { FxBody, FxNode, FxPicture } from "./wire" */
/** @typedef {(file: string | undefined, line: number) => void} PointAt */

// Pixels: the height of a row of the list, and of the list.
const ROW = 22;
const HEIGHT = 330;
// Rows that are drawn above and below those in sight.
const SPARE = 3;
/** @type {Record<string, string>} */
const KINDS = {
  input: "input",
  param: "parameter",
  point: "operation",
  collective: "collective, wait",
  output: "output",
};

/**
 * The style that tints an operation by how long it took; its time is beside it in words.
 * @param {{ heat?: number }} node
 */
const heatStyle = ({ heat }) => (heat === undefined ? null : `--h:${heat}%`);

/**
 * One row of the list.
 * @param {FxNode} node
 * @param {number} i
 * @param {boolean} pressed
 * @param {() => void} onclick
 */
function listRow(node, i, pressed, onclick) {
  return h(
    "div",
    {
      "aria-pressed": String(pressed),
      cls: `dyn-fxrow dyn-fx-${node.kind}`,
      role: "button",
      tabindex: "-1",
      title: node.full,
      style: `top:${i * ROW}px`,
      "data-i": i,
      onclick,
    },
    h("i", { cls: "dyn-dot" }),
    h("b", { cls: "dyn-end" }, h("bdi", { text: node.name })),
    h("span", { cls: "dyn-end" }, h("bdi", { text: node.op === "placeholder" ? "input" : node.target })),
    h("span", { cls: "dyn-duration", style: heatStyle(node), text: node.time }),
    h("span", { cls: "dyn-val", text: node.value }),
    h("span", { cls: "dyn-at dyn-end" }, h("bdi", { text: node.place || "" })),
  );
}

/**
 * The list of nodes. Rows have a fixed height; only those in sight and a few around them exist.
 * @param {FxNode[]} nodes
 * @param {(i: number) => void} point shows a node
 * @param {number} start the node to begin at, or -1
 */
function listView(nodes, point, start) {
  const inner = h("div", { style: `height:${nodes.length * ROW}px;position:relative` });
  const box = h(
    "div",
    {
      cls: `dyn-fxlist${nodes.some((node) => node.time) ? " dyn-timed" : ""}`,
      tabindex: "0",
      role: "group",
      "aria-label": `${plural(nodes.length, "node")}; use the arrow keys to choose one`,
      style: `height:${Math.min(HEIGHT, nodes.length * ROW + 2)}px`,
    },
    inner,
  );
  /** @type {Map<number, HTMLElement>} */
  const rows = new Map();
  let now = start;
  let from = 0;
  const press = (/** @type {number} */ i, /** @type {boolean} */ on) => {
    const row = rows.get(i);
    if (row) row.setAttribute("aria-pressed", String(on));
  };
  const choose = (/** @type {number} */ i) => {
    press(now, false);
    now = i;
    point(i);
    draw();
    box.focus({ preventScroll: true });
    press(i, true);
  };
  function draw() {
    const first = Math.max(0, Math.floor(box.scrollTop / ROW) - SPARE);
    const end = Math.min(nodes.length, first + Math.ceil(HEIGHT / ROW) + 2 * SPARE);
    for (const [i, row] of rows) {
      if (i >= first && i < end) continue;
      row.remove();
      rows.delete(i);
    }
    const added = [];
    for (let i = first; i < end; i++) {
      if (rows.has(i)) continue;
      const row = listRow(nodes[i], i, i === now, () => choose(i));
      rows.set(i, row);
      added.push(row);
    }
    inner[first < from ? "prepend" : "append"](...added);
    from = first;
  }
  box.addEventListener("keydown", (event) => {
    /** @type {Record<string, number>} */
    const moves = { ArrowDown: now + 1, ArrowUp: now - 1, Home: 0, End: nodes.length - 1 };
    const to = moves[event.key];
    if (!nodes[to]) return;
    const top = to * ROW;
    const hidden = top < box.scrollTop || top + ROW > box.scrollTop + box.clientHeight;
    if (hidden) box.scrollTop = to < now ? top : top + ROW - box.clientHeight;
    choose(to);
    handled(event);
  });
  box.addEventListener("scroll", draw);
  requestAnimationFrame(() => {
    box.scrollTop = start * ROW;
  });
  draw();
  return box;
}

/**
 * The kernel's drawing as shapes, like those of the split graph: nodes, and folds with what they hold.
 * @param {FxPicture} picture
 * @param {FxNode[]} nodes
 * @returns {FxDrawing}
 */
function drawingOf(picture, nodes) {
  const { width, height } = picture;
  const boxes = picture.boxes.map(([x, y, w, h], i) => boxOf(picture, nodes, i, { x, y, w, h }));
  const arrows = picture.edges.map((points, i) => {
    const [source, target] = picture.joined[i];
    return { points, source: boxes[source].id, target: boxes[target].id };
  });
  return { width, height, boxes, arrows: arrows.filter((arrow) => arrow.points.length > 1) };
}

/**
 * @param {FxPicture} picture
 * @param {FxNode[]} nodes
 * @param {number} i
 * @param {{ x: number, y: number, w: number, h: number }} rectangle
 * @returns {FxBox}
 */
function boxOf(picture, nodes, i, rectangle) {
  const fold = picture.folds?.[i];
  const at = fold ? fold.first : picture.first + i;
  const shape = { at, ...rectangle, title: picture.titles[i], note: picture.notes[i] };
  if (!fold) return { ...nodes[at], ...shape, id: String(at) };
  return {
    ...shape,
    id: `${at}+${fold.count}`,
    kind: fold.name === "inputs" ? "input" : "fold",
    full: `${fold.name}: ${fold.count} nodes`,
    heat: fold.heat,
    inside: fold.inside,
  };
}

/** Whether a box stands for several nodes. @param {FxBox} box */
const isFold = (box) => box.id.includes("+");

/** What a box shows. @param {FxBox} box */
function boxShape(box) {
  const { x, y, w, h, title, note, time, kind } = box;
  const rectangle = s("rect", {
    x,
    y,
    width: w,
    height: h,
    rx: kind === "input" || kind === "output" ? 14 : 5,
  });
  if (isFold(box)) {
    const mark = s("path", { cls: "dyn-fold", d: `M${x + 13} ${y + h / 2 - 4.5}v9l6 -4.5z` });
    return [rectangle, mark, label("", x + 26, y + 17, title), label("dyn-fxval", x + 26, y + 31, note)];
  }
  const middle = x + w / 2;
  return [
    rectangle,
    label("", middle, y + (time ? 17 : h / 2 + 4), title, "middle"),
    label("dyn-fxval", middle, y + 31, time, "middle"),
    label("dyn-fxval", middle, y + h + 11, note, "middle"),
  ];
}

/** A node or fold of the picture. @param {FxBox} box */
function boxNode(box) {
  const props = {
    cls: `dyn-fxnode dyn-fx-${box.kind}${box.heat === undefined ? "" : " dyn-hot"}`,
    style: heatStyle(box),
    role: "button",
    tabindex: "-1",
    "data-id": box.id,
  };
  const title = s("title", { text: box.full + (box.place ? `\n${box.place}` : "") });
  return s("g", props, title, ...boxShape(box));
}

/**
 * The picture.
 * @param {FxBody} body
 * @param {(box: FxBox) => void} point shows a node
 * @param {string} name
 * @param {Set<string>} open the part that is shown, unless it is the whole
 * @param {() => void} changed is called each time the pane is drawn
 */
function pictureView({ picture, nodes }, point, name, open, changed) {
  const whole = drawingOf(picture, nodes);
  const pane = h("div", { cls: "dyn-fxpane dyn-picture" });
  /** @type {FxBox[]} */
  let boxes = [];
  /** @type {Map<string, SVGElement>} */
  let parts = new Map();
  /** @type {(readonly [{ source: string, target: string }, SVGElement])[]} */
  let arrows = [];
  let now = "";
  const partOf = (/** @type {string} */ id) => /** @type {SVGElement} */ (parts.get(id));
  const mark = roving(pane, ".dyn-fxnode", { arrows: "all", enter: (part) => act(idOf(part)) });

  function draw() {
    const inside = whole.boxes.find((box) => open.has(box.id))?.inside;
    const drawing = inside ? drawingOf(inside, nodes) : whole;
    boxes = drawing.boxes;
    parts = new Map(boxes.map((box) => [box.id, boxNode(box)]));
    arrows = drawing.arrows.map((arrow) => [arrow, s("path", { cls: "dyn-arrow", d: rounded(arrow.points, 5) })]);
    const svg = s(
      "svg",
      { width: drawing.width, height: drawing.height, role: "group", "aria-label": name },
      arrows.map(([, path]) => path),
      [...parts.values()],
    );
    pane.replaceChildren(svg);
    mark(partOf(parts.has(now) ? now : boxes[0].id));
    highlight();
    changed();
  }
  function highlight() {
    for (const [id, part] of parts) part.setAttribute("aria-pressed", String(id === now));
    for (const [arrow, path] of arrows) {
      path.classList.toggle("dyn-on", arrow.source === now || arrow.target === now);
    }
  }
  /** Show a node's line, or what a fold holds. @type {(id: string) => void} */
  function act(id) {
    const box = boxes.find((other) => other.id === id);
    if (!box) return;
    now = id;
    point(box);
    if (!box.inside) {
      highlight();
      return;
    }
    open.add(id);
    draw();
    partOf(boxes[0].id).focus({ preventScroll: true });
  }

  pane.addEventListener("click", (event) => {
    const hit = closest(event, ".dyn-fxnode");
    if (hit) act(idOf(hit));
  });
  draw();
  requestAnimationFrame(() => {
    pane.scrollLeft = boxes[0].x + (boxes[0].w - pane.clientWidth) / 2; // start where the graph does
  });
  /** Show the whole again, and stay on the part that was shown. */
  const showWhole = () => {
    [now] = open;
    open.clear();
    draw();
    partOf(now).focus();
  };
  return { pane, showWhole };
}

/**
 * What the colours mean.
 * @param {FxNode[]} nodes
 */
function legend(nodes) {
  const kinds = [...new Set(nodes.map((node) => node.kind))];
  const entries = kinds.map((kind) => h("span", {}, h("i", { cls: `dyn-dot dyn-fx-${kind}` }), KINDS[kind] || kind));
  const timed = nodes.find((node) => node.time);
  const what = timed?.time?.includes("off by") ? "error against float64" : "eager time of each op";
  const heat = timed && h("span", {}, h("i", { cls: "dyn-heatkey" }), what);
  return h("div", { cls: "dyn-legend" }, ...entries, heat);
}

/**
 * @param {FxBody} body
 * @param {PointAt} pointAt shows a line of the source
 * @param {string} name
 * @param {Set<string>} open the part that is shown, also when the detail is drawn again
 */
export function fxView(body, pointAt, name, open) {
  const { nodes, picture } = body;
  const status = h("div", { cls: "dyn-fxstatus", role: "status" });
  const pane = h("div");
  let listed = false;
  let at = -1;
  const point = (/** @type {number} */ i, /** @type {Pick<FxNode, "full"> & Partial<FxNode>} */ node) => {
    at = i;
    status.textContent = node.full + (node.place ? `  ·  ${node.place}` : "");
    if (node.line) pointAt(node.file, node.line);
  };
  const flip = () => {
    listed = !listed;
    show();
  };
  const kindButton = button("dyn-btn", "", flip);
  const wholeButton = button("dyn-btn", "All parts", () => drawn.showWhole());
  const updateButtons = () => {
    kindButton.textContent = listed ? "As a graph" : "As a list";
    wholeButton.hidden = listed || !open.size;
  };
  const drawn = pictureView(
    body,
    (box) => {
      point(box.at, box);
      if (isFold(box) && !box.inside) flip(); // too many nodes to be drawn
    },
    name,
    open,
    updateButtons,
  );
  function show() {
    pane.replaceChildren(listed ? listView(nodes, (i) => point(i, nodes[i]), at) : drawn.pane);
    updateButtons();
  }
  if (picture.folds) {
    status.textContent = `${nodes.length} nodes, folded into ${picture.folds.length}: click one to open it`;
  }
  show();
  const tools = h("div", { cls: "dyn-fxtools" }, wholeButton, kindButton);
  return h("div", { cls: "dyn-fx" }, h("div", { cls: "dyn-fxbar" }, legend(nodes), tools), pane, status);
}
