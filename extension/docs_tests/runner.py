"""Docs tests: run a page in a fresh kernel, and say exactly what is not as it was.

`run_page` is what `dynascope test` and the pytest plugin both call.  Honoured: the tags
`raises-exception` (may raise), `expect-exception` (must), `skip-execution`, `requires-cuda`, `remove-*`;
`execution_timeout` of a cell, of the notebook or in the front matter.  Where the file stores outputs,
their structure is compared (see notebook_structure); `update` writes the new outputs instead.
"""

from __future__ import annotations

import copy
import functools
import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dynascope.docs_tests.compare import NEVER_PERMITTED, compare, error_name
from dynascope.docs_tests.normalize import settle
from dynascope.docs_tests.pages import DEFAULT_TIMEOUT, Page, PageError, find, read, tags_of

__all__ = ["Page", "PageError", "Problem", "Result", "find", "read", "run_page"]

_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_CELL_LINE = re.compile(r"Cell In\[(\d+)\],? line (\d+)")
_HIDDEN = {"remove-cell", "remove-output", "remove_cell", "remove_output"}


@dataclass
class Problem:
    """One thing that is wrong with a page.  `line` counts in the cell, `page_line` in the file."""

    path: str
    what: str
    cell: int | None = None
    line: int | None = None
    page_line: int | None = None
    detail: str = ""
    source: str = ""
    #: whether `--update` would accept it
    structure: bool = False

    def __str__(self) -> str:
        place = self.path
        if self.cell is not None:
            place += f", code cell {self.cell}"
        if self.line is not None:
            place += f", line {self.line}"
        if self.page_line is not None:
            place += f" ({Path(self.path).name}:{self.page_line})"
        parts = [f"{place}: {self.what}", *_indented(self.detail), *_numbered(self.source, self.line)]
        if self.structure:
            parts.append(f"    If this is right now: dynascope test --update {self.path}")
        return "\n".join(parts)


@dataclass
class Result:
    """What became of one page."""

    path: Path
    problems: list[Problem] = field(default_factory=list)
    seconds: float = 0.0
    #: code cells that ran
    cells: int = 0
    skipped: str | None = None
    updated: bool = False
    notes: list[str] = field(default_factory=list)
    #: the notebook as executed; None where the page was skipped
    notebook: Any = None

    @property
    def ok(self) -> bool:
        return not self.problems


@functools.cache
def has_cuda() -> bool:
    """Whether a kernel would find a CUDA device.  Asked of another process: torch is not loaded here."""
    code = "import torch, sys; sys.exit(not torch.cuda.is_available())"
    return subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


def run_page(
    path: str | Path,
    *,
    update: bool = False,
    compare_stored: bool = True,
    timeout: float = DEFAULT_TIMEOUT,
    on_cell: Callable[[int, int], None] = lambda done, cells: None,
    before: str = "",
    environ: dict[str, str] | None = None,
) -> Result:
    """Run one page and compare it with what it stores.

    `compare_stored=False`: errors and time-outs are problems, another structure is none.
    `timeout`: seconds for a cell where neither it nor the page says.  `on_cell(done, cells)` is called
    before each cell.  `before`: code that runs unseen in the kernel first.  `environ`: added to the
    kernel's variables.

    A page that cannot be read is a problem too, not an exception.
    """
    path = Path(path)
    start = time.monotonic()
    result = Result(path)
    try:
        page = read(path)
        limits = {index: page.timeout(cell, timeout) for index, cell in page.code_cells()}
    except PageError as error:
        result.problems.append(Problem(str(path), str(error).removeprefix(f"{path}: ")))
        return result
    result.notes += page.notes
    result.skipped = page.skip_reason() or _cuda_reason(tags_of(page.notebook))
    if result.skipped:
        return result

    work = copy.deepcopy(page.notebook)
    _prepare(page, work)
    started, stopped = _execute(page, work, limits, on_cell, before=before, environ=environ)
    result.problems += stopped
    result.notebook = work
    result.cells = len(started)
    result.problems += _compare(page, work, started, not result.problems, compare_stored and not update)
    _restore(page, work, set(started))
    if update and not result.problems and path.suffix == ".ipynb":
        result.updated = _update(page, work)
    result.seconds = time.monotonic() - start
    return result


def _cuda_reason(tags: set[str]) -> str | None:
    return "needs a CUDA device" if "requires-cuda" in tags and not has_cuda() else None


def _execute(
    page: Page, work: Any, limits: dict[int, float | None], on_cell: Callable[[int, int], None], **kernel: Any
) -> tuple[list[int], list[Problem]]:
    """Execute the cells of `work`; which of them began, and what stopped them."""
    from nbclient.exceptions import CellExecutionError, CellTimeoutError

    from dynascope.docs_tests.kernel import KernelDied, execute

    started: list[int] = []

    def on_start(index: int) -> None:
        started.append(index)
        on_cell(len(started) - 1, len(limits))

    limit_of = {id(work.cells[index]): limit for index, limit in limits.items()}
    try:
        execute(work, _folder(page), timeout=lambda cell: limit_of.get(id(cell)) or -1, on_cell=on_start, **kernel)
    except CellExecutionError as error:
        return started, [_raised(page, work, started[-1], error.ename, error.evalue)]
    except CellTimeoutError:
        what = f"timed out after {limits[started[-1]]:g} s; the notebook was stopped and its kernel killed"
        return started, [_problem(page, started[-1], what)]
    except KernelDied as error:
        problem = _problem(page, started[-1] if started else None, "the kernel died")
        problem.detail = str(error)
        return started, [problem]
    except RuntimeError as error:
        return started, [Problem(str(page.path), f"no kernel: {(str(error).splitlines() or ['it did not start'])[0]}")]
    return started, []


