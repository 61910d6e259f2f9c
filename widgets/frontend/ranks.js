// The view of a job's ranks: a strip of groups, what differs, a matrix of compiles, and two groups side by side.

import { button, closest, h } from "./dom.js";
import { plural } from "./logic.js";
import { differenceOf, duration, findRank, matrixRows, median, runs, sideBySide, slowness } from "./ranks_logic.js";
import { followTheme } from "./theme.js";

/** @import { DifferenceModel, MountReport, RankModel, RanksModel, StepModel } from "./rank_wire" */

const TONES = 6;
const ROW = 16;
const STATUS = { finished: "", failed: "failed", "no end": "no end", missing: "missing" };

/** The color of a group. @param {number} group */
const tone = (group) => (group < 0 ? "var(--dyn-skip)" : `var(--dyn-g${group % TONES})`);

/**
 * Build the view in an element; returns a function that removes it.
 * @param {HTMLElement} root
 * @param {RanksModel} model
 * @param {MountReport} mountReport
 */
export function mountRanks(root, model, mountReport) {
  const first = model.differences.find((d) => d.group >= 0);
  const state = {
    rank: -1,
    one: first ? first.group : 0,
    other: first ? first.reference : 0,
    side: first?.side ?? 0,
    step: first?.step ?? -1,
  };
  let stopReport = () => {};

  const strip = stripView(model, (at) => choose(at));
  const found = h("span", { cls: "dyn-rk-found", role: "status" });
  const matrix = matrixView(model, (at, step) => choose(at, step));
  const compare = h("section", { cls: "dyn-rk-compare", "aria-label": "two groups side by side" });
  const report = h("div", { cls: "dyn-rk-report" });
  const search = h("input", {
    cls: "dyn-rk-search",
    type: "search",
    placeholder: "Find a rank",
    "aria-label": "Find a rank by number, host or status",
  });
  search.addEventListener("input", () => choose(findRank(model.ranks, search.value)));
  const badge = h("span", {
    cls: `dyn-rk-badge ${model.alike ? "dyn-rk-good" : "dyn-rk-bad"}`,
    text: model.alike ? "alike" : "not alike",
  });
  const many = model.ranks.length > 1;
  const view = h(
    "div",
    { cls: "dyn dyn-ranks", role: "region", "aria-label": `dynascope view: ${model.headline.slice(0, 300)}` },
    h("div", { cls: "dyn-rk-top" }, h("h2", { cls: "dyn-rk-title", text: model.headline }), many && badge),
    many && h("div", { cls: "dyn-rk-bar" }, strip.node, search),
    many && found,
    differencesView(model, (d) => show({ one: d.group, other: d.reference, step: d.step, side: d.side })),
    listView("dyn-rk-unwell", [...model.unwell]),
    listView("dyn-rk-slow", model.slow),
    model.groups.length > 0 && matrix.node,
    model.groups.length > 0 && compare,
    report,
    listView("dyn-rk-notes", model.notes),
  );
  root.replaceChildren(view);
  const stopTheme = followTheme(view);
  const redraw = () => matrix.draw(state.rank, state.side ? state.other : state.one, state.step);
  const observer = typeof ResizeObserver === "undefined" ? null : new ResizeObserver(redraw);
  observer?.observe(matrix.node);

  /**
   * Choose a rank by its position, and perhaps a step.
   * @param {number} at
   * @param {number} [step]
   */
  function choose(at, step = -1) {
    const rank = model.ranks[at];
    state.rank = at;
    strip.mark(at);
    found.textContent = rank
      ? `${rank.words}${stepWords(rank.group, step, rank.times[step])}`
      : search.value
        ? "no such rank"
        : "";
    if (rank && rank.group >= 0 && rank.group < model.groups.length) {
      const other = rank.group === 0 ? (state.one === 0 ? state.other : state.one) : 0;
      show({ one: rank.group, other, step, side: 0 });
    } else redraw();
  }

  /**
   * @param {number} group
   * @param {number} step
   * @param {number} [time]
   */
  function stepWords(group, step, time = -1) {
    const made = model.groups[group]?.steps[step];
    return made ? `; compile ${step + 1}: ${made.name} at ${made.place}, ${made.status}, ${duration(time)}` : "";
  }

  /** @param {Partial<typeof state>} change */
  function show(change) {
    Object.assign(state, change);
    drawCompare();
    drawReport();
    redraw();
  }

  function drawCompare() {
    const [one, other] = [model.groups[state.one], model.groups[state.other]];
    if (!one) return;
    const choice = (/** @type {"one" | "other"} */ side) => {
      const options = model.groups.map((group, n) =>
        h("option", { value: n, text: `${group.title} (${group.count})`, selected: n === state[side] }),
      );
      const select = h("select", { "aria-label": side === "one" ? "group" : "compared with" }, options);
      select.addEventListener("change", () => show({ [side]: Number(select.value), step: -1 }));
      return select;
    };
    const alone = model.groups.length < 2 || !other || state.one === state.other;
    const { rows, first } = sideBySide(one, alone ? one : other);
    const difference = alone ? null : differenceOf(model, state.one, state.other);
    const at = difference ? rows.findIndex((row) => row.at.includes(difference.step)) : first;
    // in a long job, only the compiles around the first difference are shown
    const from = at > 12 ? at - 6 : 0;
    const shown = rows.slice(from, from + 40);
    const line = (/** @type {StepModel | null} */ step, /** @type {number} */ side, /** @type {number} */ number) =>
      step
        ? button("dyn-rk-step", "", () => show({ side, step: number }), { title: `${step.name} at ${step.place}` })
        : h("span", { cls: "dyn-rk-none", text: "not compiled here" });
    const table = h(
      "div",
      { cls: `dyn-rk-steps${alone ? " dyn-rk-one" : ""}` },
      from > 0 && h("p", { cls: "dyn-rk-more", text: `${from} compiles before are alike` }),
      shown.map((row, n) => {
        const cells = row.pair.slice(0, alone ? 1 : 2).map((step, side) => {
          const node = line(step, side, row.at[side]);
          if (step) node.append(...stepParts(step));
          return node;
        });
        const cls = `dyn-rk-row${row.differs ? " dyn-rk-differs" : ""}${from + n === at && !alone ? " dyn-rk-first" : ""}`;
        const chosen = state.step >= 0 && row.at[alone ? 0 : state.side] === state.step ? " dyn-rk-chosen" : "";
        return h(
          "div",
          { cls: cls + chosen },
          h("span", { cls: "dyn-rk-number", text: row.at[0] < 0 ? "" : String(row.at[0] + 1) }),
          cells,
        );
      }),
      rows.length > from + shown.length &&
        h("p", { cls: "dyn-rk-more", text: plural(rows.length - from - shown.length, "more compile") }),
    );
    compare.replaceChildren(
      h(
        "div",
        { cls: "dyn-rk-pair" },
        h("h3", { text: alone ? "Compiles of" : "Compare" }),
        choice("one"),
        model.groups.length > 1 && h("span", { text: "with" }),
        model.groups.length > 1 && choice("other"),
      ),
      table,
    );
  }

  function drawReport() {
    stopReport();
    stopReport = () => {};
    const sides = state.one === state.other ? [state.one] : [state.one, state.other];
    const group = model.groups[sides[state.side] ?? sides[0]];
    const tabs = sides.map((n, side) =>
      button("dyn-rk-tab", `${model.groups[n].title}: ${model.groups[n].counts}`, () => show({ side }), {
        "aria-pressed": side === state.side ? "true" : "false",
        style: `--dyn-rk-tone:${tone(n)}`,
      }),
    );
    const body = h("div", {});
    report.replaceChildren(h("div", { cls: "dyn-rk-tabs" }, tabs), body);
    if (!group?.view) {
      body.append(h("p", { cls: "dyn-rk-more", text: "The graphs of this group are not in this view." }));
      return;
    }
    const frame = group.steps[state.step]?.frame || "";
    stopReport = mountReport(body, group.view, frame);
  }

  drawCompare();
  drawReport();
  redraw();
  return () => {
    stopTheme();
    stopReport();
    observer?.disconnect();
  };
}

