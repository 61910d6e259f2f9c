"""`make demo`: execute the tour in a real kernel, print what it found, and say where the files are.

python -m tools.demo examples/tour.ipynb build/demo
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import nbformat

from dynascope.compiler.report import Report
from tools.kept import run_and_keep


def main(arguments: list[str]) -> int:
    """0 where the tour ran as it should."""
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
        telling = max(found, key=lambda count: len(found[count].frames))
        page = shutil.copy2(reports[telling].with_suffix(".html"), out / "report.html")
        text = reports[telling].with_suffix(".txt").read_text(encoding="utf-8").rstrip()
        print(f"\nThe report of In [{telling}], as a terminal shows it:\n\n{text}\n")
        print(f"stand-alone report, clickable offline:  {page}")
        print(f"the others, one for each cell:          {out / 'reports'}")
    print(f"the executed notebook:                  {executed}")
    print(f"\n{result.cells} cells in {result.seconds:.0f} s" + ("" if result.ok else "; the tour did not run as it should"))
    return 0 if result.ok and reports else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
