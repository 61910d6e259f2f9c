// The detail of what is selected: facts, and parts as tabs, each with a link of its own.

import { button, copyText, h, roving, withCode } from "./dom.js";
import { fxView } from "./fx.js";
import { paintCode } from "./source_view.js";
import { linkTo, plural, sourceText } from "./logic.js";

/** @import { Context } from "./view" */
/** @import { AnyPart, CodeBody, Detail, FixBody, FixRow, ProseBody, RunBody, StackRow, ViewModel } from "./wire" */

// Characters: longer code is shown without colours.
const MOST_PAINTED = 40_000;
/** @type {Record<string, string>} */
const MARKS = {
  break: "✂",
  graph: "▦",
  skipped: "–",
  failed: "✗",
  empty: "∅",
  resume: "↳",
  autograd: "↶",
};
const SWITCHABLE = ["break", "function", "skipped", "failed", "unfinished", "statements"];

/** @param {ProseBody} body */
function proseBody({ text, todo, code }) {
  return h(
    "div",
    { cls: "dyn-prose" },
    text.map((t) => h("p", {}, ...withCode(t))),
    todo.length > 0 && h("h3", { text: "What to do" }),
    todo.length > 0 && h("ul", {}, ...todo.map((t) => h("li", {}, ...withCode(t)))),
    code.map((t) => h("pre", { cls: "dyn-code dyn-wrap", text: t })),
  );
}

const VERDICTS = { verified: "✓", conditional: "?", refused: "✗", untried: "–" };

/** @param {FixRow} row */
function fixRow({ words, verdict, gain, assumption, condition, diff }) {
  const lines = diff.map((line) =>
    h("span", { cls: line[0] === "+" ? "dyn-added" : line[0] === "-" ? "dyn-removed" : "", text: `${line}\n` }),
  );
  return h(
    "div",
    { cls: `dyn-change dyn-change-${verdict}` },
    h("p", {}, h("b", { "aria-hidden": "true", text: `${VERDICTS[verdict]} ` }), ...withCode(words)),
    lines.length > 0 && h("pre", { cls: "dyn-code dyn-diff", tabindex: "0" }, ...lines),
    gain && h("p", { cls: "dyn-gain", text: gain }),
    condition && h("p", {}, h("b", { text: "Condition: " }), ...withCode(condition)),
    assumption && h("p", {}, "Assumes: ", ...withCode(assumption)),
  );
}

/**
 * The changes for a break or recompile, and the button that tries all changes, unless all were tried.
 * @param {FixBody} body
 * @param {Context} ctx
 */
function fixBody({ chosen, others, copies }, ctx) {
  const tried = others.map(fixRow);
  const summary = h("summary", { text: `${plural(others.length, "other change")} considered` });
  return h(
    "div",
    { cls: "dyn-prose" },
    !chosen.length &&
      !others.length &&
      h("p", {
        text: "No changes have been tried. The button runs the cell again, and tries them on copies of its calls.",
      }),
    h(
      "div",
      { cls: "dyn-row" },
      ...Object.entries(copies).map(([label, text]) => copyButton(text, label)),
      ctx.fixButton(),
    ),
    chosen.map(fixRow),
    tried.length > 0 && h("details", { open: !chosen.length }, summary, ...tried),
  );
}

/** @param {CodeBody} body */
function codeBody({ text, lang, start }) {
  const pre = h("pre", { cls: lang === "prose" ? "dyn-code dyn-wrap" : "dyn-code", tabindex: "0" });
  if (lang !== "python" || text.length > MOST_PAINTED) {
    pre.textContent = text;
    return pre;
  }
  let open = "";
  const lines = text.split("\n");
  lines.forEach((line, i) => {
    const box = h("span", start ? { "data-n": start + i, cls: "dyn-cl" } : {});
    open = paintCode(box, line, [], open);
    pre.append(box, i + 1 < lines.length ? "\n" : "");
  });
  return pre;
}

/**
 * @param {StackRow[]} stack
 * @param {Context} ctx
 */
function stackBody(stack, ctx) {
  const entries = stack.map(({ place, file, line, function: name, source }) => {
    const link = button("dyn-link", place, () => ctx.point(file, line));
    return h("li", {}, link, ` in ${name}`, source ? h("code", { text: source }) : null);
  });
  return h("ol", { cls: "dyn-stack" }, ...entries);
}

/**
 * A table; a row with an id is a link to it.
 * @param {string[][]} rows
 * @param {Context} ctx
 */
