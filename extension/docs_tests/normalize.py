"""Make outputs fit to be committed: no widget state, no times, no addresses, no paths of one machine.

Running a page again must not change its file where nothing that matters has changed.  What we print
ourselves (outputs that carry a report's structure) loses its times as well; what the page's author
prints stays, but for addresses and paths.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Set
from typing import Any

from dynascope.compiler.report.outline import MIME
from dynascope.docs_tests.pages import tags_of

VIEW = "application/vnd.jupyter.widget-view+json"
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{8,16}\b")
_SECONDS = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(\s|&nbsp;|\u202f|\u00a0)(s|ms|µs|us)\b")
# A path is tried from its beginning only (or where a match before it ended): from each character of a base64 image, a
# search takes seconds.
_PACKAGE = re.compile(r"(?:(?<![^\s'\"`(<>])|(?<=-packages[/\\]))[^\s'\"`(<>]*?[/\\](?:site-packages|dist-packages)[/\\]")
_STANDARD = re.compile(r"(?:(?<![^\s'\"`(<>])|(?<=\d[/\\]))[^\s'\"`(<>]*?[/\\]lib[/\\]python3\.\d+[/\\]")
_KERNEL_FILE = re.compile(r"(?:(?<![^\s'\"(<>])|(?<=\d\.py))[^\s'\"(<>]*?[/\\]ipykernel_\d+[/\\]\d+\.py")
#: of `--profile`: figures from end to end, and notes that come and go with them
_RUN_TIME = re.compile(r"^(?:run time|\d+ inputs?): .*?(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)
_PASSING = r"(?:the profiler slows|the (?:eager )?calls took very different)"
_PASSING_NOTE = re.compile(rf"^note: {_PASSING} .*?\n(?=note: )", re.MULTILINE | re.DOTALL)
_LAST_NOTE = re.compile(rf"\n*^note: {_PASSING} .*?(?=\n\n|\Z)|<p[^<>]*>{_PASSING} [^<>]*</p>", re.MULTILINE | re.DOTALL)
_SVG = re.compile(r"data:image/svg\+xml;base64,([A-Za-z0-9+/=]+)")


def settle(notebook: Any, folder: str = "") -> None:
    """Settle a whole executed notebook, in place.  `folder`: its own path, which is left out of texts."""
    notebook.metadata.pop("widgets", None)
    # of the machine, not of the page
    notebook.metadata.get("language_info", {}).pop("version", None)
    # without one JupyterLab asks which kernel to use before it shows anything
    notebook.metadata.setdefault("kernelspec", {"display_name": "Python 3", "language": "python", "name": "python3"})
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell["outputs"] = settled(cell.get("outputs", []), tags_of(cell), folder)


def settled(outputs: list[Any], tags: Set[str] = frozenset(), folder: str = "") -> list[Any]:
    """A cell's outputs as they are stored, with what its remove-* tags take away left out."""
    if tags & {"remove-cell", "remove-output", "remove_cell", "remove_output"}:
        # what is not shown is not stored; that the cell raised stays known
        return [_texts(o, folder) for o in outputs if o.get("output_type") == "error"]
    kept = []
    for output in outputs:
        if output.get("output_type") == "stream" and f"remove-{output.get('name')}" in tags:
            continue
        data = output.get("data")
        if isinstance(data, dict) and VIEW in data:
            # a widget's view shows nothing without its state; its static twin is another output
            rest = {k: v for k, v in data.items() if k not in (VIEW, "text/plain")}
            if not rest:
                continue
            output["data"] = type(data)(rest)
        kept.append(_texts(output, folder))
    return kept


def stable(text: str, ours: bool = False, folder: str = "") -> str:
    """A text without addresses and machine paths and, where it is ours, without times."""
    text = _ADDRESS.sub("0x…", text)
    text = _KERNEL_FILE.sub("<cell>", text)
    text = _PACKAGE.sub("", text)
    text = _STANDARD.sub("", text)
    if folder and folder != "/":
        text = text.replace(folder.rstrip("/\\") + "/", "")
    if ours:
        text = _PASSING_NOTE.sub("", _RUN_TIME.sub("run time: not stored, as it differs from run to run", text))
        text = _LAST_NOTE.sub("", text)
        text = _SVG.sub(_settle_svg, text)
        text = _SECONDS.sub(r"…\1s", text)  # the unit changes with the time
    return text


def _settle_svg(found: re.Match[str]) -> str:
    try:
        svg = base64.b64decode(found.group(1), validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        return found.group(0)
    return "data:image/svg+xml;base64," + base64.b64encode(stable(svg, ours=True).encode()).decode()


def _texts(output: Any, folder: str) -> Any:
    """The same output with every text in it made stable."""
    kind = output.get("output_type")
    if kind == "stream":
        output["text"] = stable(output["text"], folder=folder)
    elif kind == "error":
        output["evalue"] = stable(output.get("evalue", ""), folder=folder)
        output["traceback"] = [stable(line, folder=folder) for line in output.get("traceback", [])]
    else:
        data = output.get("data", {})
        ours = MIME in data or MIME in output.get("metadata", {}) or "dyn-static" in str(data.get("text/html", ""))
        for mime, value in data.items():
            if isinstance(value, str) and (mime.startswith("text/") or mime == "image/svg+xml"):
                data[mime] = stable(value, ours, folder)
    return output
