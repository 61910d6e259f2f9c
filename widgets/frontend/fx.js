// An FX graph in the detail: drawn, a large one with folds that open in place, or a list that draws only what is in sight.

import { h, reveal, s } from "./dom.js";
import { rounded } from "./logic.js";
import { openShape, triangle } from "./split.js";
import { unfolded } from "./unfold.js";

const ROW = 22;
const HEIGHT = 330;

// How long an operation took, as a tint; its time stands beside it in words.
const hot = (node) => (node.heat === undefined ? null : `--h:${node.heat}%`);

function fxRow(node, i, point, now) {
  return h("div", { "aria-pressed": String(i === now), cls: `dyn-fxrow dyn-fx-${node.kind}`, role: "button", tabindex: "-1", title: node.full, style: `top:${i * ROW}px`, "data-i": i, onclick: () => point(i) },
    h("i", { cls: "dyn-dot" }), h("b", { text: node.name }), h("span", { text: node.op === "placeholder" ? "input" : node.target }), h("span", { cls: "dyn-took", style: hot(node), text: node.time }), h("span", { cls: "dyn-val", text: node.value }), h("span", { cls: "dyn-at", text: node.place || "" }));
}

// Rows of fixed height; only those in sight and a few around them exist, and scrolling makes only the new ones.
function fxList(nodes, point, start) {
  const inner = h("div", { style: `height:${nodes.length * ROW}px;position:relative` });
  const box = h("div", { cls: `dyn-fxlist${nodes.some((n) => n.time) ? " dyn-timed" : ""}`, tabindex: "0", role: "group", "aria-label": `${nodes.length} nodes, arrow keys choose`, style: `height:${Math.min(HEIGHT, nodes.length * ROW + 2)}px` }, inner);
  const rows = new Map();
  let now = start, from = 0;
  const choose = (i) => {
    if (rows.has(now)) rows.get(now).setAttribute("aria-pressed", "false");
    now = i;
    point(nodes[i]);
    draw();
    box.focus({ preventScroll: true });
    rows.get(i).setAttribute("aria-pressed", "true");
  };
  const draw = () => {
    const first = Math.max(0, Math.floor(box.scrollTop / ROW) - 3), end = Math.min(nodes.length, first + Math.ceil(HEIGHT / ROW) + 6);
    for (const [i, row] of rows) {
      if (i >= first && i < end) continue;
      row.remove();
      rows.delete(i);
    }
    const fresh = [];
    for (let i = first; i < end; i++) {
      if (rows.has(i)) continue;
      rows.set(i, fxRow(nodes[i], i, choose, now));
      fresh.push(rows.get(i));
    }
    inner[first < from ? "prepend" : "append"](...fresh);
    from = first;
  };
  box.addEventListener("keydown", (event) => {
    const to = { ArrowDown: now + 1, ArrowUp: now - 1, Home: 0, End: nodes.length - 1 }[event.key];
    if (to === undefined || !nodes[to]) return;
    const top = to * ROW;
    if (top < box.scrollTop || top + ROW > box.scrollTop + box.clientHeight) box.scrollTop = to < now ? top : top + ROW - box.clientHeight;
    choose(to);
    event.preventDefault();
    event.stopPropagation();
  });
  box.addEventListener("scroll", draw);
  requestAnimationFrame(() => { box.scrollTop = start * ROW; });
  draw();
  return box;
}

// The kernel's drawing as shapes, like those of the split graph: nodes, and folds with what they hold.
function shapesOf(drawing, nodes) {
  const boxes = drawing.boxes.map(([x, y, w, h], i) => {
    const fold = drawing.folds && drawing.folds[i], at = fold ? fold.first : drawing.first + i, place = { at, x, y, w, h, title: drawing.titles[i], note: drawing.notes[i] };
    if (!fold) return { ...nodes[at], ...place, id: String(at) };
    return { ...place, id: `${at}+${fold.count}`, kind: fold.name === "inputs" ? "input" : "fold", full: `${fold.name}: ${fold.count} nodes`, heat: fold.heat, inside: shapesOf(fold.inside, nodes) };
  });
  const arrows = drawing.edges.map((points, i) => ({ points, source: boxes[drawing.joined[i][0]].id, target: boxes[drawing.joined[i][1]].id }));
  return { width: drawing.width, height: drawing.height, groups: [], boxes, arrows: arrows.filter((a) => a.points.length > 1) };
}

function fxShape(b) {
  if (b.kind === "unfolded") return openShape(b);
  const middle = b.x + b.w / 2, round = b.kind === "input" || b.kind === "output" ? 14 : 5;
  const text = (x, y, text, cls, anchor = "middle") => text && s("text", { cls, x, y, text, "text-anchor": anchor });
  return [s("rect", { x: b.x, y: b.y, width: b.w, height: b.h, rx: round }),
    ...(b.inside ? [triangle(b, false), text(b.x + 26, b.y + 17, b.title, "", "start"), text(b.x + 26, b.y + 31, b.note, "dyn-fxval", "start")]
      : [text(middle, b.y + (b.time ? 17 : b.h / 2 + 4), b.title), text(middle, b.y + 31, b.time, "dyn-fxval"), text(middle, b.y + b.h + 11, b.note, "dyn-fxval")])];
}

