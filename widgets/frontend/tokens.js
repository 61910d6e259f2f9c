// A small tokenizer for Python source: enough for colours, line by line, with strings that span lines.

const KEYWORDS = new Set(
  (
    "False None True and as assert async await break class continue def del elif else except finally for from " +
    "global if import in is lambda match nonlocal not or pass raise return try while with yield"
  ).split(" "),
);
const TOKEN =
  /(#.*)|([rbfuRBFU]{0,2}(?:"""|'''))|([rbfuRBFU]{0,2}(?:"(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])*'?))|(\b\d[\w.]*)|(@[\w.]+)|([^\W\d]\w*)/uy;

// [[text, kind]] of one line; `open` is the quote of a string that began on an earlier line.
export function tokenize(line, open = "") {
  const out = [];
  let at = 0,
    plain = "";
  const push = (text, kind) => {
    if (plain) out.push([plain, ""]);
    plain = "";
    if (text) out.push([text, kind]);
  };
  if (open) {
    const end = line.indexOf(open);
    if (end < 0) return { tokens: line ? [[line, "str"]] : [], open };
    at = end + 3;
    push(line.slice(0, at), "str");
    open = "";
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
    at += text.length;
    if (triple) {
      const quote = triple.slice(-3),
        end = line.indexOf(quote, at);
      if (end < 0) {
        push(line.slice(at - text.length), "str");
        return { tokens: out, open: quote };
      }
      push(text + line.slice(at, end + 3), "str");
      at = end + 3;
    } else if (comment) push(text, "com");
    else if (string) push(text, "str");
    else if (number) push(text, "num");
    else if (decorator && !line.slice(0, at - text.length).trim()) push(text, "dec");
    else if (name && KEYWORDS.has(text)) push(text, "key");
    else if (name && (previous === "def" || previous === "class")) push(text, "def");
    else plain += text;
    if (name) previous = text;
  }
  push("", "");
  return { tokens: out, open };
}

// Cut tokens where marks begin and end: [{text, kind, mark}], columns counted in code points as Python does.
export function withMarks(tokens, marks) {
  const out = [];
  let column = 0;
  for (const [text, kind] of tokens) {
    let run = "",
      mark = null;
    for (const char of text) {
      const here = marks.find((m) => column >= m.start && column < m.end) || null;
      if (run && here !== mark) {
        out.push({ text: run, kind, mark });
        run = "";
      }
      mark = here;
      run += char;
      column += 1;
    }
    if (run) out.push({ text: run, kind, mark });
  }
  return out;
}
