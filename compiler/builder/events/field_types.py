"""The JSON types of the values that are read from a record, as torch 2.3 to 2.15 writes them.

A value of another type would cause an error later, or be displayed as if torch had reported it.  So it is removed, and is then
unknown.  Some values that are only read as text, with `str`, are not listed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

_Test = Callable[[Any], bool]
#: no number that torch counts or measures is larger
_MOST = 1 << 62


def _integer(value: Any) -> bool:
    return type(value) is int and abs(value) < _MOST


def _number(value: Any) -> bool:
    return _integer(value) or (type(value) is float and math.isfinite(value) and abs(value) < _MOST)


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


def _stack(value: Any) -> bool:
    return isinstance(value, list) and all(map(_stack_entry, value))


def _stack_entry(value: Any) -> bool:
    """Whether this is an entry of a stack: a line, a function's name, and a file's name or its id in the table of strings."""
    if not isinstance(value, dict):
        return False
    file = value.get("filename")
    return _integer(value.get("line")) and _text(value.get("name")) and (_text(file) or _integer(file))


def _object(value: Any) -> bool:
    return isinstance(value, dict)


#: fields that a record of any kind may have
_HEADER: dict[str, _Test] = {
    "rank": _integer, "frame_id": _integer, "frame_compile_id": _integer, "compiled_autograd_id": _integer,
    "attempt": _integer, "has_payload": _text, "stack": _stack,
}  # fmt: skip
_IDS = ("frame_id", "frame_compile_id", "compiled_autograd_id")
_METRICS: dict[str, _Test] = {
    "co_name": _text, "co_filename": _text, "co_firstlineno": _integer, "compile_id": _text, "cudagraph_skip_reason": _text,
    "fail_type": _text, "fail_reason": _text, "fail_user_frame_filename": _text, "fail_user_frame_lineno": _integer,
    "guard_count": _integer, "is_forward": _flag, "cache_size": _integer,
    "dynamo_config": _text, "entire_frame_compile_time_s": _number,
    "backend_compile_time_s": _number, "inductor_compile_time_s": _number, "code_gen_time_s": _number,
    "dynamo_cumulative_compile_time_us": _number, "aot_autograd_cumulative_compile_time_us": _number,
    "inductor_cumulative_compile_time_us": _number, "triton_compile_time_us": _number,
}  # fmt: skip
#: fields of a record's own content; those of metrics may be null
_FIELDS: dict[str, dict[str, _Test]] = {
    "dynamo_start": {"stack": _stack},
    "artifact": {"name": _text},
    "create_symbol": {
        "symbol": _text,
        "val": _text,
        "vr": _text,
        "source": _text,
        "stack": _stack,
        "user_stack": _stack,
    },
    "create_unbacked_symbol": {"symbol": _text, "vr": _text, "stack": _stack, "user_stack": _stack},
    "guard_added_fast": {"expr": _text, "stack": _stack, "user_stack": _stack},
    "symbolic_shape_specialization": {
        "symbol": _text,
        "value": _text,
        "reason": _text,
        "stack": _stack,
        "user_stack": lambda v: v is None or _stack(v),
    },
    "optimize_ddp_split_child": {"name": _text},
    "graph_dump": {"name": _text},
    "compilation_metrics": _METRICS,
    "bwd_compilation_metrics": _METRICS,
}
#: kind of record -> the field without which such a record says nothing
_NEEDED = {
    "dynamo_start": "stack",
    "artifact": "name",
    "create_symbol": "symbol",
    "create_unbacked_symbol": "symbol",
    "guard_added_fast": "expr",
    "symbolic_shape_specialization": "symbol",
    "optimize_ddp_split_child": "name",
}


def remove_wrong_types(name: str, metadata: dict[str, Any]) -> Iterator[str]:
    """Remove the fields of a wrong type from a record; yields a description of each problem.

    The whole content is removed if it is not an object, if a required field is missing, or if the compile id is damaged.  The
    content of `str`, a list, is checked by the log reader.
    """
    for field in [f for f in _IDS if metadata.get(f, 0) is None]:
        del metadata[field]  # torch before 2.6 writes null for an id that does not exist
    for field, fits in _HEADER.items():
        if field in metadata and not fits(metadata[field]):
            del metadata[field]
            yield field
            if field in _IDS:
                metadata.pop(name, None)
    if ("frame_id" in metadata) != ("frame_compile_id" in metadata) and metadata.pop(name, None) is not None:
        yield "compile id"
    tests = _FIELDS.get(name)
    if name not in metadata or name == "str":
        return
    fields = metadata[name]
    if not _object(fields):
        del metadata[name]
        yield name
        return
    for field, fits in (tests or {}).items():
        if field in fields and not fits(fields[field]) and not (fields[field] is None and tests is _METRICS):
            del fields[field]
            yield f"{name}.{field}"
    if name in _NEEDED and _NEEDED[name] not in fields:
        del metadata[name]
        yield f"{name} without {_NEEDED[name]}"