def _folder(page: Page) -> str:
    return str(page.path.resolve().parent)


def _prepare(page: Page, work: Any) -> None:
    """Give nbclient the tags that it knows, for those that we know."""
    for cell in work.cells:
        if cell.cell_type != "code":
            continue
        tags = tags_of(cell)
        if "expect-exception" in tags or page.option("execution_allow_errors"):
            tags.add("raises-exception")
        if _cuda_reason(tags):
            tags.add("skip-execution")
        cell.metadata["tags"] = sorted(tags)


def _restore(page: Page, work: Any, started: set[int]) -> None:
    """Undo `_prepare`, and give cells that did not run their stored outputs."""
    for index, cell in page.code_cells():
        work.cells[index].metadata = copy.deepcopy(cell.metadata)
        if index not in started:
            work.cells[index]["outputs"] = copy.deepcopy(cell.get("outputs", []))
            work.cells[index]["execution_count"] = cell.get("execution_count")


def _compare(page: Page, work: Any, started: list[int], finished: bool, with_stored: bool) -> list[Problem]:
    """Problems with the cells that ran to their end."""
    problems = []
    for index in started if finished else started[:-1]:
        tags = tags_of(page.notebook.cells[index])
        outputs = work.cells[index].get("outputs", [])
        raised = error_name(outputs)
        if raised in NEVER_PERMITTED and "expect-exception" not in tags:
            problems.append(_raised(page, work, index, raised))
            continue
        if "expect-exception" in tags and raised is None:
            what = "an error is gone: the cell is tagged expect-exception and raised nothing"
            problems.append(_problem(page, index, what))
            continue
        # what is removed from the page is not stored either
        if not with_stored or not page.stores_outputs or tags & _HIDDEN:
            continue
        for difference in compare(page.notebook.cells[index].get("outputs", []), outputs):
            problem = _problem(page, index, difference.what, difference.line)
            problem.detail = difference.detail
            problem.structure = True
            problems.append(problem)
    return problems


def _update(page: Page, work: Any) -> bool:
    """Write the new outputs; False where the file already says so."""
    before = page.path.read_bytes()
    settle(work, _folder(page))
    Page(page.path, work, page.first_lines).write()
    return page.path.read_bytes() != before


def _problem(page: Page, index: int | None, what: str, line: int | None = None) -> Problem:
    if index is None:
        return Problem(str(page.path), what)
    source = page.notebook.cells[index].source
    if line is not None and not 1 <= line <= source.count("\n") + 1:
        line = None  # a line of another file
    first = page.first_lines[index]
    page_line = None if first is None else first + (line or 1) - 1
    return Problem(str(page.path), what, page.number(index), line, page_line, source=source)


def _raised(page: Page, work: Any, index: int, name: str, message: str = "") -> Problem:
    """The error of a cell that should not have raised, trimmed to the page's own lines."""
    cell = work.cells[index]
    error: Any = next((o for o in cell.get("outputs", []) if o.get("output_type") == "error"), {})
    blocks = [_ANSI.sub("", block) for block in error.get("traceback", [])]
    text = "\n".join(blocks)
    line = None
    for count, number in _CELL_LINE.findall(text):
        if int(count) == cell.get("execution_count"):
            line = int(number)  # the innermost line of this cell
    message = (error.get("evalue") or message or " ").splitlines()[0].strip()
    what = f"a new error: {name}: {message}" if message else f"a new error: {name}"
    problem = _problem(page, index, what, line)
    problem.detail = _trimmed(blocks, _folder(page))
    return problem


def _trimmed(blocks: list[str], folder: str) -> str:
    """A traceback without the frames of libraries; the exception's own text is its last block."""
    kept: list[str] = []
    left_out = 0
    for block in blocks[1:-1]:
        own = "Cell In[" in block or ("site-packages" not in block and folder in block)
        if block.lstrip().startswith(("File ", "Cell ")) and not own:
            left_out += 1
            continue
        if left_out:
            kept.append(f"... {left_out} frames in libraries ...")
            left_out = 0
        kept.append(block.strip("\n"))
    if left_out:
        kept.append(f"... {left_out} frames in libraries ...")
    last = blocks[-1].strip() if blocks else ""
    lines = last.splitlines()
    if len(lines) > 30:
        lines = [*lines[:20], f"... {len(lines) - 25} lines ...", *lines[-5:]]
    return "\n".join([*kept, *lines])


def _indented(text: str) -> list[str]:
    return [f"    {line}".rstrip() for line in text.splitlines()]


def _numbered(source: str, line: int | None) -> list[str]:
    """The cell's source with line numbers, the line in question marked."""
    return [f"  {'>' if n == line else ' '} {n:3d}  {text}".rstrip() for n, text in enumerate(source.splitlines(), 1)]
