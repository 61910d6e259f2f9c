"""Makes `static/view.js` of the modules in `frontend/`: one file, so that notebook and page load just one.

Promises: plain concatenation in the order of `MODULES`, imports between them taken out; comments, indentation and
the spaces around punctuation dropped, strings left as they are (no template literal may span lines); the result is
committed, installing needs neither this nor node.  `python -m dynascope.widgets.bundle` writes it,
`--check` exits with 1 where it is not current.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from dynascope.widgets.drawing.palette import css_variables

HERE = Path(__file__).parent
MODULES = ("dom", "theme", "tokens", "logic", "unfold", "lens", "split", "fx", "detail", "header", "breaks", "timeline", "main")
#: bytes; every saved widget state carries the module
LIMIT = 60_000

_IMPORT = re.compile(r'^import \{[^}]*\} from "\./(\w+)\.js";\n', re.MULTILINE)
_STRING = re.compile(r""" "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' """, re.VERBOSE)
_REGEX = re.compile(r"/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\[\n])+/")
_COMMENT = re.compile(r"//.*|/\*.*?\*/")
#: beside these a space says nothing; and after these a slash begins a regular expression, not a division
_TIGHT, _OPENS = frozenset(",;:{}()[]=<>?&|!"), frozenset("(,=:[!&|?{};\n")


def bundle_js() -> str:
    """The text of `static/view.js`."""
    out = ["// Made from widgets/frontend by widgets/bundle.py: change it there.\n"]
    for name in MODULES:
        text = (HERE / "frontend" / f"{name}.js").read_text("utf-8")
        text = squeezed(_IMPORT.sub("", text))
        if name != "main":
            text = re.sub(r"^export (?=const|function|async)", "", text, flags=re.MULTILINE)
        out.append("".join(line.strip() + "\n" for line in text.splitlines() if line.strip()))
    return "".join(out)


def squeezed(text: str) -> str:
    """JavaScript without comments, and without spaces that say nothing."""
    out, at = _code("\n".join(line.strip() for line in text.splitlines()), 0, inner=False)
    assert at < 0, "a brace too many"
    return out


def _code(text: str, at: int, *, inner: bool) -> tuple[str, int]:
    """What stands from `at` on, squeezed, and where it ends; `inner`: to the brace that ends a template's expression."""
    out, depth = "\n", 0
    while at < len(text):
        char, found = text[at], None
        if char in "\"'":
            found = _STRING.match(text, at)
        elif char == "/" and (comment := _COMMENT.match(text, at)):
            at = comment.end()
            continue
        elif char == "/" and out.rstrip(" ")[-1] in _OPENS:
            found = _REGEX.match(text, at)
        elif char == "`":
            piece, at = _template(text, at)
            out += piece
            continue
        elif char == " " and (out[-1] in _TIGHT or text[at + 1 : at + 2] in _TIGHT):
            at += 1
            continue
        depth += (char == "{") - (char == "}")
        if inner and depth < 0:
            return out[1:], at
        piece = found.group() if found else char
        out, at = out + piece, at + len(piece)
    return out[1:], -1


def _template(text: str, at: int) -> tuple[str, int]:
    """A template literal, its expressions squeezed, and where what follows it begins."""
    begin, out = at, "`"
    at += 1
    while text[at] != "`":
        if text.startswith("${", at):
            piece, at = _code(text, at + 2, inner=True)
            assert at > 0, text[begin : begin + 60]
            out += "${" + piece + "}"
            at += 1
            continue
        length = 2 if text[at] == "\\" else 1
        out, at = out + text[at : at + length], at + length
    return out + "`", at + 1


def bundle_css() -> str:
    """The text of `static/view.css`: the colours of `palette.py` put into `frontend/view.css`."""
    text = (HERE / "frontend" / "view.css").read_text("utf-8")
    return text.replace("/* light colours */", css_variables(dark=False)).replace(
        "/* dark colours */", css_variables(dark=True)
    )


def files() -> dict[Path, str]:
    """What is made, and what should stand in it."""
    return {HERE / "static" / "view.js": bundle_js(), HERE / "static" / "view.css": bundle_css()}


def main(arguments: list[str]) -> int:
    """Write the files, or with `--check` say which are not current."""
    stale = [path for path, text in files().items() if not path.exists() or path.read_text("utf-8") != text]
    if "--check" in arguments:
        for path in stale:
            print(f"{path.name} is not current: run python -m dynascope.widgets.bundle")
        return 1 if stale else 0
    for path, text in files().items():
        path.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
