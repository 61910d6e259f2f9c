import assert from "node:assert/strict";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { module } from "./load.mjs";

const { clock, linkTo, parseLink, pending, plural, rounded, search, sourceText, step, unzipped } =
  await module("logic");

const content = {
  details: {
    b0: {
      title: "Graph break",
      code: "log(h)",
      place: "In[3]:4",
      kind: "break",
      line: 4,
      facts: [["goes on in", "resume in f", "f1"]],
    },
    g0: { title: "Graph 0", code: "of f", place: "In[3]:2", kind: "graph", line: 2, facts: [] },
    f1: { title: "Resume function", code: "resume in f", place: "In[3]:5", kind: "resume", line: 5, facts: [] },
  },
  sources: [
    {
      lines: [
        { line: 3, id: "g0" },
        { line: 4, marks: [{ id: "b0" }] },
      ],
    },
  ],
};

test("search by name, place or line", () => {
  assert.deepEqual(search(content, "LOG"), ["b0"]);
  assert.deepEqual(search(content, "line 4"), ["b0"]);
  assert.deepEqual(search(content, ":3"), ["g0"]);
  assert.deepEqual(search(content, "resume"), ["f1"]);
  assert.deepEqual(search(content, "  "), []);
  assert.deepEqual(search(content, "nothing like it"), []);
});

const picture = {
  shapes: [
    { id: "f0", kind: "compiled", x: 0, y: 0, w: 200, h: 140 },
    { id: "f1", kind: "compiled", x: 0, y: 200, w: 200, h: 100 },
    { id: "f2", kind: "skipped", x: 260, y: 200, w: 200, h: 100 },
    { id: "g0", kind: "graph", x: 10, y: 40, w: 180, h: 34 },
    { id: "b0", kind: "break", x: 10, y: 90, w: 180, h: 34 },
  ],
  arrows: [
    { source: "b0", target: "f1" },
    { source: "f1", target: "f2" },
  ],
};

test("arrow keys walk down the column and along calls, and stay at the ends", () => {
  assert.equal(step(picture, "f0", "ArrowDown"), "g0");
  assert.equal(step(picture, "g0", "ArrowDown"), "b0");
  assert.equal(step(picture, "b0", "ArrowDown"), "f1");
  assert.equal(step(picture, "f1", "ArrowRight"), "f2");
  assert.equal(step(picture, "f2", "ArrowLeft"), "f1");
  assert.equal(step(picture, "f2", "ArrowRight"), "f2");
  assert.equal(step(picture, "gone", "ArrowDown"), "f0");
  assert.equal(step({ shapes: [], arrows: [] }, "gone", "ArrowDown"), "");
});

test("source lines come from the source view", () => {
  const sources = [
    {
      file: "a",
      lines: [
        { line: 3, text: "x" },
        { line: 4, text: "y" },
        { line: 9, gap: 4, text: "z" },
      ],
    },
  ];
  assert.equal(sourceText(sources, { file: "a", start: 4, end: 9 }), "y\n...\nz");
  assert.equal(sourceText(sources, { file: "b", start: 4, end: 9 }), "");
});

test("links", () => {
  assert.deepEqual(parseLink(linkTo("b0", "stack")), { id: "b0", part: "stack" });
  assert.deepEqual(parseLink("#f12"), { id: "f12", part: "" });
  assert.equal(parseLink("#<img>"), null);
  assert.equal(parseLink(""), null);
});

test("changes wait, can be taken back, and make one request", () => {
  const changes = pending();
  changes.set("fullgraph", true, false);
  changes.region("4", "allow");
  changes.region("block", "error");
  assert.equal(changes.count, 3);
  assert.deepEqual(changes.request(), {
    kind: "run_again",
    settings: { fullgraph: true },
    regions: [
      { target: "4", set: "allow" },
      { target: "block", set: "error" },
    ],
  });
  changes.set("fullgraph", false, false);
  changes.region("4", "allow");
  assert.equal(changes.count, 1);
  changes.clear();
  assert.equal(changes.count, 0);
});

test("polylines get round corners", () => {
  const [start, corner, end] = [
    [0, 0],
    [0, 50],
    [50, 50],
  ];
  assert.equal(rounded([start, corner, end], 7), "M0 0L0.0 43.0Q0 50 7.0 50.0L50 50");
  assert.equal(rounded([start, corner], 7), "M0 0L0 50");
});

test("seconds", () => assert.deepEqual([0.031, 4.21, 75.4].map(clock), ["31 ms", "4.2 s", "75 s"]));

test("a compressed model is read from bytes and from base64", async () => {
  const packed = gzipSync(JSON.stringify({ name: "f", counts: ["ä"] }));
  const view = new DataView(packed.buffer, packed.byteOffset, packed.byteLength);
  for (const data of [view, packed.toString("base64")])
    assert.deepEqual(await unzipped(data), { name: "f", counts: ["ä"] });
});

test("a noun agrees with its number", () => {
  assert.deepEqual(
    [0, 1, 2].map((n) => plural(n, "more place")),
    ["0 more places", "1 more place", "2 more places"],
  );
});
