"""Compares a cell's outputs with the stored ones, and makes outputs fit to be committed.

Compared are the outlines of reports (`compiler.report.comparison`) and the error's type, not text, values and times.

Stored outputs have no widget state, memory addresses and paths of one machine: running a page again must not change its file if
nothing that matters has changed.  Our own outputs (those with a report's outline or static picture) lose their times as well;
what the page's author prints loses only addresses and paths.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Iterator, Set
from dataclasses import dataclass
from typing import Any

from dynascope.compiler.report import plural
from dynascope.compiler.report.comparison import MIME, ExpectationFailed
from dynascope.docs_tests.pages import is_hidden, tags_of

#: the exception for an expectation that does not hold; only the tag `expect-exception` permits it, `raises-exception` does not
EXPECTATION_ERROR = ExpectationFailed.__name__
#: start of the line that IPython prints for a UsageError, instead of sending an error output
_USAGE = "UsageError: "


@dataclass(frozen=True)
class Difference:
    """One difference between a cell's outputs and the stored ones; `line` is a line of the cell."""

    what: str
    detail: str = ""
    line: int | None = None


def outlines(outputs: Iterable[Any]) -> list[dict[str, Any]]:
    """The outline of each report among a cell's outputs, in order."""
    candidates = [output.get("data", {}).get(MIME) or output.get("metadata", {}).get(MIME) for output in outputs]
    return [value for value in candidates if isinstance(value, dict)]


def error_name(outputs: Iterable[Any]) -> str | None:
    """The type of the exception that the cell ended with, or None."""
    for output in outputs:
        if output.get("output_type") == "error":
            return str(output.get("ename", ""))
        if output.get("name") == "stderr" and any(t.startswith(_USAGE) for t in output["text"].splitlines()):
            return "UsageError"
    return None


def compare(stored: Any, now: Any) -> list[Difference]:
    """The differences between the outputs of a cell as it is stored and as it has run."""
    outputs = [cell.get("outputs", []) for cell in (stored, now)]
    names = [f"In[{cell.get('execution_count')}]" for cell in (stored, now)]
    differences: list[Difference] = []
    old_error, new_error = map(error_name, outputs)
    if old_error != new_error:
        what = "an error is gone" if new_error is None else "a new error" if old_error is None else "another error"
        differences.append(Difference(what, f"stored: {old_error or 'none'}; now the cell raises {new_error or 'nothing'}"))
    before, after = map(outlines, outputs)
    if len(before) != len(after):
        differences.append(Difference(f"{plural(len(after), 'report')} (stored: {len(before)})"))
    for number, (old, new) in enumerate(zip(before, after, strict=False), 1):
        if _release(old) != _release(new):
            continue  # different compilers, which may capture different graphs and name other lines
        prefix = f"report {number}: " if len(before) > 1 else ""
        differences += [Difference(prefix + d.what, d.detail, d.line) for d in _compare_reports(old, new, names)]
    return differences


def other_releases(stored: Any, now: Any) -> set[str]:
    """Of which releases the stored reports of a cell are that `compare` leaves out."""
    pairs = zip(*(outlines(cell.get("outputs", [])) for cell in (stored, now)), strict=False)
    left_out = (old for old, new in pairs if _release(old) != _release(new))
    return {f"torch {old.get('torch', 'unknown')} and Python {old.get('python', 'unknown')}" for old in left_out}


def _release(outline: dict[str, Any]) -> tuple[list[str], bool]:
    """torch's release, and whether the Python is 3.10, whose bytecode has lines but no columns."""
    return str(outline.get("torch", "")).split(".")[:2], str(outline.get("python", "")).startswith("3.10")


def _compare_reports(old: dict[str, Any], new: dict[str, Any], names: list[str]) -> Iterator[Difference]:
    """The differences between two outlines; `names`: of their cell, stored and now."""
    added, lost = list(new.get("breaks", [])), []
    for entry in old.get("breaks", []):
        same = (b for b in added if all(b.get(key) == entry.get(key) for key in ("type", "line", "outcome")))
        if (found := next(same, None)) is not None:
            added.remove(found)
        else:
            lost.append(entry)
    for what, entries, cell in (("a new graph break", added, names[1]), ("a lost graph break", lost, names[0])):
        for entry in entries:
            place = entry.get("place", cell)  # older pages do not store it
            at = f"line {entry.get('line')}" + (f" of {place}" if place != cell else "")
            # the line of a lost break is not marked: another statement may be there now
            line = entry.get("line") if entries is added and place == cell else None
            yield Difference(what, f"{entry.get('type')} ({entry.get('outcome')}) at {at}", line)
    before, after = old.get("summary", {}), new.get("summary", {})
    # breaks are compared one by one
    names = [n for n in before if n in after and not n.endswith("seconds") and n not in ("breaks", "unexpected")]
    if changed := [f"{name}: {after[name]} (stored: {before[name]})" for name in names if before[name] != after[name]]:
        yield Difference("other counts", ", ".join(changed))