/** @param {StepModel} step */
function stepParts(step) {
  return [
    h("span", { cls: `dyn-rk-dot dyn-rk-${step.status}`, "aria-hidden": "true" }),
    h("span", { cls: "dyn-rk-name", text: step.name }),
    h("span", { cls: "dyn-rk-place", text: step.place }),
    ...(step.status === "compiled" ? [] : [h("span", { cls: "dyn-rk-note", text: step.status })]),
    ...step.notes.map((note) => h("span", { cls: "dyn-rk-note", text: note })),
  ];
}

/**
 * The ranks in a row, those of one group in its color.
 * @param {RanksModel} model
 * @param {(at: number) => void} choose
 */
function stripView(model, choose) {
  const parts = runs(model.ranks).map((run) => {
    const [a, b] = [model.ranks[run.first].rank, model.ranks[run.last].rank];
    const name = a === b ? String(a) : `${a}-${b}`;
    const status = STATUS[/** @type {keyof typeof STATUS} */ (run.status)] || "";
    const words = `rank${a === b ? "" : "s"} ${name}${status ? `: ${status}` : ""}`;
    return h("button", {
      type: "button",
      cls: `dyn-rk-run${status ? " dyn-rk-ill" : ""}`,
      style: `flex-grow:${run.last - run.first + 1};--dyn-rk-tone:${tone(run.group)}`,
      "data-first": run.first,
      "data-last": run.last,
      "aria-label": words,
      title: words,
      text: run.last - run.first > model.ranks.length / 14 || model.ranks.length < 14 ? name : "",
    });
  });
  const node = h("div", { cls: "dyn-rk-strip", role: "group", "aria-label": "ranks" }, parts);
  node.addEventListener("click", (event) => {
    const run = closest(event, ".dyn-rk-run");
    if (run) choose(Number(run.dataset.first));
  });
  return {
    node,
    mark(/** @type {number} */ at) {
      for (const part of parts) {
        const inside = Number(part.dataset.first) <= at && at <= Number(part.dataset.last);
        part.classList.toggle("dyn-rk-chosen", inside);
      }
    },
  };
}

