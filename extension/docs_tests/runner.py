"""Runs pages, each in a fresh kernel, and reports what differs from the outputs that the page stores.

`dynascope test` and the pytest plugin both call `run_page`.  It honours the tags `raises-exception` (may raise),
`expect-exception` (must raise), `skip-execution`, `requires-cuda` and `remove-*`.  If the file stores outputs, the new ones are
compared with them (`docs_tests.outputs`); with `update`, the new outputs are written instead.
"""

from __future__ import annotations

import copy
import functools
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from dynascope.docs_tests.outputs import EXPECTATION_ERROR, compare, error_name, normalize, other_releases
from dynascope.docs_tests.pages import DEFAULT_TIMEOUT, Page, PageError, find, is_hidden, read, tags_of

_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_CELL_LINE = re.compile(r"Cell In\[(\d+)\],? line (\d+)")


@dataclass
class Problem:
    """One thing that is wrong with a page; `line` is a line of the cell."""

    path: str
    what: str
    cell: int | None = None
    line: int | None = None
    detail: str = ""
    source: str = ""
    #: whether `--update` would accept it
    updatable: bool = False

    def __str__(self) -> str:
        place = self.path + (f", code cell {self.cell}" if self.cell is not None else "")
        place += f", line {self.line}" if self.line is not None else ""
        parts = [f"{place}: {self.what}", *(f"    {line}".rstrip() for line in self.detail.splitlines())]
        lines = enumerate(self.source.splitlines(), 1)
        parts += [f"  {'>' if n == self.line else ' '} {n:3d}  {text}".rstrip() for n, text in lines]
        if self.updatable:
            parts.append(f"    If this is right now: dynascope test --update {shlex.quote(self.path)}")
        return "\n".join(parts)


@dataclass
class Result:
    """The outcome of one page."""

    path: Path
    problems: list[Problem] = field(default_factory=list)
    seconds: float = 0.0
    #: code cells that ran
    cells: int = 0
    skipped: str | None = None
    updated: bool = False
    notes: list[str] = field(default_factory=list)
    #: the notebook as executed; None if the page was skipped or could not be read
    notebook: Any = None

    @property
    def ok(self) -> bool:
        return not self.problems


@functools.cache
def has_cuda() -> bool:
    """Whether a kernel would find a CUDA device; another process answers, so that torch is not loaded here."""
    code = "import torch, sys; sys.exit(not torch.cuda.is_available())"
    return subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


def run_page(
    path: str | Path, *, update: bool = False, compare_stored: bool = True, timeout: float = DEFAULT_TIMEOUT
) -> Result:
    """Run one page and compare its outputs with the stored ones; a page that cannot be read is a problem, not an exception.

    Args:
        path: the page.
        update: instead of comparing, write the new outputs, unless there is a problem.
        compare_stored: if False, stored outputs are not compared; unexpected and missing errors, time-outs, and a kernel
            that dies or does not start are still problems.
        timeout: seconds for a cell; 0: no limit.
    """
    path = Path(path)
    start = time.monotonic()
    result = Result(path)
    try:
        page = read(path)
        tags = tags_of(page.notebook)
        result.skipped = "the page is marked as not to be run" if "skip-execution" in tags else _cuda_reason(tags)
    except PageError as error:
        result.problems.append(Problem(str(path), str(error).removeprefix(f"{path}: ")))
    except Exception as error:  # metadata of the wrong type
        result.problems.append(Problem(str(path), f"cannot be read: {type(error).__name__}: {error}"))
    if result.problems or result.skipped:
        return result

    work = result.notebook = copy.deepcopy(page.notebook)
    _prepare(work)
    folder, compares = str(page.path.resolve().parent), compare_stored and not update
    started, result.problems = _execute(page, work, folder, timeout if timeout > 0 else None)
    for index, cell in page.code_cells():
        work.cells[index].metadata = copy.deepcopy(cell.metadata)
    result.cells = len(started)
    for index in started[:-1] if result.problems else started:
        result.problems += _compare(page, work, index, compares and page.stores_outputs)
    is_updatable = all(problem.updatable for problem in result.problems)  # else, no problem of the page is
    result.problems = [replace(problem, updatable=is_updatable) for problem in result.problems]
    if compares and not page.stores_outputs:
        update_it = f"dynascope test --update {shlex.quote(str(path))}"
        result.notes.append(f"nothing was compared: it has no stored outputs ({update_it} stores them)")
    cells = ((page.notebook.cells[index], work.cells[index]) for index in started if compares)
    if releases := set[str]().union(*(other_releases(*pair) for pair in cells)):
        result.notes.append(f"reports were not compared: they were stored with {', '.join(sorted(releases))}")
    if update and not result.problems:
        try:
            stored = path.read_bytes()
            normalize(work, folder)
            Page(path, work).write()
            result.updated = path.read_bytes() != stored
        except OSError as error:
            result.problems.append(_problem(page, None, f"cannot be written: {error.strerror or error}"))
    result.seconds = time.monotonic() - start
    return result


def _cuda_reason(tags: set[str]) -> str | None:
    return "needs a CUDA device" if "requires-cuda" in tags and not has_cuda() else None


