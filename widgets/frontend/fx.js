// An FX graph in the detail: drawn where it is small, a list that draws only what is in sight where it is not.

import { h, reveal, s } from "./dom.js";
import { rounded } from "./logic.js";

const ROW = 22;
const HEIGHT = 330;

// How long an operation took, as a tint; its time stands beside it in words.
const hot = (node) => (node.heat === undefined ? null : `--h:${node.heat}%`);

function fxRow(node, i, point, now) {
  return h("div", { "aria-pressed": String(i === now), cls: `dyn-fxrow dyn-fx-${node.kind}`, role: "button", tabindex: "-1", title: node.full, style: `top:${i * ROW}px`, "data-i": i, onclick: () => point(i) },
    h("i", { cls: "dyn-dot" }), h("b", { text: node.name }), h("span", { text: node.op === "placeholder" ? "input" : node.target }), h("span", { cls: "dyn-took", style: hot(node), text: node.time }), h("span", { cls: "dyn-val", text: node.value }), h("span", { cls: "dyn-at", text: node.place || "" }));
}

// Rows of fixed height; only those in sight and a few around them exist, and scrolling makes only the new ones.
function fxList(nodes, point) {
  const inner = h("div", { style: `height:${nodes.length * ROW}px;position:relative` });
  const box = h("div", { cls: `dyn-fxlist${nodes.some((n) => n.time) ? " dyn-timed" : ""}`, tabindex: "0", role: "group", "aria-label": `${nodes.length} nodes, arrow keys choose`, style: `height:${Math.min(HEIGHT, nodes.length * ROW + 2)}px` }, inner);
  const rows = new Map();
  let now = -1, from = 0;
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
  draw();
  return box;
}

function fxPicture(picture, nodes, point, name) {
  const inside = Boolean(nodes[0] && nodes[0].fold);
  const shape = (i) => {
    const [x, y, w, height] = picture.boxes[i], n = nodes[i];
    const act = () => {
      point(n);
      for (const other of svg.querySelectorAll(".dyn-fxnode")) other.setAttribute("aria-pressed", String(other === g));
    };
    const g = s("g", { cls: `dyn-fxnode dyn-fx-${n.kind}${n.heat === undefined ? "" : " dyn-hot"}`, style: hot(n), role: "button", "aria-pressed": "false", tabindex: i ? "-1" : "0", onclick: act },
      s("title", { text: n.full + (n.place ? `\n${n.place}` : "") }), s("rect", { x, y, width: w, height, rx: n.kind === "input" || n.kind === "output" ? 14 : 5 }),
      s("text", { x: x + w / 2, y: y + (n.fold || n.time ? 17 : height / 2 + 4), "text-anchor": "middle", text: picture.titles[i] }),
      n.time ? s("text", { cls: "dyn-fxval", x: x + w / 2, y: y + 31, text: n.time }) : "");
    g.addEventListener("keydown", (event) => {
      const to = { ArrowDown: i + 1, ArrowRight: i + 1, ArrowUp: i - 1, ArrowLeft: i - 1 }[event.key];
      if (event.key === "Enter" || event.key === " ") act();
      else if (to !== undefined && shapes[to]) {
        g.setAttribute("tabindex", "-1");
        shapes[to].setAttribute("tabindex", "0");
        shapes[to].focus({ preventScroll: true });
        reveal(pane, shapes[to].querySelector("rect"));
      } else return;
      event.preventDefault();
      event.stopPropagation();
    });
    return g;
  };
  const shapes = nodes.map((_, i) => shape(i));
  const svg = s("svg", { width: picture.width, height: picture.height, role: "group", "aria-label": name },
    ...picture.edges.filter((e) => e.length > 1).map((e) => s("path", { cls: "dyn-arrow", d: rounded(e, 5) })),
    ...(inside ? shapes : []),
    ...picture.labels.flatMap(([x, y, text]) => [!inside && s("rect", { cls: "dyn-fxback", x: x - text.length * 3.05 - 1, y: y - 9, width: text.length * 6.1 + 2, height: 12 }), s("text", { cls: "dyn-fxval", x, y, text })]), ...(inside ? [] : shapes));
  const pane = h("div", { cls: "dyn-fxpane" }, svg);
  requestAnimationFrame(() => { pane.scrollLeft = (pane.scrollWidth - pane.clientWidth) / 2; });
  return pane;
}

export function fxView(body, pointAt, name) {
  const told = h("div", { cls: "dyn-told", role: "status" });
  const point = (node) => {
    told.textContent = node.full + (node.place ? `  ·  ${node.place}` : "");
    if (node.line) pointAt(node.file, node.line);
  };
  const pane = h("div");
  const { folds } = body;
  const kinds = [...new Set(body.nodes.map((n) => n.kind))];
  const words = { input: "input", param: "parameter", matmul: "matmul, conv, module", point: "pointwise", reduce: "reduction", shape: "shape, index", output: "output" };
  const key = h("div", { cls: "dyn-legend" }, ...kinds.map((k) => h("span", {}, h("i", { cls: `dyn-dot dyn-fx-${k}` }), words[k] || k)),
    body.nodes.some((n) => n.time) ? h("span", {}, h("i", { cls: "dyn-heatkey" }), "time alone, eager") : null);
  let drawn = Boolean(body.picture), fold = null;
  const button = h("button", { cls: "dyn-btn", type: "button", onclick: () => { drawn = fold ? true : !drawn; fold = null; show(); } });
  // A fold as a node: what a click on it does is to open the list of its nodes.
  const folded = () => folds.map((f) => ({ kind: f.name === "inputs" ? "input" : "fold", full: `${f.name}: ${f.count} nodes; opens as a list`, heat: f.heat, fold: f }));
  const unfold = (node) => {
    [fold, drawn] = [node.fold, false];
    show();
    pane.querySelector(".dyn-fxlist").focus();
  };
  function show() {
    const nodes = fold ? body.nodes.slice(fold.first, fold.first + fold.count) : body.nodes;
    pane.replaceChildren(!drawn ? fxList(nodes, point) : folds ? fxPicture(body.picture, folded(), unfold, name) : fxPicture(body.picture, nodes, point, name));
    button.textContent = drawn ? "As a list" : fold ? "Back to the folded graph" : folds ? "As a folded graph" : "As a graph";
    told.textContent = fold ? `${fold.name}: ${fold.count} of ${body.nodes.length} nodes` : drawn && folds ? `${body.nodes.length} nodes, folded into ${folds.length}: click one to open it` : "";
  }
  button.hidden = !body.picture;
  show();
  return h("div", { cls: "dyn-fx" }, h("div", { cls: "dyn-fxbar" }, key, button), pane, told);
}