function listBody(rows, ctx) {
  const cell = (/** @type {string} */ text, cls = "", /** @type {HTMLElement | null} */ link = null) =>
    h("td", { cls: `${cls}${text.length > 24 ? "" : " dyn-short"}` }, link || text);
  const lines = rows.map(([name, value, words, id]) =>
    h(
      "tr",
      {},
      cell(name, "dyn-monot", id && ctx.has(id) ? selectLink(name, id, ctx) : null),
      cell(value, "dyn-monot"),
      cell(words, words.startsWith("Unsafe") ? "dyn-unsafe" : ""),
    ),
  );
  return h("table", { cls: "dyn-table" }, h("tbody", {}, ...lines));
}

/** A text with a button that copies it. @param {CodeBody} body */
function copyBody(body) {
  return h("div", {}, h("div", { cls: "dyn-row" }, copyButton(body.text, "Copy")), codeBody(body));
}

/**
 * A graph run on its own: a button where the kernel can run it, and the figures of the last run.
 * @param {RunBody} body
 * @param {Context} ctx
 */
function runBody({ graph, text, ran, code }, ctx) {
  const label = ran ? "Run it again" : "Run this graph";
  const run = button("dyn-btn dyn-primary", label, () => ctx.request({ kind: "run_graph", graph }));
  return h(
    "div",
    { cls: "dyn-prose dyn-run" },
    text.map((t) => h("p", { text: t })),
    h(
      "div",
      { cls: "dyn-row" },
      ctx.canRun() && code && run,
      code && h("code", { text: code }),
      code && copyButton(code, "Copy"),
    ),
  );
}

/**
 * @param {AnyPart} part
 * @param {Context} ctx
 * @param {Detail} detail
 * @param {Set<string>} open the folds of its FX graph that are open
 */
function partBody(part, ctx, { title, code }, open) {
  const content = /** @type {ViewModel} */ (ctx.content);
  switch (part.kind) {
    case "prose":
      return proseBody(part.body);
    case "code":
      return copyBody(part.body);
    case "source": {
      const text = sourceText(content.sources, part.body);
      return codeBody({ text, lang: "python", start: part.body.start });
    }
    case "stack":
      return stackBody(part.body, ctx);
    case "graph":
      return fxView(part.body, ctx.point, `${title} ${code}`, open);
    case "run":
      return runBody(part.body, ctx);
    case "fix":
      return fixBody(part.body, ctx);
    default:
      return listBody(part.body, ctx);
  }
}

/**
 * A button that copies a text, and says whether that worked.
 * @param {string} text
 * @param {string} label
 */
export function copyButton(text, label) {
  const copy = async () => {
    node.textContent = (await copyText(text)) ? "copied" : "could not copy";
    setTimeout(() => {
      node.textContent = label;
    }, 1500);
  };
  const node = button("dyn-btn", label, copy);
  return node;
}

/**
 * @param {string} text
 * @param {string} id
 * @param {Context} ctx
 */
function selectLink(text, id, ctx) {
  return button("dyn-link", text, () => ctx.select(id));
}

/**
 * Facts by name; a name that repeats the one above is left out, a name that begins with a space belongs to the fact
 * above.
 * @param {string[][]} facts
 * @param {Context} ctx
 */
function factList(facts, ctx) {
  const entries = facts.map(([label, value, id], i) => {
    const repeated = i > 0 && facts[i - 1][0] === label;
    const cls = label.startsWith(" ") ? "dyn-sub" : null;
    return [
      h("dt", { text: repeated ? "" : label.trim(), cls }),
      h("dd", {}, id && ctx.has(id) ? selectLink(value, id, ctx) : value),
    ];
  });
  return h("dl", { cls: "dyn-facts" }, ...entries);
}

/**
 * The parts of a detail; a break or recompile for which no fixes were tried gets a part with the button that tries them.
 * @param {Detail} detail
 * @param {Context} ctx
 * @returns {AnyPart[]}
 */
function partsOf({ kind, parts }, ctx) {
  const [first, ...others] = parts;
  const has = (/** @type {string} */ key) => parts.some((part) => part.key === key);
  if (has("fix") || !(kind === "break" || has("recompile")) || !ctx.fixButton()) return parts;
  return [first, { key: "fix", name: "Fix", kind: "fix", body: { chosen: [], others: [], copies: {} } }, ...others];
}

/**
 * The detail; `show` draws it, `choose` sets which part is shown for details of a kind.
 * @param {Context} ctx
 */
