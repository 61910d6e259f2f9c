"""Execute a page and keep the report of each cell, as files, without touching the page.

Code that runs unseen in the page's kernel saves `dynascope.last()` after every cell that made a new one.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from dynascope.docs_tests.runner import Result, run_page

BEFORE = """
def _keep_reports(place):
    import pathlib, sys
    seen = []
    def keep(result):
        try:
            report = sys.modules["dynascope"].last()
        except LookupError:  # not loaded yet, or nothing compiled yet
            return
        if any(report is s for s in seen):
            return
        seen.append(report)
        for suffix in (".html", ".txt", ".json"):
            report.save(pathlib.Path(place) / f"{result.execution_count:02d}{suffix}")
    get_ipython().events.register("post_run_cell", keep)
_keep_reports(%r)
del _keep_reports
"""


def run_and_keep(page: Path, place: Path) -> tuple[Result, dict[int, Path]]:
    """The result, and by execution count the stem of the files of each report (.html, .txt, .json)."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    # whether it is as it was stored is what the tests look at; another torch or backend may differ
    result = run_page(page, compare_stored=False, before=BEFORE % str(place.resolve()))
    return result, {int(p.stem): p.with_suffix("") for p in sorted(place.glob("*.html"))}
