"""The outline of a report: the counts, the versions of torch and Python, and the type, line and outcome of each graph break.

The output of a cell contains the outline, under the mime type `MIME`, for docs tests to compare; nothing displays it.
"""

from __future__ import annotations

from typing import Any

MIME = "application/vnd.dynascope.report+json"


def outline(report: dict[str, Any]) -> dict[str, Any]:
    """The outline of a report's data (`Report.to_dict`)."""
    summary = {k: v for k, v in report.get("summary", {}).items() if isinstance(v, int)}
    breaks = [{name: b.get(name) for name in ("type", "line", "outcome")} for b in report.get("breaks", [])]
    versions = {name: str((report.get("versions") or {}).get(name) or "").partition("+")[0] for name in ("torch", "python")}
    return {"summary": summary, "breaks": breaks, **{name: version for name, version in versions.items() if version}}