function fxPicture(drawing, nodes, point, name, open, changed) {
  const whole = shapesOf(drawing, nodes), pane = h("div", { cls: "dyn-fxpane" });
  let shown = [], parts = new Map(), arrows = [], now = "";

  function draw() {
    const picture = unfolded(whole, open);
    shown = [...picture.groups, ...picture.boxes].sort((a, b) => a.at - b.at);
    parts = new Map(shown.map((b) => [b.id, s("g", { cls: `dyn-fxnode dyn-fx-${b.kind}${b.kind === "unfolded" ? " dyn-k-unfolded" : b.heat === undefined ? "" : " dyn-hot"}`, style: hot(b), role: "button", tabindex: "-1", "data-id": b.id,
      "aria-expanded": b.inside ? String(open.has(b.id)) : null }, s("title", { text: b.full + (b.place ? `\n${b.place}` : "") }), ...fxShape(b))]));
    arrows = picture.arrows.map((a) => [a, s("path", { cls: "dyn-arrow", d: rounded(a.points, 5) })]);
    pane.replaceChildren(s("svg", { width: picture.width, height: picture.height, role: "group", "aria-label": name },
      ...picture.groups.map((b) => parts.get(b.id)), ...arrows.map(([, path]) => path), ...picture.boxes.map((b) => parts.get(b.id))));
    stop(parts.has(now) ? now : shown[0].id);
    light();
    changed();
  }
  function light() {
    for (const [id, part] of parts) part.setAttribute("aria-pressed", String(id === now));
    for (const [a, path] of arrows) path.classList.toggle("dyn-on", a.source === now || a.target === now);
  }
  function stop(id) {
    const before = pane.querySelector("[tabindex='0']"), at = parts.get(id);
    if (before) before.setAttribute("tabindex", "-1");
    at.setAttribute("tabindex", "0");
    return at;
  }
  // Show a node's line; open a fold in place, or fold it again, and stay on it.
  function act(id) {
    const b = shown.find((other) => other.id === id), place = () => parts.get(id).getBoundingClientRect(), before = place();
    now = id;
    point(b);
    if (!b.inside) return light();
    if (!open.delete(id)) open.add(id);
    draw();
    const after = place(), top = pane.getBoundingClientRect().top + 30;
    pane.scrollLeft += after.left - before.left;
    pane.scrollTop += after.top - (open.has(id) ? Math.min(before.top, top) : before.top);
    parts.get(id).focus({ preventScroll: true });
  }
  pane.addEventListener("click", (event) => {
    const hit = event.target.closest(".dyn-fxnode");
    if (hit) act(hit.dataset.id);
  });
  pane.addEventListener("keydown", (event) => {
    const { id } = event.target.closest(".dyn-fxnode").dataset, i = shown.findIndex((b) => b.id === id);
    const to = shown[{ ArrowDown: i + 1, ArrowRight: i + 1, ArrowUp: i - 1, ArrowLeft: i - 1, Home: 0, End: shown.length - 1 }[event.key]];
    if (event.key === "Enter" || event.key === " ") act(id);
    else if (to) {
      const part = stop(to.id);
      part.focus({ preventScroll: true });
      reveal(pane, to.kind === "unfolded" ? part.querySelector("text") : part.querySelector("rect"));
    } else return;
    event.preventDefault();
    event.stopPropagation();
  });
  draw();
  requestAnimationFrame(() => { pane.scrollLeft = shown[0].x + (shown[0].w - pane.clientWidth) / 2; }); // it starts where the graph does
  return { pane, fold() { open.clear(); draw(); } };
}

const KINDS = { input: "input", param: "parameter", matmul: "matmul, conv, module", point: "pointwise", reduce: "reduction", shape: "shape, index", output: "output" };

// `open`: the folds that are open; they stay so when the detail is drawn anew.
export function fxView(body, pointAt, name, open) {
  const { nodes, picture } = body, told = h("div", { cls: "dyn-told", role: "status" }), pane = h("div");
  const kinds = [...new Set(nodes.map((n) => n.kind))];
  const key = h("div", { cls: "dyn-legend" }, ...kinds.map((k) => h("span", {}, h("i", { cls: `dyn-dot dyn-fx-${k}` }), KINDS[k] || k)),
    nodes.some((n) => n.time) ? h("span", {}, h("i", { cls: "dyn-heatkey" }), "time alone, eager") : null);
  let listed = false, at = -1;
  const point = (node) => {
    at = node.at === undefined ? nodes.indexOf(node) : node.at;
    told.textContent = node.full + (node.place ? `  ·  ${node.place}` : "");
    if (node.line) pointAt(node.file, node.line);
  };
  const kind = h("button", { cls: "dyn-btn", type: "button", onclick: () => { listed = !listed; show(); } });
  const fold = h("button", { cls: "dyn-btn", type: "button", text: "Fold all", onclick: () => drawn.fold() });
  const buttons = () => {
    kind.textContent = listed ? "As a graph" : "As a list";
    fold.hidden = listed || !open.size;
  };
  const drawn = fxPicture(picture, nodes, point, name, open, buttons);
  function show() {
    pane.replaceChildren(listed ? fxList(nodes, point, at) : drawn.pane);
    buttons();
  }
  if (picture.folds) told.textContent = `${nodes.length} nodes, folded into ${picture.folds.length}: click one to open it`;
  show();
  return h("div", { cls: "dyn-fx" }, h("div", { cls: "dyn-fxbar" }, key, h("div", { cls: "dyn-fxtools" }, fold, kind)), pane, told);
}