# -- outputs as they are stored --------------------------------------------------------------------


VIEW = "application/vnd.jupyter.widget-view+json"
#: replacements in every text: addresses and paths of the machine
_MACHINE_PATTERNS = [
    (re.compile(r"\b0x[0-9a-fA-F]{8,16}\b"), "0x…"),
    # A path is matched only from its beginning, or from the end of the previous match: a search from each character of a
    # base64 image takes seconds.
    (re.compile(r"(?:(?<![^\s'\"(<>])|(?<=\d\.py))[^\s'\"(<>]*?[/\\]ipykernel_\d+[/\\]\d+\.py"), "<cell>"),
    (re.compile(r"(?:(?<![^\s'\"`(<>])|(?<=-packages[/\\]))[^\s'\"`(<>]*?[/\\](?:site-packages|dist-packages)[/\\]"), ""),
    (re.compile(r"(?:(?<![^\s'\"`(<>])|(?<=\d[/\\]))[^\s'\"`(<>]*?[/\\]lib[/\\]python3\.\d+[/\\]"), ""),
]
_MEASURED = r"^(?:run time|\d+ inputs?): .*?(?=\n\n|\Z)"
_UNSTABLE = r"(?:the profiler slows|the calls took very different)"
#: replacements in our own texts: what `--profile` measures, notes that depend on the measurements, and times (s to ns);
#: all of this is replaced in embedded pictures, too
_RUN_PATTERNS: list[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]]] = [
    (re.compile(_MEASURED, re.MULTILINE | re.DOTALL), "run time: not stored, as it differs from run to run"),
    (re.compile(rf"^note: {_UNSTABLE} .*?\n(?=note: )", re.MULTILINE | re.DOTALL), ""),
    (re.compile(rf"\n*^note: {_UNSTABLE} .*?(?=\n\n|\Z)|<p[^<>]*>{_UNSTABLE} [^<>]*</p>", re.MULTILINE | re.DOTALL), ""),
    (re.compile(r"(?<=dyn-static) dyn-[0-9a-f]{32}"), ""),  # by which the live view, which is not stored, hides the output
    (re.compile(r"data:image/svg\+xml;base64,([A-Za-z0-9+/=]+)"), lambda match: _normalize_svg(match)),
    (re.compile(r"(?<![\w.])\d+(?:\.\d+)?(\s+|&nbsp;|\u202f|\u00a0)(s|ms|µs|us|ns)\b"), r"…\1s"),
]


def normalize(notebook: Any, folder: str = "") -> None:
    """Normalize a whole executed notebook in place; `folder`: the path of its file's folder, which is removed from texts."""
    notebook.metadata.pop("widgets", None)
    notebook.metadata.get("language_info", {}).pop("version", None)  # differs between machines
    # without a kernelspec, JupyterLab asks for one before it shows anything
    notebook.metadata.setdefault("kernelspec", {"display_name": "Python 3", "language": "python", "name": "python3"})
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell["outputs"] = normalized(cell.get("outputs", []), tags_of(cell), folder)


def normalized(outputs: list[Any], tags: Set[str] = frozenset(), folder: str = "") -> list[Any]:
    """A cell's outputs as they are stored; those that its `remove-*` tags name are left out."""
    if is_hidden(tags):  # errors are stored even for hidden cells
        return [_normalize_texts(o, folder) for o in outputs if o.get("output_type") == "error"]
    stored = []
    for output in outputs:
        if output.get("output_type") == "stream" and f"remove-{output.get('name')}" in tags:
            continue
        data = output.get("data")
        if isinstance(data, dict) and VIEW in data:  # a view is useless without its state; the static picture is another output
            rest = {k: v for k, v in data.items() if k not in (VIEW, "text/plain")}
            if not rest:
                continue
            output["data"] = type(data)(rest)
        stored.append(_normalize_texts(output, folder))
    return stored


def stable(text: str, ours: bool = False, folder: str = "") -> str:
    """A text without addresses and paths of the machine; a text of dynascope's own (`ours`) also loses its times."""
    for pattern, replacement in _MACHINE_PATTERNS:
        text = pattern.sub(replacement, text)
    if folder and folder != "/":
        text = text.replace(folder.rstrip("/\\") + "/", "")
    for pattern, replace in _RUN_PATTERNS if ours else ():
        text = pattern.sub(replace, text)
    return text


def _normalize_svg(match: re.Match[str]) -> str:
    try:
        svg = base64.b64decode(match[1], validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        return match[0]
    return "data:image/svg+xml;base64," + base64.b64encode(stable(svg, ours=True).encode()).decode()


def _normalize_texts(output: Any, folder: str) -> Any:
    """The output, with every text in it made stable."""
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
