"""Writes what the last run of these tests left in `build` into examples/reference: real_models.md, and a table in check.md."""

from __future__ import annotations

import datetime
import json
import platform
import re
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("torch", "transformers", "torchvision", "timm", "ultralytics", "lightning")
PAGE = """\
# Real models against torch's own log

`make test-real` compiles small models with random weights, of packages from PyPI, twice: plain in one process, under
`TORCH_LOGS=graph_breaks,recompiles,graph_code`, and by `explain` in another. A reader that knows nothing of dynascope counts
graphs, places of graph breaks and recompiles in torch's log, and the report must say the same. Two things count differently:

- torch logs a recompile also where it then refuses it at the recompile limit. The report has a skipped frame there, with the
  reason, and no recompile (column *refused*).
- A break whose innermost line is in torch's own code (`polyfills`) is in the report at the line that leads there.

Last run: {date}, Python {python}, {packages}. {count}

| model | graphs | graph breaks | recompiles | refused | |
| --- | --- | --- | --- | --- | --- |
{rows}
"""

CHECKS = """\
{begin}

| model | autocast | verdict | result: eager | compiled | gradients: eager | compiled |
| --- | --- | --- | --- | --- | --- | --- |
{rows}

Last run: {date}, {packages}.

{end}"""
BEGIN, END = "<!-- real models: make test-real -->", "<!-- end of real models -->"
REFERENCE = ROOT / "examples" / "reference"


def version(package: str) -> str | None:
    try:
        return f"{package} {metadata.version(package)}"
    except metadata.PackageNotFoundError:
        return None


def line(name: str, row: dict[str, Any]) -> str:
    counts = [str(row.get(column, "")) for column in ("graphs", "breaks", "recompiles", "refused")]
    remark = "; ".join(row["differences"]) or (f"raises the same error in both: {row['error']}" if row["error"] else "")
    remark = re.sub(r"/\S*?site-packages/", "", remark).replace("|", "\\|")
    return "| " + " | ".join([name, *counts, remark[:200]]) + " |"


def write_checks() -> None:
    """Write the table of verdicts into check.md."""
    files = sorted((ROOT / "build" / "real_numbers").glob("*.json"))
    found = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    if not found:
        return
    rows = []
    for row in found:
        errors = [f"{row[who][i]:.1e}" for i in range(2) for who in ("eager", "compiled")]
        rows.append("| " + " | ".join([row["model"], row["precision"], row["verdict"], *errors]) + " |")
    table = CHECKS.format(
        begin=BEGIN, rows="\n".join(rows), date=datetime.date.today().isoformat(),
        packages=", ".join(filter(None, map(version, PACKAGES[:2]))), end=END,
    )  # fmt: skip
    page = REFERENCE / "check.md"
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    page.write_text(before + table + rest.partition(END)[2], encoding="utf-8")


def write_models() -> None:
    """Write real_models.md."""
    found: dict[str, dict[str, Any]] = {}
    files = (ROOT / "build" / "real_models").glob("rows_*.json")
    for file in sorted(files, key=lambda f: int(f.stem.partition("_")[2])):
        found.update(json.loads(file.read_text(encoding="utf-8")))
    if not found:
        return
    shown = {name: row for name, row in found.items() if not row["absent"]}
    agree = sum(not row["differences"] for row in shown.values())
    page = PAGE.format(
        date=datetime.date.today().isoformat(), python=platform.python_version(),
        packages=", ".join(filter(None, map(version, PACKAGES))), count=f"{agree} of {len(shown)} models agree.",
        rows="\n".join(line(name, row) for name, row in shown.items()),
    )  # fmt: skip
    (REFERENCE / "real_models.md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    write_models()
    write_checks()
