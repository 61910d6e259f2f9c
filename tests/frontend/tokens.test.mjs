import assert from "node:assert/strict";
import { test } from "node:test";
import { module } from "./load.mjs";

const { tokenize, withMarks } = await module("tokens");
const kinds = (line, open) =>
  tokenize(line, open)
    .tokens.filter(([, kind]) => kind)
    .map(([text, kind]) => `${kind}:${text}`);

test("keywords, names being defined, numbers, strings, comments, decorators", () => {
  assert.deepEqual(kinds("def f(x):  # go"), ["key:def", "def:f", "com:# go"]);
  assert.deepEqual(kinds("    return x + 1.5e3"), ["key:return", "num:1.5e3"]);
  assert.deepEqual(kinds("print(f'a\\'b', \"#\")"), ["str:f'a\\'b'", 'str:"#"']);
  assert.deepEqual(kinds("@torch.compile"), ["dec:@torch.compile"]);
  assert.deepEqual(kinds("h = x @ w"), []);
  assert.deepEqual(kinds("x1 = defn"), []);
});

test("no character is lost or added, whatever the line is", () => {
  for (const line of [
    "",
    "   ",
    "'open",
    '"""doc',
    "a = '''b''' + c",
    "\u2400</script>'\"",
    "😀 = 'é'",
    "x".repeat(5000),
  ]) {
    assert.equal(
      tokenize(line)
        .tokens.map(([text]) => text)
        .join(""),
      line,
    );
  }
});

test("strings span lines", () => {
  const first = tokenize('x = """begin');
  assert.equal(first.open, '"""');
  const second = tokenize("still", first.open);
  assert.deepEqual(second, { tokens: [["still", "str"]], open: '"""' });
  const third = tokenize('end""" + y', second.open);
  assert.equal(third.open, "");
  assert.deepEqual(third.tokens[0], ['end"""', "str"]);
});

test("marks cut tokens at Python's columns, also after characters outside the basic plane", () => {
  const mark = { id: "b0", start: 4, end: 7 };
  const pieces = withMarks(tokenize("a = fff(1)").tokens, [mark]);
  assert.deepEqual(
    pieces.filter((p) => p.mark).map((p) => p.text),
    ["fff"],
  );
  const wide = withMarks([["😀😀ab", ""]], [{ id: "b0", start: 2, end: 3 }]);
  assert.deepEqual(
    wide.map((p) => [p.text, Boolean(p.mark)]),
    [
      ["😀😀", false],
      ["a", true],
      ["b", false],
    ],
  );
});
