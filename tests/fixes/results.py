"""What the search for fixes achieves on each program of the corpus and each program that recompiles, as JSON.

    python tests/fixes/results.py OUT.json [--only TEXT] [--bar BAR.json]

OUT.json: name -> [breaks before, breaks after, recompiles before, recompiles after, titles of the chosen fixes, [title,
verdict] of every change that was tried].  Programs that OUT.json has are not run again: an interrupted run goes on.

`--bar` compares with the results of other code: it lists the programs of which more breaks or recompiles remain, and exits with
1 if there are any.  Only public names of the product are used, so that this runs on any version of it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
sys.path[:0] = [str(FOLDER), str(FOLDER.parent)]

from corpus import FixProgram, all_programs  # noqa: E402
from harness import fixed  # noqa: E402
from recompile_programs import PROGRAMS  # noqa: E402

import dynascope  # noqa: E402

#: seconds: no search should end because of it, also on a slow machine
LIMIT = 1200
Result = list[Any]


def of_corpus(program: FixProgram) -> dynascope.Report:
    """Of a call of the program's `f`."""
    return fixed(program.text, program.call[0], seconds=LIMIT, gradients=program.gradients).report


def of_script(text: str) -> Any:
    """Of a script that compiles its functions itself."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "script.py").write_text(text)
        command = [sys.executable, "-m", "dynascope", "fix", "--fix-seconds", str(LIMIT), "-o", "report.json", "script.py"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr[-400:])
        return dynascope.load(Path(folder) / "report.json")


def result_of(report: dynascope.Report) -> Result:
    """The figures of a report."""
    found = report.fixes_to_apply(conditional=True)
    assert found is not None
    assert found.is_complete, found.notes
    tried = [fix for fix in report.fixes or () if fix.verdict != "untried"]
    counts = [found.before.breaks, found.after.breaks, found.before.recompiles, found.after.recompiles]
    return [*counts, [fix.title for fix in tried if fix.chosen], [[fix.title, fix.verdict] for fix in tried]]


def worse(found: dict[str, Result], bar: dict[str, Result]) -> list[str]:
    """The programs of which more remains than there."""
    return [
        f"{name}: {is_now[1]} breaks and {is_now[3]} recompiles remain instead of {was[1]} and {was[3]} ({', '.join(was[4])})"
        for name, was in bar.items()
        if (is_now := found.get(name)) is not None and (is_now[1] > was[1] or is_now[3] > was[3])
    ]


def main() -> int:
    """Run the programs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", default="", help="Run the programs whose name contains this.")
    parser.add_argument("--bar", type=Path, help="Results that must be reached.")
    chosen = parser.parse_args()
    found: dict[str, Result] = json.loads(chosen.out.read_text()) if chosen.out.exists() else {}
    runs: dict[str, Callable[[], Any]] = {f"corpus: {p.name}": partial(of_corpus, p) for p in all_programs() if not p.changes}
    runs |= {f"recompile: {name}": partial(of_script, program.text) for name, program in PROGRAMS.items()}
    warnings.simplefilter("ignore")
    failed = 0
    for name, run in runs.items():
        if name in found or chosen.only not in name:
            continue
        start = time.perf_counter()
        try:
            found[name] = result_of(run())
        except Exception as error:
            failed += 1
            print(f"{name}: {type(error).__name__}: {error}", flush=True)
            continue
        print(f"{name}: {time.perf_counter() - start:.1f} s {found[name][:4]} {found[name][4]}", flush=True)
        chosen.out.write_text("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in found.items()) + "\n}\n")
    lost = worse(found, json.loads(chosen.bar.read_text())) if chosen.bar else []
    print("\n".join(lost))
    return 1 if lost or failed else 0


if __name__ == "__main__":
    sys.exit(main())
