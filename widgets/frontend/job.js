// The page of a job's ranks, which Python made: shows the views of two groups side by side, and finds a rank.

import { closest, h, markup } from "./dom.js";
import { followTheme } from "./theme.js";

/** @import { ViewModel } from "./wire" */
/** @typedef {{ page?: string, views: (ViewModel | null)[] }} Job `page`: its HTML, unless it is in the document already */

/**
 * Show a job in an element; returns a function that removes it.
 * @param {HTMLElement} root
 * @param {Job} job
 * @param {(body: HTMLElement, view: ViewModel, selected: string) => () => void} mountReport
 */
export function mountJob(root, { page, views }, mountReport) {
  if (page !== undefined) root.replaceChildren(markup(page));
  const node = /** @type {HTMLElement} */ (root.querySelector(".dyn-ranks"));
  const stopTheme = followTheme(node);
  const panes = /** @type {HTMLElement[]} */ ([...node.querySelectorAll(".dyn-rk-pair > div")]);
  const selects = [...node.querySelectorAll("select")];
  const stops = panes.map(() => () => {});

  /** Show the report of a group on one side, none if it is -1. @type {(side: number, group: number, frame?: string) => void} */
  function show(side, group, frame = "") {
    if (!selects[side]) return;
    stops[side]();
    stops[side] = () => {};
    selects[side].value = String(group);
    panes[side].hidden = group < 0;
    const view = views[group];
    if (view) stops[side] = mountReport(panes[side], view, frame);
    else panes[side].replaceChildren(h("p", { text: "The graphs of this group are not in this view." }));
  }
  /** Show both groups of a difference, at the place where they differ. @param {Element | null} card */
  function compare(card) {
    const { groups = "0 -1", frames = " " } = card instanceof HTMLElement ? card.dataset : {};
    groups.split(" ").forEach((group, side) => show(side, Number(group), frames.split(" ")[side]));
  }
  selects.forEach((select, side) => select.addEventListener("change", () => show(side, Number(select.value))));
  node.addEventListener("click", (event) => {
    const card = closest(event, ".dyn-rk-card > summary")?.parentElement;
    if (card && !card.hasAttribute("open")) compare(card);
  });
  const search = node.querySelector("input");
  search?.addEventListener("input", () => {
    const words = search.value.trim().toLowerCase();
    for (const line of /** @type {NodeListOf<HTMLElement>} */ (node.querySelectorAll("[data-rank]"))) {
      const found = /^\d+$/.test(words) ? line.dataset.rank === words : line.textContent?.toLowerCase().includes(words);
      line.hidden = !found;
    }
  });
  compare(node.querySelector(".dyn-rk-card[open]"));
  return () => {
    stopTheme();
    for (const stop of stops) stop();
  };
}
