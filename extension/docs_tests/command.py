"""`dynascope test`: running pages one after another or several at once, with progress and a summary."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from dynascope.docs_tests.runner import PageError, Result, find, run_page

WIDTH = 24


class Progress:
    """A progress bar on a terminal; elsewhere each finished page just prints its line."""

    def __init__(self, pages: int) -> None:
        self.pages = pages
        self.done = 0
        self.live = sys.stderr.isatty()
        self.lock = threading.Lock()

    def cell(self, path: Path, done: int, cells: int) -> None:
        """A page is about to run its next cell."""
        with self.lock:
            if self.live:
                filled = round(WIDTH * (self.done + done / max(cells, 1)) / self.pages)
                bar = "#" * filled + "." * (WIDTH - filled)
                sys.stderr.write(f"\r\x1b[K[{bar}] {self.done}/{self.pages} {path.name}: cell {done + 1} of {cells}")
                sys.stderr.flush()

    def page(self, line: str) -> None:
        """A page is finished."""
        with self.lock:
            self.done += 1
            if self.live:
                sys.stderr.write("\r\x1b[K")
                sys.stderr.flush()
            print(line, flush=True)


def run_pages(paths: Sequence[str], *, update: bool = False, timeout: float, parallel: int = 1) -> int:
    """Run every page in `paths`; returns 0 if all passed, 1 if one failed.  Raises PageError, in one line, without pages."""
    pages = find(paths)
    if not pages:
        raise PageError(f"no .ipynb and no MyST page in {', '.join(map(str, paths))}")
    start = time.monotonic()
    progress = Progress(len(pages))

    def one(page: Path) -> Result:
        return run_page(page, update=update, timeout=timeout, on_cell=lambda done, cells: progress.cell(page, done, cells))

    results: dict[Path, Result] = {}
    if parallel <= 1:
        for page in pages:
            results[page] = one(page)
            progress.page(_line(results[page]))
    else:
        with ThreadPoolExecutor(parallel) as pool:
            waiting = {pool.submit(one, page): page for page in pages}
            try:
                for future in as_completed(waiting):
                    results[waiting[future]] = future.result()
                    progress.page(_line(future.result()))
            except KeyboardInterrupt:
                pool.shutdown(wait=False, cancel_futures=True)
                from dynascope.docs_tests.kernel import kill_all

                kill_all()
                raise
    for page in pages:
        for problem in results[page].problems:
            print(f"\n{problem}")
    print(f"\n{_counts(list(results.values()), update)} in {time.monotonic() - start:.1f} s")
    return 0 if all(r.ok for r in results.values()) else 1


def _counts(results: list[Result], update: bool) -> str:
    """`1 failed, 3 passed, 1 skipped`, and with `--update` how many were updated."""
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