def _execute(page: Page, work: Any, folder: str, limit: float | None) -> tuple[list[int], list[Problem]]:
    """Execute the cells of `work`; returns the indexes of those that started, and what stopped the run."""
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

    from dynascope.docs_tests.kernel import execute

    started: list[int] = []
    try:
        execute(work, folder, timeout=limit, on_cell=started.append)
    except CellExecutionError as error:
        return started, [_raised(page, work, started[-1], error.ename, error.evalue)]
    except CellTimeoutError:
        what = f"timed out after {limit:g} s; the kernel was killed, and the rest of the page was not run"
        return started, [_problem(page, started[-1], what, _line_of_error(work.cells[started[-1]], len(started)))]
    except DeadKernelError as error:
        return started, [_problem(page, started[-1] if started else None, "the kernel died", detail=str(error))]
    except RuntimeError as error:
        return started, [_problem(page, None, f"the page was not run: {(str(error).splitlines() or ['no kernel'])[0]}")]
    return started, []


def _prepare(work: Any) -> None:
    """Translate our tags to those that nbclient knows."""
    for cell in (cell for cell in work.cells if cell.cell_type == "code"):
        tags = tags_of(cell)
        if "expect-exception" in tags:
            tags.add("raises-exception")
        if _cuda_reason(tags):
            tags.add("skip-execution")
        cell.metadata["tags"] = sorted(tags)


def _compare(page: Page, work: Any, index: int, with_stored: bool) -> list[Problem]:
    """Problems with a cell that ran to its end."""
    tags = tags_of(page.notebook.cells[index])
    raised = error_name(work.cells[index].get("outputs", []))
    if raised == EXPECTATION_ERROR and "expect-exception" not in tags:
        return [_raised(page, work, index, raised)]
    if "expect-exception" in tags and raised is None:
        return [_problem(page, index, "an error is gone: the cell is tagged expect-exception and raised nothing")]
    if not with_stored or is_hidden(tags):
        return []  # of a hidden cell, only errors are stored
    found = [_problem(page, index, d.what, d.line, d.detail) for d in compare(page.notebook.cells[index], work.cells[index])]
    # the cell's first problem shows the source
    return [replace(problem, updatable=True, source="" if n else problem.source) for n, problem in enumerate(found)]


def _problem(page: Page, index: int | None, what: str, line: int | None = None, detail: str = "") -> Problem:
    if index is None:
        return Problem(str(page.path), what, detail=detail)
    return Problem(str(page.path), what, page.number(index), line, detail, page.notebook.cells[index].source)


def _raised(page: Page, work: Any, index: int, name: str, message: str = "") -> Problem:
    """The problem of a cell that should not have raised, with its trimmed traceback."""
    cell = work.cells[index]
    error = _error_of(cell)
    message = (error.get("evalue") or message or " ").splitlines()[0].strip()
    what = f"a new error: {name}: {message}" if message else f"a new error: {name}"
    return _problem(page, index, what, _line_of_error(cell, cell.get("execution_count")), "\n".join(error["traceback"][1:]))


def _error_of(cell: Any) -> dict[str, Any]:
    """The error output of a cell, with a traceback without colours, which is empty if there is no such output."""
    error: Any = next((o for o in cell.get("outputs", []) if o.get("output_type") == "error"), {})
    return {**error, "traceback": [_ANSI.sub("", block) for block in error.get("traceback", [])]}


def _line_of_error(cell: Any, count: int | None) -> int | None:
    """The innermost line of this cell in the traceback of its error; `count` is its execution count."""
    places = _CELL_LINE.findall("\n".join(_error_of(cell)["traceback"]))
    return next((int(line) for number, line in reversed(places) if int(number) == count), None)


# -- many pages ------------------------------------------------------------------------------------


def run_pages(paths: Sequence[str], *, update: bool = False, timeout: float) -> int:
    """Run every page in `paths`; returns 0 if none failed, otherwise 1.

    Raises PageError, with a one-line message, if a path is missing or unsuitable, or if there is no page or no ipykernel.
    """
    pages = find(paths)
    if not pages:
        raise PageError(f"no .ipynb in {', '.join(map(str, paths))}")
    if find_spec("ipykernel") is None:
        raise PageError("running pages needs a kernel: pip install ipykernel")
    start = time.monotonic()
    results: list[Result] = []
    for page in pages:
        results.append(run_page(page, update=update, timeout=timeout))
        print(_line(results[-1]), flush=True)
    for problem in (problem for result in results for problem in result.problems):
        print(f"\n{problem}")
    print(f"\n{_counts(results, update)} in {time.monotonic() - start:.1f} s")
    return 0 if all(r.ok for r in results) else 1


def _counts(results: list[Result], update: bool) -> str:
    """`1 failed, 3 passed, 1 skipped`; with `--update` also how many pages were updated."""
    failed, skipped = sum(not r.ok for r in results), sum(r.skipped is not None for r in results)
    counts = [(failed, "failed", failed > 0), (len(results) - failed - skipped, "passed", True)]
    counts += [(skipped, "skipped", skipped > 0), (sum(r.updated for r in results), "updated", update)]
    return ", ".join(f"{number} {word}" for number, word, shown in counts if shown)


def _line(result: Result) -> str:
    if result.skipped:
        return f"{'skipped':8}{result.path}  ({result.skipped})"
    text = f"{'ok' if result.ok else 'FAILED':8}{result.path}  {result.cells} cells, {result.seconds:.1f} s"
    text += ", updated" * result.updated
    return "\n".join([text, *(f"        note: {note}" for note in result.notes)])