/**
 * The differences, in the order of the model.
 * @param {RanksModel} model
 * @param {(d: DifferenceModel) => void} show
 */
function differencesView(model, show) {
  const cards = model.differences.map((d) => {
    const card = h(
      d.group >= 0 ? "button" : "div",
      { cls: "dyn-rk-card", ...(d.group >= 0 ? { type: "button" } : {}), style: `--dyn-rk-tone:${tone(d.group)}` },
      h("span", { cls: "dyn-rk-what", text: d.title }),
      d.details.map((text) => h("span", { cls: "dyn-rk-why", text })),
    );
    if (d.group >= 0) card.addEventListener("click", () => show(d));
    return card;
  });
  const more = model.more > 0 && h("p", { cls: "dyn-rk-more", text: `… and ${plural(model.more, "more difference")}` });
  return cards.length > 0 && h("section", { cls: "dyn-rk-cards", "aria-label": "differences" }, cards, more);
}

/**
 * @param {string} cls
 * @param {string[]} lines
 */
const listView = (cls, lines) =>
  lines.length > 0 &&
  h(
    "ul",
    { cls: `dyn-rk-list ${cls}` },
    lines.map((text) => h("li", { text })),
  );

/**
 * Compiles (rows) by rank (columns): a stronger color means slower than on the other ranks; compiles that differ from
 * those of the first group are in full color.
 * @param {RanksModel} model
 * @param {(at: number, step: number) => void} choose
 */
