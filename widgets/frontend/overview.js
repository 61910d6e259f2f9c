// What a large report opens with: the causes with their places, and the calls as a tree.

import { button, closest, exclusive, h, handled, nameParts, placeParts, reveal, saidOnce, withCode } from "./dom.js";
import { inSight, plural } from "./logic.js";

/** @import { Select, SelectablePart } from "./view" */
/** @import { CallRow, CausePlace, CauseRow, Overview, ViewModel } from "./wire" */

// How many places and eagerly run functions of a cause are shown at first, and how many causes are open at first.
const PLACES = 4;
const EAGER = 3;
const OPEN = 1;

/**
 * One place of a cause.
 * @param {CausePlace} place
 * @param {string} above the function of the place above
 * @param {Select} select
 */
function placeButton(place, above, select) {
  const { id, owner, function: name, code, times } = place;
  return button(
    `dyn-spot dyn-of-${owner}`,
    "",
    () => select(id),
    { "data-id": id, "aria-pressed": "false", title: `${place.place} in ${name}${code ? `: ${code}` : ""}` },
    h(
      "span",
      { cls: "dyn-line", style: `--ch:${place.place.length + saidOnce(name, above).length}` },
      placeParts(place.place),
      nameParts(name, above),
    ),
    times > 1 && h("span", { cls: "dyn-hits", text: `${times}×` }),
    h("code", { text: code }),
  );
}

/** Some names, and how many more there are. @param {string[]} names */
const few = (names) =>
  names.slice(0, EAGER).join(", ") + (names.length > EAGER ? `, ${names.length - EAGER} more` : "");

/**
 * One cause: what happens, what to do, where.
 * @param {CauseRow} cause
 * @param {number} number
 * @param {boolean} open
 * @param {Select} select
 */
function causeNode(cause, number, open, select) {
  const { kind, count, cost, title, fix, eager, places } = cause;
  const cut = places.length > PLACES + 1;
  const all = places.map((place, n) => placeButton(place, places[n - 1]?.function, select));
  const more = button("dyn-link", plural(places.length - PLACES, "more place"), () => {
    more.replaceWith(...all.slice(PLACES));
  });
  const verb = kind === "break" ? "runs eagerly: " : "at the recompile limit: ";
  return h(
    "details",
    { cls: `dyn-shared dyn-shared-${kind}`, open, "data-id": cause.id },
    h(
      "summary",
      { title },
      h("span", { cls: "dyn-rank", text: `${number}` }),
      h("b", { text: count }),
      h("span", { cls: "dyn-what" }, ...withCode(title)),
      h("span", { cls: "dyn-hits", text: cost }),
    ),
    fix ? h("p", { cls: "dyn-fix" }, h("span", { "aria-hidden": "true", text: "→ " }), ...withCode(fix)) : null,
    ...(cut ? [...all.slice(0, PLACES), more] : all),
    eager.length ? h("p", { cls: "dyn-eager", title: eager.join(", "), text: verb + few(eager) }) : null,
  );
}

/**
 * The bar of a row: how much of the program is in it.
 * @param {CallRow} row
 * @param {boolean} measured
 */
function bar({ part, eager, events }, measured) {
  const skipped = !measured && events.some(([kind]) => kind === "skipped");
  const what = measured ? "time of a call" : "captured operations";
  const note = skipped ? "; its own lines run eagerly" : eager ? `, ${eager}% in eager code` : "";
  const title = `${part}% of the row with the most ${what}${note}`;
  return h(
    "span",
    { cls: `dyn-part${skipped ? " dyn-part-eager" : ""}`, role: "gridcell", title, "aria-label": title },
    h("i", { style: `width:${part - eager}%` }),
    eager ? h("i", { cls: "dyn-part-eager", style: `width:${eager}%` }) : null,
  );
}

/**
 * One row of the tree.
 * @param {CallRow} row
 * @param {CallRow | undefined} above the row above
 * @param {number} at its position in the list of rows
 * @param {boolean | null} open null: there is nothing below it
 * @param {boolean} measured
 */
