// Creates elements from data: every text becomes a text node. What Python made as markup is parsed by `markup` alone.

/** @import { ViewElement } from "./view" */
/** @typedef {string | number | boolean | null | undefined | ((event: MouseEvent) => void)} Prop */
/** @typedef {Node | string | false | null | undefined} Child */

const SVG_NS = "http://www.w3.org/2000/svg";

/**
 * Give an element its attributes and children. `cls` is the class, `text` the text content, `on...` a listener;
 * what is null, undefined or false is left out.
 * @template {Element} E
 * @param {E} node
 * @param {Record<string, Prop>} props
 * @param {(Child | Child[])[]} [children]
 */
export function fill(node, props, children = []) {
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") node.addEventListener(name.slice(2), /** @type {EventListener} */ (value));
    else if (name === "text") node.textContent = String(value);
    else node.setAttribute(name === "cls" ? "class" : name, value === true ? "" : String(value));
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined && child !== false) node.append(child);
  }
  return node;
}

/**
 * A new HTML element.
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Record<string, Prop>} [props]
 * @param {(Child | Child[])[]} children
 */
export const h = (tag, props = {}, ...children) => fill(document.createElement(tag), props, children);

/**
 * A new SVG element.
 * @template {keyof SVGElementTagNameMap} T
 * @param {T} tag
 * @param {Record<string, Prop>} [props]
 * @param {(Child | Child[])[]} children
 */
export const s = (tag, props = {}, ...children) => fill(document.createElementNS(SVG_NS, tag), props, children);

/**
 * A button.
 * @param {string} cls
 * @param {string} text
 * @param {((event: MouseEvent) => void) | null} onclick
 * @param {Record<string, Prop>} [props]
 * @param {Child[]} children
 */
export const button = (cls, text, onclick, props = {}, ...children) =>
  h("button", { cls, type: "button", text, onclick, ...props }, ...children);

/**
 * A text in a picture, or nothing where there is none.
 * @param {string} cls
 * @param {number} x
 * @param {number} y
 * @param {string | undefined} text
 * @param {"end" | "middle" | null} [anchor] the point of the text that is at `x`, its start by default
 */
export const label = (cls, x, y, text, anchor) =>
  text ? s("text", { cls: cls || null, x, y, text, "text-anchor": anchor }) : null;

/**
 * A text whose words between backticks are code.
 * @param {string} text
 * @returns {Child[]}
 */
export const withCode = (text) =>
  text
    .split("`")
    .map((part, i) => (i % 2 ? h("code", { text: part }) : part.replace(/(\d) (?=[nµm]?s\b)/g, "$1\u00a0")));

/** A part of one line that is cut where there is no room for it. @param {string} text */
const gives = (text) => h("i", { cls: "dyn-gives", style: `--ch:${text.length}` }, h("bdi", { text }));

/** What is before the class in a method's name, the class, and the rest. @param {string} name */
const classOf = (name) => /^(.*?)((?:[\w<>]+\.)*[\w<>]+)(\.[^.]+)$/.exec(name)?.slice(1) || ["", "", name];

/** A name without its class, if the name above has the same class. @type {(name: string, above?: string) => string} */
export function saidOnce(name, above = "") {
  const [before, owner, own] = classOf(name);
  return owner && classOf(above)[1] === owner ? before + own : name;
}

/** The name of a function; where there is little room, its class gives way. @type {(name: string, above?: string) => HTMLElement} */
export function nameParts(name, above) {
  const [before, owner, own] = classOf(saidOnce(name, above));
  return h("b", { cls: "dyn-name" }, before, owner && gives(owner), own);
}

/**
 * A place: of its file the beginning gives way, its line never; the file of the place above is left out.
 * @param {string} place
 * @param {string} [above]
 */
export function placeParts(place, above = "") {
  const [, file, line] = /^(.*?)((?::\d+){0,2})$/.exec(place) || ["", place, ""];
  return h("span", { cls: "dyn-place" }, !(line && above.startsWith(`${file}:`)) && gives(file), line);
}

/**
 * What Python made, with every text escaped (`render/ranks_page.py`, `drawing`): the only text that is parsed.
 * @param {string} text
 */
