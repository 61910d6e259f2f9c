// The logic of the view that needs no page: search, steps along arrows, links, pending changes, numbers and paths.

/** @import { SourceFile, SourceBody, ViewModel } from "./wire" */
/** @import { Pending, Shape } from "./view" */

/** A number with a noun: `1 graph`, `2 graphs`. @param {number} n @param {string} word */
export const plural = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;

/**
 * The ids that a query finds: `12`, `line 12` or `:12` means a line, anything else a part of a title, code, place or
 * kind.
 * @param {Pick<ViewModel, "details" | "sources">} content
 * @param {string} query
 */
export function search(content, query) {
  const words = query.trim().toLowerCase();
  if (!words) return [];
  const line = /^(?:line\s*|:|l)?(\d+)$/.exec(words);
  const onLine = line ? idsOnLine(content.sources, Number(line[1])) : new Set();
  const found = [];
  for (const [id, detail] of Object.entries(content.details)) {
    const matches = line
      ? detail.line === Number(line[1]) || onLine.has(id)
      : `${detail.title} ${detail.code} ${detail.place} ${detail.kind}`.toLowerCase().includes(words);
    if (matches) found.push(id);
  }
  return found;
}

/**
 * The ids of what is on the lines with this number, in any file.
 * @param {SourceFile[]} sources
 * @param {number} number
 */
function idsOnLine(sources, number) {
  const lines = sources.flatMap((file) => file.lines.filter((line) => line.line === number));
  return new Set(lines.flatMap((line) => [line.id, ...(line.marks || []).map((mark) => mark.id)]));
}

/**
 * The next shape from `id` in the direction of an arrow key: along an arrow where there is one, else the nearest.
 * @param {{ shapes: Shape[], arrows: { source: string, target: string }[] }} picture
 * @param {string} id
 * @param {string} key
 */
export function step(picture, id, key) {
  const all = picture.shapes;
  const here = all.find((shape) => shape.id === id);
  if (!here) return all.length ? all[0].id : "";
  const [x, y] = middle(here);
  const linked = new Set();
  for (const arrow of picture.arrows) {
    if (arrow.source === id) linked.add(arrow.target);
    if (arrow.target === id) linked.add(arrow.source);
  }
  let best = "";
  let least = Infinity;
  for (const shape of all) {
    if (shape.id === id) continue;
    const [a, b] = middle(shape);
    /** @type {Record<string, number>} */
    const distances = { ArrowDown: b - y, ArrowUp: y - b, ArrowRight: a - x, ArrowLeft: x - a };
    const ahead = distances[key];
    const aside = key === "ArrowDown" || key === "ArrowUp" ? Math.abs(a - x) : Math.abs(b - y);
    if (!(ahead > 1)) continue;
    const cost = (ahead + 2.5 * aside) * (linked.has(shape.id) ? 0.3 : 1);
    if (cost < least) [best, least] = [shape.id, cost];
  }
  return best || id;
}

/**
 * Where steps measure from: the middle of a box; of a frame, the line with its name.
 * @param {Shape} shape
 */
function middle({ kind, x, y, w, h }) {
  return [x + w / 2, ["graph", "break"].includes(kind) ? y + h / 2 : y + 12];
}

/**
 * The positions of the rows of a tree that are in sight: those whose callers are all open.
 * @param {{ depth: number }[]} rows
 * @param {Set<number>} open
 */
export function inSight(rows, open) {
  let hidden = Infinity;
  return rows.flatMap(({ depth }, at) => {
    if (depth > hidden) return [];
    hidden = open.has(at) ? Infinity : depth;
    return [at];
  });
}

/**
 * Lines of a file in the source view; lines left out are one line of three dots.
 * @param {SourceFile[]} sources
 * @param {SourceBody} range
 */
export function sourceText(sources, { file, start, end }) {
  const found = sources.find((f) => f.file === file);
  const lines = found ? found.lines.filter((l) => l.line >= start && l.line <= end) : [];
  return lines.flatMap((l, i) => (i && l.gap ? ["...", l.text] : [l.text])).join("\n");
}

/**
 * What an address's hash selects, or null.
 * @param {string} hash
 */
export function parseLink(hash) {
  const match = /^#?([a-z]+\d+)(?:\/(\w+))?$/.exec(hash || "");
  return match ? { id: match[1], part: match[2] || "" } : null;
}

/**
 * The hash that selects `id`, and a part of its detail.
 * @param {string} id
 * @param {string} part
 */
export const linkTo = (id, part) => `#${id}${part ? "/" + part : ""}`;

/**
 * Changes that wait for "Run again".
 * @returns {Pending}
 */
export function pending() {
  /** @type {Pending["settings"]} */
  const settings = {};
  /** @type {Pending["regions"]} */
  const regions = new Map();
  return {
    settings,
    regions,
    set(name, value, now) {
      if (value === now) delete settings[name];
      else settings[name] = value;
    },
    region(target, set) {
      if (regions.get(target) === set) regions.delete(target);
      else regions.set(target, set);
    },
    get count() {
      return Object.keys(settings).length + regions.size;
    },
    request(more = {}) {
      return {
        kind: "run_again",
        settings: { ...settings, ...more },
        regions: [...regions].map(([target, set]) => ({ target, set })),
      };
    },
    clear() {
      for (const name of Object.keys(settings)) delete settings[name];
      regions.clear();
    },
  };
}

/**
 * SVG path data of a polyline with rounded corners.
 * @param {number[][]} points
 * @param {number} radius
 */
export function rounded(points, radius) {
  let path = `M${points[0][0]} ${points[0][1]}`;
  for (let i = 1; i + 1 < points.length; i++) {
    const [[ax, ay], [x, y], [bx, by]] = points.slice(i - 1, i + 2);
    const before = Math.hypot(ax - x, ay - y);
    const after = Math.hypot(bx - x, by - y);
    const r = Math.min(radius, before / 2, after / 2);
    if (r < 0.5) {
      path += `L${x} ${y}`;
      continue;
    }
    const toward = (/** @type {number} */ from, /** @type {number} */ to, /** @type {number} */ length) =>
      (to + ((from - to) * r) / length).toFixed(1);
    path += `L${toward(ax, x, before)} ${toward(ay, y, before)}`;
    path += `Q${x} ${y} ${toward(bx, x, after)} ${toward(by, y, after)}`;
  }
  const [x, y] = points[points.length - 1];
  return path + `L${x} ${y}`;
}

/** The bytes of a text of one byte each; `Uint8Array.from` takes twenty times as long. @param {string} text */
function bytesOf(text) {
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

/**
 * The model that was compressed into these bytes; a host without binary messages gives them as base64.
 * @param {string | ArrayBufferView<ArrayBuffer>} data
 * @returns {Promise<ViewModel>}
 */
export function unzipped(data) {
  const bytes = typeof data === "string" ? bytesOf(atob(data)) : data;
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
}

/**
 * A time in words: "31 ms", "4.2 s", "75 s".
 * @param {number} seconds
 */
export function clock(seconds) {
  if (seconds < 0.1) return `${Math.round(seconds * 1000)} ms`;
  return seconds < 10 ? `${seconds.toFixed(1)} s` : `${Math.round(seconds)} s`;
}