function callRow(row, above, at, open, measured) {
  const { name, depth, place, owner, events } = row;
  const sign = open === null ? "" : open ? "▾" : "▸";
  return h(
    "div",
    {
      cls: `dyn-call${place ? "" : " dyn-call-more"} dyn-of-${owner}`,
      role: "row",
      "aria-level": depth + 1,
      "aria-expanded": open === null ? null : String(open),
      "aria-selected": "false",
      tabindex: "-1",
      "data-at": at,
      title: `${name}${place ? ` at ${place}` : ""}`,
    },
    h(
      "span",
      { cls: "dyn-call-name dyn-line", role: "gridcell", style: `--depth:${depth}` },
      h("span", { cls: "dyn-twist", "aria-hidden": "true", text: sign }),
      place ? [nameParts(name, above?.name), placeParts(place, above?.place)] : h("b", { text: name }),
    ),
    h(
      "span",
      { cls: "dyn-tail" },
      h(
        "span",
        { cls: "dyn-events", role: "gridcell" },
        ...events.map(([kind, words]) => h("span", { cls: `dyn-event dyn-event-${kind}`, text: words })),
      ),
      bar(row, measured),
    ),
  );
}

/**
 * @param {Select} select
 * @param {() => void} enter goes to the detail
 * @returns {SelectablePart}
 */
