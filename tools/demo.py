"""`make demo`: execute the tour in a real kernel, print its reports (only the largest in full) and where the files are.

python -m tools.demo examples/tour.ipynb build/demo
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import nbformat

from dynascope.compiler.patching import patched
from dynascope.compiler.report import Report
from dynascope.docs_tests.runner import Result, run_page

#: code that runs in the kernel before the first cell: it saves each new report after the cell that made it
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


def run_and_keep(page: Path, folder: Path) -> tuple[Result, dict[int, Path]]:
    """Execute a page without touching it, and save the last report of each cell as .html, .txt and .json.

    Returns the result, and the path of each report without a suffix, by execution count.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    # the tests compare outputs with the stored ones; here they may differ, because torch or the backend may be another one
    startup = folder.resolve() / "keep_reports.py"
    startup.write_text(BEFORE % str(folder.resolve()), encoding="utf-8")
    with patched(os.environ, {"PYTHONSTARTUP": str(startup)}):
        result = run_page(page, compare_stored=False)
    return result, {int(p.stem): p.with_suffix("") for p in sorted(folder.glob("*.html"))}


def main(arguments: list[str]) -> int:
    """Run the demo; returns 0 if the tour ran as it should and made a report."""
    tour, out = Path(arguments[0]), Path(arguments[1])
    if not tour.exists():
        print(f"demo: there is no {tour}")
        return 1
    backend = os.environ.get("DYNASCOPE_BACKEND")
    print(f"Running {tour} in a Jupyter kernel" + (f", with the backend {backend}" if backend else "") + " ...\n", flush=True)
    result, reports = run_and_keep(tour, out / "reports")
    for problem in result.problems:
        print(f"{problem}\n")
    found = {}
    for count, stem in reports.items():
        found[count] = report = Report.from_dict(json.loads(stem.with_suffix(".json").read_text(encoding="utf-8")))
        print(f"  In [{count}]  {report.headline()}")
    executed = out / tour.name
    if result.notebook is not None:
        nbformat.write(result.notebook, executed)  # type: ignore[no-untyped-call, unused-ignore]
    if found:
        largest = max(found, key=lambda count: len(found[count].frames))
        page = shutil.copy2(reports[largest].with_suffix(".html"), out / "report.html")
        text = reports[largest].with_suffix(".txt").read_text(encoding="utf-8").rstrip()
        print(f"\nThe report of In [{largest}], as a terminal shows it:\n\n{text}\n")
        print(f"stand-alone report, clickable offline:  {page}")
        print(f"the others, one for each cell:          {out / 'reports'}")
    if result.notebook is not None:
        print(f"the executed notebook:                  {executed}")
    print(f"\n{result.cells} cells in {result.seconds:.0f} s" + ("" if result.ok else "; the tour did not run as it should"))
    return 0 if result.ok and reports else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
