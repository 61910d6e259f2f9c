// Symbols in the shapes of an FX graph, as links to their rows in the detail of the frame.

/** @import { SymbolLinks } from "./wire" */

const NAME = /\b(?:s|u|zf|zuf)\d+\b/g;

/**
 * Make links of the symbols in an element, HTML or SVG. `data-symbol` has the name; `stops`: the keyboard reaches them.
 * @param {Element} root
 * @param {SymbolLinks | undefined} symbols
 */
export function linkSymbols(root, symbols, stops = false) {
  if (!symbols) return;
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  const texts = [];
  while (walker.nextNode()) texts.push(/** @type {Text} */ (walker.currentNode));
  for (const text of texts) {
    const parent = /** @type {Element} */ (text.parentNode);
    if (parent.localName === "title") continue;
    // from the last one back: so the text before each stays in the same node
    for (const { 0: name, index } of [...text.data.matchAll(NAME)].reverse()) {
      const about = symbols.about[name];
      if (!about) continue;
      const link = document.createElementNS(parent.namespaceURI, parent.localName === "text" ? "tspan" : "span");
      const props = {
        class: "dyn-sym",
        "data-symbol": name,
        title: about,
        role: "link",
        ...(stops && { tabindex: 0 }),
      };
      for (const [key, value] of Object.entries(props)) link.setAttribute(key, String(value));
      text.splitText(index + name.length);
      link.append(text.splitText(index));
      text.after(link);
    }
  }
}
