"""Converts a RanksReport to JSON-ready data and back, with validation; the Reports in it convert themselves."""

from __future__ import annotations

import dataclasses
import json
import re
from typing import Any, TypeVar

from dynascope.compiler.report import Report

#: RanksReport, which cannot be imported here: its methods call these functions
AnyRanksReport = TypeVar("AnyRanksReport", bound=Any)


def to_dict(report: Any) -> dict[str, Any]:
    """The report as JSON-ready data."""
    groups = report.groups
    bare = dataclasses.replace(report, groups=[dataclasses.replace(g, report=None) for g in groups])
    data = dataclasses.asdict(bare)
    for group, group_data in zip(groups, data["groups"], strict=True):
        group_data["report"] = group.report.to_dict() if group.report is not None else None
    return data


def from_dict(cls: type[AnyRanksReport], data: dict[str, Any]) -> AnyRanksReport:
    """Load a report from the data that `to_dict` returned; raises ValueError for other data, or another schema."""
    if not isinstance(data, dict) or "ranks_schema" not in data:
        raise ValueError("not a dynascope report of ranks: no 'ranks_schema' in it")
    schema = data["ranks_schema"]
    if schema != 1 or isinstance(schema, bool):
        update = ": update dynascope" if type(schema) is int and schema > 1 else ""
        raise ValueError(f"report of ranks of schema {schema!r}; this dynascope reads schema 1{update}")
    import msgspec  # on first use: `import dynascope` stays light

    groups = data.get("groups", [])
    reports = [g.get("report") if isinstance(g, dict) else None for g in groups] if isinstance(groups, list) else []
    bare = {
        **data,
        "groups": [{**g, "report": None} if isinstance(g, dict) else g for g in groups] if isinstance(groups, list) else groups,
    }
    try:
        report: Any = msgspec.convert(bare, cls)
    except msgspec.ValidationError as error:
        raise ValueError(f"not a dynascope report of ranks: {error}") from None
    for group, group_report in zip(report.groups, reports, strict=True):
        group.report = Report.from_dict(group_report) if group_report is not None else None
    for rank in report.ranks:
        if rank.group is not None and not 0 <= rank.group < len(report.groups):
            raise ValueError(f"not a dynascope report of ranks: rank {rank.rank} is in group {rank.group}, which is missing")
    return report  # type: ignore[no-any-return]


def json_schema(cls: type[Any]) -> dict[str, Any]:
    """The JSON Schema of what `to_dict` returns; for groups' reports it refers to `report.schema.json` in the same folder."""
    import msgspec

    schema = msgspec.json.schema(cls)
    parts = schema.pop("$defs")
    parts["RankGroup"]["properties"]["report"] = {"anyOf": [{"type": "null"}, {"$ref": "report.schema.json"}]}
    parts[cls.__name__]["properties"]["ranks_schema"] = {"const": 1}
    parts[cls.__name__]["required"] = ["ranks_schema"]
    used, waiting = dict.fromkeys([cls.__name__]), [cls.__name__]
    while waiting:
        names = re.findall(r'"#/\$defs/(\w+)"', json.dumps(parts[waiting.pop()]))
        waiting += [name for name in names if name not in used]
        used |= dict.fromkeys(names)
    dialect = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": dialect, **schema, "$defs": {name: parts[name] for name in sorted(used)}}