function matrixView(model, choose) {
  const rows = matrixRows(model.groups);
  const shown = rows.names.length;
  /** Time of a rank in a row; undefined: it has none there. @param {RankModel} rank @param {number} row */
  const timeOf = (rank, row) => rank.times[stepAt(rank, row)];
  /** @param {RankModel | undefined} rank @param {number} row */
  const stepAt = (rank, row) => (rank && rows.at[rank.group]?.[row]) ?? -1;
  const usual = Array.from({ length: shown }, (_, n) => median(model.ranks.map((rank) => timeOf(rank, n) ?? -1)));
  const canvas = h("canvas", { cls: "dyn-rk-canvas" });
  const names = h(
    "div",
    { cls: "dyn-rk-names", "aria-hidden": "true" },
    rows.names.map((name) => h("span", { text: name })),
  );
  const words = h("p", {
    cls: "dyn-rk-hover",
    text:
      "Compiles by rank: a stronger color means slower than on the other ranks" +
      (model.groups.length > 1 ? "; in full color, what differs from the first group." : "."),
  });
  const scroll = h("div", { cls: "dyn-rk-scroll" }, names, canvas);
  const node = h("section", { cls: "dyn-rk-matrix", "aria-label": "compiles by rank" }, scroll, words);
  node.hidden = !model.ranks.some((rank) => rank.times.length) || model.ranks.length < 2;

  /** @param {MouseEvent} event */
  function at(event) {
    const box = canvas.getBoundingClientRect();
    const column = Math.floor(((event.clientX - box.left) / box.width) * model.ranks.length);
    const rank = model.ranks[Math.min(column, model.ranks.length - 1)];
    return { column: model.ranks.indexOf(rank), step: stepAt(rank, Math.floor((event.clientY - box.top) / ROW)) };
  }
  canvas.addEventListener("mousemove", (event) => {
    const { column, step } = at(event);
    const rank = model.ranks[column];
    const made = model.groups[rank?.group]?.steps[step];
    if (rank && made)
      words.textContent = `rank ${rank.rank}: ${made.name} at ${made.place}, ${made.status}, ${duration(rank.times[step] ?? -1)}`;
  });
  canvas.addEventListener("click", (event) => {
    const { column, step } = at(event);
    choose(column, step);
  });

  return {
    node,
    /**
     * @param {number} chosen
     * @param {number} group
     * @param {number} step
     */
    draw(chosen, group, step) {
      const chosenRow = step < 0 ? -1 : (rows.at[group]?.indexOf(step) ?? -1);
      const pen = canvas.getContext("2d");
      if (!pen || node.hidden) return;
      const width = Math.max(120, scroll.clientWidth - names.offsetWidth);
      const ratio = globalThis.devicePixelRatio || 1;
      canvas.width = width * ratio;
      canvas.height = shown * ROW * ratio;
      canvas.style.width = `${width}px`;
      canvas.style.height = `${shown * ROW}px`;
      pen.scale(ratio, ratio);
      const style = getComputedStyle(node);
      const color = (/** @type {string} */ name) => style.getPropertyValue(`--dyn-${name}`).trim();
      const tones = Array.from({ length: TONES }, (_, n) => color(`g${n}`));
      const column = width / model.ranks.length;
      const gap = column > 6 ? 1 : 0;
      const broken = { skipped: color("skip"), failed: color("error"), unfinished: color("error") };
      const order = [...model.ranks.keys()].sort(
        (a, b) => Number(model.ranks[a].group > 0) - Number(model.ranks[b].group > 0),
      );
      for (const x of order) {
        const rank = model.ranks[x];
        rows.names.forEach((_, y) => {
          const time = timeOf(rank, y);
          if (time === undefined) return;
          const step = model.groups[rank.group]?.steps[stepAt(rank, y)];
          const differs = rank.group > 0 && step?.same !== model.groups[0].steps[rows.at[0][y]]?.same;
          const tint = broken[/** @type {keyof typeof broken} */ (step?.status || "")];
          pen.fillStyle = tint || tones[Math.max(0, rank.group) % TONES];
          pen.globalAlpha = differs ? 0.9 : 0.22 + 0.78 * slowness(time, usual[y]);
          pen.fillRect(x * column, y * ROW + 1, Math.max(column - gap, differs ? 3 : 0.6), ROW - 2);
        });
      }
      pen.globalAlpha = 1;
      pen.strokeStyle = color("accent");
      pen.lineWidth = 2;
      if (chosen >= 0) pen.strokeRect(chosen * column, 1, Math.max(column, 2), shown * ROW - 2);
      if (chosenRow >= 0) pen.strokeRect(1, chosenRow * ROW, width - 2, ROW);
    },
  };
}
