"""The outline of a report: its counts and, for each graph break, its type, line and outcome.

A cell's output has the outline next to the picture of the report (mime type `MIME`); docs tests compare it.
"""

from __future__ import annotations

from typing import Any

MIME = "application/vnd.dynascope.report+json"


def outline(report: dict[str, Any]) -> dict[str, Any]:
    """The outline of a report's data (`Report.to_dict`)."""
    summary = {k: v for k, v in report.get("summary", {}).items() if isinstance(v, int)}
    breaks = [{name: b.get(name) for name in ("type", "line", "outcome")} for b in report.get("breaks", [])]
    torch = str((report.get("versions") or {}).get("torch") or "").partition("+")[0]
    return {"summary": summary, "breaks": breaks, **({"torch": torch} if torch else {})}
