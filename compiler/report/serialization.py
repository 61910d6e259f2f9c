"""Converts a Report to JSON-ready data and back, with validation, and makes the JSON Schema of the data.

Data that is not a report raises a ValueError with a one-line message.  Unknown keys are ignored, so that reports of later
versions with additional keys can be loaded.  Another schema is refused.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from dynascope.compiler.report.guards import GuardSite, Symbol
from dynascope.compiler.report.measurements import AutotuneChoice, CacheLookup, CompilePhase, PhaseTotal, RepeatedBlock
from dynascope.compiler.report.schema import SCHEMA, ReportData

#: name of a field, and its key in the data: `break` is a keyword in Python
_FIELD, _KEY = "break_", "break"
#: parts that a report may lack; they are left out of the data if they are None
_OPTIONAL = ("compile_time", "profile", "inputs", "check", "fixes", "fix_set")
#: parts of which a report may have thousands; fields of these parts that have the default value are left out of the data
_SPARSE = (GuardSite, Symbol, CompilePhase, PhaseTotal, CacheLookup, AutotuneChoice, RepeatedBlock)


def to_dict(report: ReportData) -> dict[str, Any]:
    """The report as JSON-ready data."""
    data: dict[str, Any] = _plain(report)
    of_graphs, of_breaks = ((graph, "run") for graph in data["graphs"]), ((broken, "undecided") for broken in data["breaks"])
    for owner, part in [*((data, name) for name in _OPTIONAL), *of_graphs, *of_breaks]:
        if owner[part] is None:
            del owner[part]
    listed = [*((graph, "kernels") for graph in data["graphs"]), (data.get("compile_time"), "autotuning")]
    for owner, part in listed:
        if owner is not None and not owner[part]:
            del owner[part]
    return data


def from_dict(data: dict[str, Any]) -> ReportData:
    """The report from the data that `to_dict` returned; raises ValueError if it is not a report or has another schema."""
    if not isinstance(data, dict) or "schema" not in data:
        raise ValueError("not a dynascope report: no 'schema' in it")
    import msgspec  # on first use: `import dynascope` stays light

    schema = data["schema"]
    if schema != SCHEMA:
        update = ": update dynascope" if type(schema) is int and schema > SCHEMA else ""
        raise ValueError(f"report of schema {schema!r}; this dynascope reads schema {SCHEMA}{update}")
    try:
        return msgspec.convert({k: v if k == "settings" else _renamed(v) for k, v in data.items()}, ReportData)
    except msgspec.ValidationError as error:
        raise ValueError(f"not a dynascope report: {str(error).replace(_FIELD, _KEY)}") from None
    except RecursionError:
        raise ValueError("not a dynascope report: it is nested too deeply") from None


def json_schema() -> dict[str, Any]:
    """The JSON Schema of what `to_dict` returns."""
    import msgspec

    schema = msgspec.json.schema(ReportData)
    for part in schema["$defs"].values():
        part["properties"] = {_KEY if k == _FIELD else k: v for k, v in part.get("properties", {}).items()}
        if "required" in part:
            part["required"] = [_KEY if k == _FIELD else k for k in part["required"]]
    schema["$defs"]["ReportData"]["properties"]["schema"] = {"const": SCHEMA}
    schema["$defs"]["ReportData"]["required"] = ["schema"]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _plain(value: Any, sparse: bool = False) -> Any:
    """The value as JSON-ready data; `sparse`: leave out the fields that have the default value."""
    if dataclasses.is_dataclass(value):
        sparse = sparse or isinstance(value, _SPARSE)
        fields = dataclasses.fields(ReportData if isinstance(value, ReportData) else value)
        given = ((f, getattr(value, f.name)) for f in fields)
        kept = ((f.name, v) for f, v in given if not (sparse and (v == f.default or v == [])))
        return {_KEY if name == _FIELD else name: _plain(v, sparse) for name, v in kept}
    if isinstance(value, list):
        return [_plain(v, sparse) for v in value]
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    return value


def _renamed(value: Any) -> Any:
    """A copy of the data with JSON keys replaced by field names."""
    if isinstance(value, dict):
        return {_FIELD if k == _KEY else k: _renamed(v) for k, v in value.items()}
    return [_renamed(v) for v in value] if isinstance(value, list) else value
