"""Makes `static/view.js` of the modules in `frontend/`: one file, so that notebook and page load just one.

Promises: plain concatenation in the order of `MODULES`, imports between them taken out, whole-line comments
and indentation dropped (nothing else is changed, so no template literal may span lines); the result is
committed, installing needs neither this nor node.  `python -m dynascope.widgets.bundle` writes it,
`--check` exits with 1 where it is not current.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from dynascope.widgets.palette import css_variables

HERE = Path(__file__).parent
MODULES = ("dom", "theme", "tokens", "logic", "unfold", "lens", "split", "fx", "detail", "header", "breaks", "timeline", "main")
#: bytes; every saved widget state carries the module
LIMIT = 60_000

_IMPORT = re.compile(r'^import \{[^}]*\} from "\./(\w+)\.js";\n', re.MULTILINE)
_COMMENT = re.compile(r"^\s*(?://.*|/\*\*.*\*/)\n", re.MULTILINE)


def bundle_js() -> str:
    """The text of `static/view.js`."""
    out = ["// Made from widgets/frontend by widgets/bundle.py: change it there.\n"]
    for name in MODULES:
        text = (HERE / "frontend" / f"{name}.js").read_text("utf-8")
        text = _COMMENT.sub("", _IMPORT.sub("", text))
        if name != "main":
            text = re.sub(r"^export (?=const|function|async)", "", text, flags=re.MULTILINE)
        out.append("".join(line.strip() + "\n" for line in text.splitlines() if line.strip()))
    return "".join(out)


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