export function overviewView(select, enter) {
  const causes = h("div", { cls: "dyn-causes" });
  const grid = h("div", { cls: "dyn-calls", role: "treegrid", "aria-label": "calls" });
  const causesTitle = h("h2");
  const left = h("section", { "aria-label": "causes" }, h("div", { cls: "dyn-bar" }, causesTitle), causes);
  const key = h("span", { cls: "dyn-part-key" });
  const right = h(
    "section",
    { "aria-label": "calls" },
    h("div", { cls: "dyn-bar" }, h("h2", { text: "Calls" }), key),
    grid,
  );
  const node = h("div", { cls: "dyn-over" }, h("div", { cls: "dyn-over-cols" }, left, right));
  const markPressed = exclusive("aria-pressed");
  const markSelected = exclusive("aria-selected");

  /** @type {ViewModel | null} */
  let content = null;
  /** @type {Overview | null} */
  let shown = null;
  let selected = "";
  /** Positions of the rows that are open. @type {Set<number>} */
  let open = new Set();
  /** The row that has the tab stop. */
  let stop = 0;
  /** Rows in sight, by position. @type {Map<number, HTMLElement>} */
  let rows = new Map();

  const hasBelow = (/** @type {number} */ at) =>
    Boolean(shown && shown.calls[at + 1] && shown.calls[at + 1].depth > shown.calls[at].depth);

  function drawCalls() {
    if (!shown) return;
    const { calls, measured } = shown;
    const at = inSight(calls, open);
    const had = grid.contains(document.activeElement);
    grid.style.setProperty("--deepest", String(Math.max(1, ...at.map((n) => calls[n].depth))));
    rows = new Map(
      at.map((n, i) => {
        return [n, callRow(calls[n], calls[at[i - 1]], n, hasBelow(n) ? open.has(n) : null, measured)];
      }),
    );
    if (!rows.has(stop)) stop = at[0] ?? 0;
    grid.replaceChildren(...rows.values());
    rows.get(stop)?.setAttribute("tabindex", "0");
    if (had) rows.get(stop)?.focus({ preventScroll: true });
  }
  /** Open a row or fold it. @type {(at: number, to: boolean) => void} */
  function toggle(at, to) {
    if (to) open.add(at);
    else open.delete(at);
    drawCalls();
    highlight(selected);
  }
  /** @param {number} at */
  function go(at) {
    rows.get(stop)?.setAttribute("tabindex", "-1");
    stop = at;
    const row = rows.get(at);
    row?.setAttribute("tabindex", "0");
    row?.focus({ preventScroll: true });
    reveal(grid, row);
  }

  /** @param {ViewModel} model */
  function draw(model) {
    const fresh = model !== content;
    content = model;
    shown = model.overview;
    node.hidden = !shown;
    if (!shown) return;
    const { calls, measured } = shown;
    if (fresh) open = new Set(calls.map((_, at) => at).filter((at) => hasBelow(at) && !calls[at].folded));
    const places = shown.causes.flatMap((cause) => cause.places);
    const owners = new Set([...places, ...calls].map(({ owner }) => owner));
    node.parentElement?.classList.toggle("dyn-mixed", owners.size > 1 && owners.has("own"));
    const named = { own: "your code", model: shown.library, other: "other libraries" };
    const found = new Set(places.map(({ owner }) => owner));
    const whose = Object.entries(named).flatMap(([owner, name]) => (found.has(owner) ? [name] : []));
    const where = whose.length ? ` · ${whose.length > 1 ? "" : "all "}in ${whose.join(", ")}` : "";
    causesTitle.textContent = `Causes · ${shown.causes.length}${where}`;
    causes.replaceChildren(...shown.causes.map((cause, n) => causeNode(cause, n + 1, n < OPEN, select)));
    if (!shown.causes.length) causes.replaceChildren(h("p", { cls: "dyn-eager", text: "none" }));
    key.textContent = measured ? "bar: time of a call, the longest full" : "bar: share of the captured operations";
    drawCalls();
  }

  /** @param {string} id */
  function highlight(id) {
    selected = id;
    if (!shown) return () => {};
    const { calls } = shown;
    const at = calls.findIndex((row) => row.ids.includes(id) && !(row.folded && row.ids.length > 40));
    for (let n = at, depth = calls[at]?.depth; n >= 0 && depth > 0; n--) {
      if (calls[n].depth >= depth) continue;
      depth = calls[n].depth;
      if (!open.has(n)) {
        open.add(n);
        rows.delete(at);
      }
    }
    if (at >= 0 && !rows.has(at)) drawCalls();
    const row = rows.get(at);
    markSelected(row ? [row] : []);
    if (row && stop !== at && !grid.contains(document.activeElement)) {
      rows.get(stop)?.setAttribute("tabindex", "-1");
      row.setAttribute("tabindex", "0");
      stop = at;
    }
    const chosen = shown.causes.flatMap((cause) => cause.places).filter((place) => place.ids.includes(id));
    const ids = new Set(chosen.map((place) => place.id));
    const pressed = /** @type {HTMLElement[]} */ ([...causes.querySelectorAll(".dyn-spot")]).filter((place) =>
      ids.has(place.dataset.id || ""),
    );
    markPressed(pressed);
    /** @param {number} again rows get their heights when they come into sight, one frame later */
    const show = (again) => {
      reveal(grid, row, true);
      const top = grid.getBoundingClientRect().top;
      const cut = [...grid.children].find((other) => other.getBoundingClientRect().bottom > top + 1);
      if (row && cut) grid.scrollTop += Math.min(0, cut.getBoundingClientRect().top - top); // no half row at the top
      if (again) requestAnimationFrame(() => show(again - 1));
    };
    return () => show(2);
  }

  grid.addEventListener("click", (event) => {
    const row = /** @type {HTMLElement | null} */ (closest(event, ".dyn-call"));
    if (!shown || !row) return;
    const at = Number(row.dataset.at);
    go(at);
    if (closest(event, ".dyn-twist") || !shown.calls[at].place) {
      if (hasBelow(at)) toggle(at, !open.has(at));
    } else select(shown.calls[at].id);
  });
  grid.addEventListener("keydown", (event) => {
    const row = /** @type {HTMLElement | null} */ (closest(event, ".dyn-call"));
    if (!shown || !row || event.altKey || event.ctrlKey || event.metaKey) return;
    const { calls } = shown;
    const at = Number(row.dataset.at);
    const all = [...rows.keys()];
    const place = all.indexOf(at);
    /** @type {Record<string, number | undefined>} */
    const moves = { ArrowDown: all[place + 1], ArrowUp: all[place - 1], Home: all[0], End: all[all.length - 1] };
    if (event.key in moves) go(moves[event.key] ?? at);
    else if (event.key === "ArrowRight" && hasBelow(at)) {
      if (open.has(at)) go(all[place + 1]);
      else toggle(at, true);
    } else if (event.key === "ArrowLeft") {
      if (open.has(at) && hasBelow(at)) toggle(at, false);
      else go(all.slice(0, place).findLast((n) => calls[n].depth < calls[at].depth) ?? at);
    } else if (event.key === "Enter" || event.key === " ") {
      select(calls[at].id);
      if (event.key === "Enter") enter();
    } else if (event.key !== "ArrowRight") return;
    handled(event);
  });
  return { node, draw, highlight: (_, id) => highlight(id) };
}
