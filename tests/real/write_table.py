"""Writes examples/reference/real_models.md from what the last run of `test_real_models` left in build/real_models."""

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


def main() -> None:
    found: dict[str, dict[str, Any]] = {}
    files = (ROOT / "build" / "real_models").glob("rows_*.json")
    for file in sorted(files, key=lambda f: int(f.stem.partition("_")[2])):
        found.update(json.loads(file.read_text(encoding="utf-8")))
    shown = {name: row for name, row in found.items() if not row["absent"]}
    agree = sum(not row["differences"] for row in shown.values())
    page = PAGE.format(
        date=datetime.date.today().isoformat(), python=platform.python_version(),
        packages=", ".join(filter(None, map(version, PACKAGES))), count=f"{agree} of {len(shown)} models agree.",
        rows="\n".join(line(name, row) for name, row in shown.items()),
    )  # fmt: skip
    (ROOT / "examples" / "reference" / "real_models.md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