export function detailView(ctx) {
  const node = h("section", { cls: "dyn-detail", "aria-label": "detail", tabindex: "-1" });
  /** By kind of detail: the part that is shown. @type {Map<string, string>} */
  const chosen = new Map();
  /** By id: the folds of its FX graph that are open. @type {Map<string, Set<string>>} */
  const opened = new Map();

  /** @type {(detail: Detail, id: string, open: Set<string>) => HTMLElement[]} */
  function tabs(detail, id, open) {
    const parts = partsOf(detail, ctx);
    if (!parts.length) return [];
    const list = h("div", { cls: "dyn-tabs", role: "tablist", "aria-label": "parts" });
    const panel = h("div", { cls: "dyn-panel", role: "tabpanel" });
    const mark = roving(list, ".dyn-tab", { arrows: "horizontal", enter: (tab) => tab.click() });
    /** @type {Map<string, HTMLElement>} */
    const byKey = new Map();
    const show = (/** @type {AnyPart} */ part) => {
      for (const [key, tab] of byKey) {
        tab.setAttribute("aria-selected", String(key === part.key));
        if (key === part.key) mark(tab);
      }
      panel.setAttribute("aria-label", part.name);
      panel.replaceChildren(partBody(part, ctx, detail, open));
    };
    for (const part of parts) {
      const { key, name } = part;
      const onclick = (/** @type {MouseEvent} */ event) => {
        event.preventDefault();
        chosen.set(detail.kind, key);
        ctx.link(id, key);
        show(part);
        tab.focus();
      };
      const href = linkTo(id, key);
      const tab = h("a", { cls: "dyn-tab", role: "tab", tabindex: "-1", "data-key": key, href, text: name, onclick });
      byKey.set(key, tab);
      list.append(tab);
    }
    const wanted = chosen.get(detail.kind);
    show(parts.find((part) => part.key === wanted) || parts[0]);
    return [list, panel];
  }

  /** The buttons that allow graph breaks here, or make them errors, at the next run. @param {Detail} detail */
  function switches({ kind, target }) {
    if (!ctx.canRun() || !target || !SWITCHABLE.includes(kind)) return null;
    const where = kind === "break" ? "here" : "in this function";
    const box = h("div", { cls: "dyn-switches", role: "group", "aria-label": `error_on_graph_break ${where}` });
    for (const [set, word, effect] of [
      ["allow", "Allow", "allow graph breaks"],
      ["error", "Error", "fail at a graph break"],
    ]) {
      const choose = () => {
        ctx.pending.region(target, set);
        ctx.changed();
        const again = /** @type {HTMLElement} */ (node.querySelector(`.dyn-switches [data-set=${set}]`));
        again.focus();
      };
      const props = {
        "aria-pressed": String(ctx.pending.regions.get(target) === set),
        "data-set": set,
        title: `${effect} ${where}, in the next run`,
      };
      box.append(button("dyn-btn", `${word} ${where}`, choose, props));
    }
    return box;
  }

  /** What is shown if nothing is selected. @param {ViewModel} content */
  function hint(content) {
    if (Object.keys(content.details).length) return "Select a line of the source or a part of the split graph.";
    return ctx.host.get("busy") ? "Nothing has been compiled yet." : "Nothing was compiled.";
  }

  /** @param {Detail} detail */
  function heading(detail) {
    const { kind, title, code, place, copy, links = [] } = detail;
    const name = h("span", { cls: "dyn-dkind", text: `${MARKS[kind] || "▢"} ${title}` });
    const target = { target: "_blank", rel: "noopener noreferrer" };
    return h(
      "div",
      { cls: `dyn-dhead dyn-d-${kind}` },
      h("h2", { cls: "dyn-dtitle" }, name, code ? [" ", h("code", { text: code })] : null),
      h(
        "div",
        { cls: "dyn-where" },
        h("span", { text: place }),
        copy ? copyButton(copy, "Copy place") : null,
        switches(detail),
        ...links.map(([text, href]) => h("a", { cls: "dyn-out", href, ...target, text: `${text} ↗` })),
      ),
    );
  }

  /** @type {(content: ViewModel, id: string) => void} */
  function show(content, id) {
    const detail = content.details[id];
    node.hidden = false;
    if (!detail) {
      node.replaceChildren(h("p", { cls: "dyn-hint", text: hint(content) }));
      return;
    }
    const open = opened.get(id) || new Set();
    opened.set(id, open);
    const main = h("div", { cls: "dyn-dmain" }, ...tabs(detail, id, open));
    node.replaceChildren(heading(detail), h("div", { cls: "dyn-dbody" }, main, factList(detail.facts, ctx)));
  }

  return { node, show, choose: (/** @type {string} */ kind, /** @type {string} */ part) => chosen.set(kind, part) };
}
