import assert from "node:assert/strict";
import { test } from "node:test";

test("the bundle is one module with a render function, and touches no page when it is loaded", async () => {
  const { readFile } = await import("node:fs/promises");
  const text = await readFile(new URL("../../widgets/static/view.js", import.meta.url), "utf8");
  assert.ok(!/^import /m.test(text));
  const bundle = await import("data:text/javascript;base64," + Buffer.from(text).toString("base64"));
  assert.equal(typeof bundle.default.render, "function");
  assert.equal(typeof bundle.mountPage, "function");
  assert.equal(typeof bundle.openPage, "function");
  assert.match(text, /function openPage\(/, "pages call it by this name"); // widgets/render/page.py
});
