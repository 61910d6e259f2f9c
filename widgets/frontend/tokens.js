// A small tokenizer for Python source: enough for colours, line by line, with strings that span lines.

/** @import { SourceMark } from "./wire" */
/** @typedef {[text: string, kind: string]} Token */
/** @typedef {{ text: string, kind: string, mark: SourceMark | null }} Run */

const KEYWORDS = new Set(
  (
    "False None True and as assert async await break class continue def del elif else except finally for from " +
    "global if import in is lambda match nonlocal not or pass raise return try while with yield"
  ).split(" "),
);
const TOKEN = new RegExp(
  [
    /(#.*)/, // comment
    /([rbfuRBFU]{0,2}(?:"""|'''))/, // start of a string that may span lines
    /([rbfuRBFU]{0,2}(?:"(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])*'?))/, // string
    /(\b\d[\w.]*)/, // number
    /(@[\w.]+)/, // decorator
    /([^\W\d]\w*)/, // name
  ]
    .map((part) => part.source)
    .join("|"),
  "uy",
);

/**
 * The tokens of one line.
 * @param {string} line
 * @param {string} open the quotes of a string that began on an earlier line
 * @returns {{ tokens: Token[], open: string }}
 */
export function tokenize(line, open = "") {
  /** @type {Token[]} */
  const tokens = [];
  let at = 0;
  let plain = "";
  const push = (/** @type {string} */ text, /** @type {string} */ kind) => {
    if (plain) tokens.push([plain, ""]);
    plain = "";
    if (text) tokens.push([text, kind]);
  };
  if (open) {
    const end = line.indexOf(open);
    if (end < 0) return { tokens: line ? [[line, "str"]] : [], open };
    at = end + 3;
    push(line.slice(0, at), "str");
  }
  let previous = "";
  while (at < line.length) {
    TOKEN.lastIndex = at;
    const match = TOKEN.exec(line);
    if (!match) {
      plain += line[at++];
      continue;
    }
    const [text, comment, triple, string, number, decorator, name] = match;
    const before = line.slice(0, at);
    at += text.length;
    if (triple) {
      const quotes = triple.slice(-3);
      const end = line.indexOf(quotes, at);
      if (end < 0) {
        push(line.slice(before.length), "str");
        return { tokens, open: quotes };
      }
      push(text + line.slice(at, end + 3), "str");
      at = end + 3;
    } else if (comment) push(text, "com");
    else if (string) push(text, "str");
    else if (number) push(text, "num");
    else if (decorator && !before.trim()) push(text, "dec");
    else if (name && KEYWORDS.has(text)) push(text, "key");
    else if (name && (previous === "def" || previous === "class")) push(text, "def");
    else plain += text;
    if (name) previous = text;
  }
  push("", "");
  return { tokens, open: "" };
}

/**
 * Cut tokens where marks begin and end; columns are counted in code points, as Python does.
 * @param {Token[]} tokens
 * @param {SourceMark[]} marks
 */
export function withMarks(tokens, marks) {
  /** @type {Run[]} */
  const runs = [];
  let column = 0;
  for (const [text, kind] of tokens) {
    let run = "";
    /** @type {SourceMark | null} */
    let mark = null;
    for (const char of text) {
      const here = marks.find((m) => column >= m.start && column < m.end) || null;
      if (run && here !== mark) {
        runs.push({ text: run, kind, mark });
        run = "";
      }
      mark = here;
      run += char;
      column += 1;
    }
    if (run) runs.push({ text: run, kind, mark });
  }
  return runs;
}
