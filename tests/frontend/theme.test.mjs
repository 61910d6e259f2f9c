import assert from "node:assert/strict";
import { test } from "node:test";
import { module } from "./load.mjs";

const { hostTheme } = await module("theme");
const page = ({ body = "", root = "", data = {}, theme = null, rootData = {} }) => ({
  body: { className: body, dataset: data },
  documentElement: { className: root, dataset: rootData, getAttribute: () => theme },
});

test("each host says it in its own way", () => {
  assert.equal(hostTheme(page({ data: { jpThemeLight: "false" } }), false), "dark");
  assert.equal(hostTheme(page({ data: { jpThemeLight: "true" } }), true), "light");
  assert.equal(hostTheme(page({ body: "vscode-dark" }), false), "dark");
  assert.equal(hostTheme(page({ body: "vscode-light" }), true), "light");
  assert.equal(hostTheme(page({ body: "vscode-high-contrast" }), false), "dark");
  assert.equal(hostTheme(page({ body: "vscode-high-contrast-light vscode-high-contrast" }), true), "light");
  assert.equal(hostTheme(page({ theme: "dark" }), false), "dark");
  assert.equal(hostTheme(page({ body: "dark-theme" }), false), "dark");
  assert.equal(hostTheme(page({ root: "light" }), true), "light");
  assert.equal(hostTheme(page({}), true), "dark");
  assert.equal(hostTheme(page({}), false), "light");
});
