// What the view decides, without a page: search, steps along arrows, links, pending changes.

// Ids of what a query finds: digits mean a line, anything else a part of a name, place or code.
export function search(content, query) {
  const words = query.trim().toLowerCase();
  if (!words) return [];
  const line = /^(?:line\s*|:|l)?(\d+)$/.exec(words);
  const found = [];
  for (const [id, detail] of Object.entries(content.details)) {
    if (detail.kind === "fold") continue;
    if (line) {
      const number = Number(line[1]);
      const atLine = content.lens.some((f) =>
        f.lines.some((l) => l.line === number && (l.id === id || (l.marks || []).some((m) => m.id === id))),
      );
      if (detail.line === number || atLine) found.push(id);
    } else if (`${detail.title} ${detail.code} ${detail.place} ${detail.kind}`.toLowerCase().includes(words))
      found.push(id);
  }
  return found;
}

// The next thing from `id` in the direction of an arrow key: along an arrow where there is one, else the nearest.
export function step(picture, id, key) {
  const all = [...picture.groups, ...picture.boxes];
  const here = all.find((shape) => shape.id === id);
  if (!here) return all.length ? all[0].id : "";
  const middle = (shape) => [
    shape.x + shape.w / 2,
    shape.kind === "graph" || shape.kind === "break" || shape.kind === "fold" ? shape.y + shape.h / 2 : shape.y + 12,
  ];
  const [x, y] = middle(here);
  const linked = new Set();
  for (const arrow of picture.arrows) {
    if (arrow.source === id) linked.add(arrow.target);
    if (arrow.target === id) linked.add(arrow.source);
  }
  let best = "",
    least = Infinity;
  for (const shape of all) {
    if (shape.id === id) continue;
    const [a, b] = middle(shape);
    const ahead = { ArrowDown: b - y, ArrowUp: y - b, ArrowRight: a - x, ArrowLeft: x - a }[key];
    const aside = key === "ArrowDown" || key === "ArrowUp" ? Math.abs(a - x) : Math.abs(b - y);
    if (!(ahead > 1)) continue;
    const cost = (ahead + 2.5 * aside) * (linked.has(shape.id) ? 0.3 : 1);
    if (cost < least) [best, least] = [shape.id, cost];
  }
  return best || id;
}

// The lines from `start` to `end` of a file in the lens; a gap is one line of three dots.
export function sourceText(lens, { file, start, end }) {
  const found = lens.find((f) => f.file === file);
  const lines = found ? found.lines.filter((l) => l.line >= start && l.line <= end) : [];
  return lines.flatMap((l, i) => (i && l.gap ? ["...", l.text] : [l.text])).join("\n");
}

export const parseLink = (hash) => {
  const match = /^#?([a-z]+\d+)(?:\/(\w+))?$/.exec(hash || "");
  return match ? { id: match[1], part: match[2] || "" } : null;
};

export const linkTo = (id, part) => `#${id}${part ? "/" + part : ""}`;

// Changes that wait for "Run again".
export function pending() {
  const settings = {},
    regions = new Map();
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
    request() {
      return {
        kind: "run_again",
        settings: { ...settings },
        regions: [...regions].map(([target, set]) => ({ target, set })),
      };
    },
    clear() {
      for (const name of Object.keys(settings)) delete settings[name];
      regions.clear();
    },
  };
}

// SVG path data of a polyline with rounded corners.
export function rounded(points, radius = 7) {
  let path = `M${points[0][0]} ${points[0][1]}`;
  for (let i = 1; i + 1 < points.length; i++) {
    const [[ax, ay], [x, y], [bx, by]] = points.slice(i - 1, i + 2);
    const before = Math.hypot(ax - x, ay - y),
      after = Math.hypot(bx - x, by - y),
      r = Math.min(radius, before / 2, after / 2);
    if (r < 0.5) path += `L${x} ${y}`;
    else {
      const part = (from, to, length) => (to + ((from - to) * r) / length).toFixed(1);
      path += `L${part(ax, x, before)} ${part(ay, y, before)}Q${x} ${y} ${part(bx, x, after)} ${part(by, y, after)}`;
    }
  }
  const [x, y] = points[points.length - 1];
  return path + `L${x} ${y}`;
}

// The model that was compressed into these bytes; where a host has no binary messages, they come as base64.
export const unzipped = (data) => {
  const bytes = typeof data === "string" ? Uint8Array.from(atob(data), (c) => c.charCodeAt(0)) : data;
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
};

export const clock = (seconds) =>
  seconds < 0.1
    ? `${Math.round(seconds * 1000)} ms`
    : seconds < 10
      ? `${seconds.toFixed(1)} s`
      : `${Math.round(seconds)} s`;
