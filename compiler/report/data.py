"""`Part`, the base of all parts of reports, and how reports become JSON-ready data and come back, validated.

Unknown keys are ignored, so that reports of later versions with additional keys can be loaded.  Another schema is refused.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec


class Part(msgspec.Struct, kw_only=True, rename={"break_": "break"}):
    """Plain data."""


class SparsePart(Part, kw_only=True, omit_defaults=True):
    """A part of which a report may have thousands: fields that have their default value are left out of the data."""


AnyReport = TypeVar("AnyReport", bound=Part)


def load(cls: type[AnyReport], data: Any, what: str, key: str, version: int) -> AnyReport:
    """The report in this data; `what`: its name in errors; `key`, `version`: the field with the schema that it must have.

    Raises ValueError, with a one-line message that says where the error is.
    """
    if not isinstance(data, dict) or key not in data:
        raise ValueError(f"not a dynascope {what}: no {key!r} in it")
    schema = data[key]
    if schema != version or isinstance(schema, bool):
        update = ": update dynascope" if type(schema) is int and schema > version else ""
        raise ValueError(f"{what} of schema {schema!r}; this dynascope reads schema {version}{update}")
    try:
        return msgspec.convert(data, cls)
    except msgspec.ValidationError as error:
        raise ValueError(f"not a dynascope {what}: {error}") from None


def json_schema(cls: type[Part], key: str, version: int) -> dict[str, Any]:
    """The JSON Schema of the data of a report."""
    schema = msgspec.json.schema(cls)
    top = schema["$defs"][cls.__name__]
    top["properties"][key], top["required"] = {"const": version}, [key]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
