// Elements, made from data only: every text becomes a text node, nothing is ever parsed as HTML.

const SVG_NS = "http://www.w3.org/2000/svg";

function fill(node, props, children) {
  for (const [name, value] of Object.entries(props || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "text") node.textContent = value;
    else node.setAttribute(name === "cls" ? "class" : name, value === true ? "" : String(value));
  }
  for (const child of children.flat()) if (child !== null && child !== undefined && child !== false) node.append(child);
  return node;
}

export const h = (tag, props, ...children) => fill(document.createElement(tag), props, children);

export const s = (tag, props, ...children) => fill(document.createElementNS(SVG_NS, tag), props, children);

// An attribute that is "true" on a few of many nodes: only those that change are touched.
export function lamp(name) {
  let lit = new Set();
  return (nodes) => {
    const now = new Set(nodes);
    for (const node of lit) if (!now.has(node)) node.setAttribute(name, "false");
    for (const node of now) if (!lit.has(node)) node.setAttribute(name, "true");
    lit = now;
  };
}

// Scroll only the given box, never the page around it.
export function reveal(box, node, center = false) {
  if (!box || !node) return;
  const a = box.getBoundingClientRect(),
    b = node.getBoundingClientRect();
  const up = b.top - a.top,
    left = b.left - a.left;
  if (up < 0 || up + b.height > a.height)
    box.scrollTop += center ? up - (a.height - b.height) / 2 : up < 0 ? up - 8 : up + b.height - a.height + 8;
  if (left < 0 || left + b.width > a.width)
    box.scrollLeft += left < 0 || b.width > a.width ? left - 12 : left + b.width - a.width + 12;
}

export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = h("textarea", { style: "position:fixed;opacity:0" });
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

// One tab stop for a set of elements: arrows move inside it, Home and End go to its ends.
export function roving(box, selector, { vertical = true, enter = null } = {}) {
  const items = () => [...box.querySelectorAll(selector)];
  let stop = null;
  const mark = (now) => {
    if (stop && stop !== now) stop.setAttribute("tabindex", "-1");
    stop = now;
    stop.setAttribute("tabindex", "0");
  };
  box.addEventListener("keydown", (event) => {
    const all = items(),
      at = all.indexOf(event.target.closest(selector));
    if (at < 0 || event.altKey || event.ctrlKey || event.metaKey) return;
    const [back, on] = vertical ? ["ArrowUp", "ArrowDown"] : ["ArrowLeft", "ArrowRight"];
    const to = { [back]: at - 1, [on]: at + 1, Home: 0, End: all.length - 1 }[event.key];
    if (to !== undefined && all[to]) {
      mark(all[to]);
      all[to].focus();
    } else if (enter && (event.key === "Enter" || event.key === " ")) enter(all[at]);
    else if (to === undefined) return;
    event.preventDefault();
    event.stopPropagation();
  });
  box.addEventListener("focusin", (event) => {
    const item = event.target.closest(selector);
    if (item) mark(item);
  });
  return mark;
}
