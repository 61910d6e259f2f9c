"""A Report as JSON-ready data and back, validated; and the JSON Schema of that data.

Promises: data that is no report gives one ValueError of one line that names the place; unknown keys are passed over, so
additions of later versions load, too; reports of schema 1 are upgraded.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Any, TypeVar

from dynascope.compiler.report.data import SCHEMA, ReportData
from dynascope.compiler.report.upgrade import from_schema_1

AnyReport = TypeVar("AnyReport", bound=ReportData)

#: a keyword in Python, the plain word in the data
_FIELD, _KEY = "break_", "break"
#: parts that most reports do not have: left out of the data where they are None
_OPTIONAL = ("profile", "inputs", "check", "fixes", "fix_set")
_TYPES = {
    "array": "a list", "object": "an object", "str": "a string", "int": "an integer", "float": "a number",
    "bool": "true or false", "null": "null",
}  # fmt: skip
_MESSAGE = re.compile(r"^(?P<what>.*?)(?: - at `\$\.?(?P<path>.*)`)?$", re.S)
_EXPECTED = re.compile(r"^Expected `(?P<expected>.*)`, got `(?P<got>.*)`$")


def to_dict(report: ReportData) -> dict[str, Any]:
    """The report as JSON-ready data, `previous` and `loaded` left out."""
    data: dict[str, Any] = _plain(report)
    for owner, part in [*((data, name) for name in _OPTIONAL), *((graph, "run") for graph in data["graphs"])]:
        if owner[part] is None:
            del owner[part]
    return data


def from_dict(cls: type[AnyReport], data: dict[str, Any]) -> AnyReport:
    """Load a report from the data that `to_dict` returned; raises ValueError if it is not a report or has a newer schema."""
    if not isinstance(data, dict) or "schema" not in data:
        raise ValueError("not a dynascope report: no 'schema' in it")
    import msgspec  # on first use: `import dynascope` stays light

    schema, beside = data["schema"], _beside(cls)
    if schema not in (1, SCHEMA) or isinstance(schema, bool):
        raise ValueError(f"report of schema {schema!r}; this dynascope reads schema {SCHEMA} and older: update dynascope")
    try:
        own = {k: v if k == "settings" else _renamed(v) for k, v in data.items() if k not in beside}
        return msgspec.convert(from_schema_1(own) if schema == 1 else own, cls)
    except msgspec.ValidationError as error:
        raise ValueError(f"not a dynascope report: {_readable(str(error))}") from None
    except RecursionError:
        raise ValueError("not a dynascope report: it is nested too deeply") from None


def json_schema(cls: type[ReportData]) -> dict[str, Any]:
    """The JSON Schema of what `to_dict` returns for a report of this class."""
    import msgspec

    schema = msgspec.json.schema(cls)
    for part in schema["$defs"].values():
        properties = {_KEY if k == _FIELD else k: v for k, v in part.get("properties", {}).items()}
        part["properties"] = {k: v for k, v in properties.items() if k not in _beside(cls)}
        if "required" in part:
            part["required"] = [_KEY if k == _FIELD else k for k in part["required"]]
    schema["$defs"][cls.__name__]["properties"]["schema"] = {"const": SCHEMA}
    schema["$defs"][cls.__name__]["required"] = ["schema"]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [f.name for f in dataclasses.fields(value) if not f.metadata.get("beside")]
        return {_KEY if name == _FIELD else name: _plain(getattr(value, name)) for name in fields}
    if isinstance(value, list):
        return [_plain(v) for v in value]
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    return value


def _renamed(value: Any) -> Any:
    """A copy of the data with JSON keys replaced by field names."""
    if isinstance(value, dict):
        return {_FIELD if k == _KEY else k: _renamed(v) for k, v in value.items()}
    return [_renamed(v) for v in value] if isinstance(value, list) else value


def _beside(cls: type) -> set[str]:
    """Names of the fields that are not part of the data."""
    return {f.name for f in dataclasses.fields(cls) if f.metadata.get("beside")}


def _readable(message: str) -> str:
    """msgspec's message with the path first, in words: `frames[0].line: expected an integer, got a string`."""
    match = _MESSAGE.match(message)
    what, path = (match["what"], match["path"]) if match else (message, None)
    types = _EXPECTED.match(what)
    if types:
        expected = " or ".join(_TYPES.get(name, name) for name in types["expected"].split(" | "))
        what = f"expected {expected}, got {_TYPES.get(types['got'], types['got'])}"
    what = (what[:1].lower() + what[1:]).replace("`", "'").replace(_FIELD, _KEY)
    return f"{path.replace(_FIELD, _KEY)}: {what}" if path else what
