"""Runs the pages of `dynascope test`, one after another or several at once, and prints their results."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.util import find_spec

from dynascope.docs_tests import kernel
from dynascope.docs_tests.pages import PageError, find
from dynascope.docs_tests.runner import Result, run_page


def run_pages(paths: Sequence[str], *, update: bool = False, timeout: float, parallel: int = 1) -> int:
    """Run every page in `paths`; returns 0 if none failed, otherwise 1.

    Raises PageError, with a one-line message, if a path is missing or unsuitable, or if there is no page or no ipykernel.
    """
    pages = find(paths)
    if not pages:
        raise PageError(f"no .ipynb and no MyST page in {', '.join(map(str, paths))}")
    if find_spec("ipykernel") is None:
        raise PageError("running pages needs a kernel: pip install ipykernel")
    start = time.monotonic()
    results: list[Result] = []
    with ThreadPoolExecutor(max(parallel, 1)) as pool:
        try:
            for result in pool.map(partial(run_page, update=update, timeout=timeout), pages):
                print(_line(result), flush=True)
                results.append(result)
        except KeyboardInterrupt:
            kernel.interrupted.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    for result in results:
        for problem in result.problems:
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
    word = "skipped" if result.skipped else "ok" if result.ok else "FAILED"
    text = f"{word:8}{result.path}"
    if result.skipped:
        return f"{text}  ({result.skipped})"
    text += f"  {result.cells} cells, {result.seconds:.1f} s"
    if result.updated:
        text += ", updated"
    return "\n".join([text, *(f"        note: {note}" for note in result.notes)])