export function markup(text) {
  const template = h("template");
  template.innerHTML = text;
  return template.content;
}

/** The attributes of a listbox item that is not selected. */
export const OPTION = { role: "option", "aria-selected": "false", tabindex: "-1" };

/**
 * The element around an event's target that matches.
 * @param {Event} event
 * @param {string} selector
 * @returns {ViewElement | null}
 */
export const closest = (event, selector) => /** @type {Element} */ (event.target).closest(selector);

/**
 * The id that an element represents, or "".
 * @param {ViewElement | null} node
 */
export const idOf = (node) => node?.dataset.id || "";

/**
 * Stop an event that was handled: neither the browser nor an outer listener acts on it.
 * @param {Event} event
 */
export function handled(event) {
  event.preventDefault();
  event.stopPropagation();
}

/**
 * Returns a function that makes an attribute "true" on the given nodes, and "false" on those that had it before.
 * @param {string} name
 */
export function exclusive(name) {
  /** @type {Set<Element>} */
  let marked = new Set();
  return (/** @type {Iterable<Element>} */ nodes) => {
    const now = new Set(nodes);
    for (const node of marked) if (!now.has(node)) node.setAttribute(name, "false");
    for (const node of now) if (!marked.has(node)) node.setAttribute(name, "true");
    marked = now;
  };
}

/**
 * Scroll a box until a node in it is in sight, but never the page around it.
 * @param {Element} box
 * @param {Element | null | undefined} node
 * @param {boolean} center whether to scroll it to the middle of the visible part of the box
 */
export function reveal(box, node, center = false) {
  if (!node) return;
  const outer = box.getBoundingClientRect();
  const inner = node.getBoundingClientRect();
  const top = inner.top - outer.top;
  const left = inner.left - outer.left;
  const seen = innerHeight - outer.top;
  const height = center && seen > 6 * inner.height && seen < outer.height ? seen : outer.height;
  if (top < 0 || top + inner.height > height) {
    if (center) box.scrollTop += top - (height - inner.height) / 2;
    else box.scrollTop += top < 0 ? top - 8 : top + inner.height - outer.height + 8;
  }
  if (left < 0 || left + inner.width > outer.width) {
    const wide = inner.width > outer.width;
    box.scrollLeft += left < 0 || wide ? left - 12 : left + inner.width - outer.width + 12;
  }
}

/**
 * Copy a text to the clipboard; returns whether that worked.
 * @param {string} text
 */
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

/**
 * One tab stop for the elements of a box: arrow keys move among them, Home and End go to the first and the last.
 * @param {Element} box
 * @param {string} selector
 * @param {{ arrows?: "vertical" | "horizontal" | "all", enter?: (item: HTMLElement) => void }} [options]
 * @returns {(item: Element) => void} a function that makes an element the tab stop
 */
export function roving(box, selector, { arrows = "vertical", enter } = {}) {
  /** @type {Element | null} */
  let stop = null;
  const mark = (/** @type {Element} */ item) => {
    if (stop && stop !== item) stop.setAttribute("tabindex", "-1");
    stop = item;
    stop.setAttribute("tabindex", "0");
  };
  box.addEventListener("keydown", (given) => {
    const event = /** @type {KeyboardEvent} */ (given);
    const items = /** @type {HTMLElement[]} */ ([...box.querySelectorAll(selector)]);
    const at = items.indexOf(/** @type {HTMLElement} */ (closest(event, selector)));
    if (at < 0 || event.altKey || event.ctrlKey || event.metaKey) return;
    /** @type {Record<string, number>} */
    const moves = {
      ...(arrows !== "horizontal" && { ArrowUp: at - 1, ArrowDown: at + 1 }),
      ...(arrows !== "vertical" && { ArrowLeft: at - 1, ArrowRight: at + 1 }),
      Home: 0,
      End: items.length - 1,
    };
    const item = items[moves[event.key]];
    if (item) {
      mark(item);
      item.focus();
    } else if (enter && (event.key === "Enter" || event.key === " ")) enter(items[at]);
    else if (!(event.key in moves)) return;
    handled(event);
  });
  box.addEventListener("focusin", (event) => {
    const item = closest(event, selector);
    if (item) mark(item);
  });
  return mark;
}
