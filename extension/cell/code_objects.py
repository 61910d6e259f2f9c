"""Code objects inside code objects: finding them, and changing their constants."""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType
from typing import Any

from dynascope.compiler.source.code import nested_code


def nested_codes(code: CodeType) -> list[CodeType]:
    """The code objects inside this one, at any depth."""
    _, *inner = nested_code(code)
    return inner


def code_key(code: CodeType) -> tuple[str, int]:
    """Name and first line: what identifies a definition within a file, however often the file is compiled."""
    return code.co_name, code.co_firstlineno


def map_constants(code: CodeType, change: Callable[[Any], Any]) -> CodeType:
    """The code with `change` applied to every constant at any depth, to a code object after its own constants.

    The very same object is returned where nothing changes.
    """
    constants = tuple(change(map_constants(c, change) if isinstance(c, CodeType) else c) for c in code.co_consts)
    if all(new is old for new, old in zip(constants, code.co_consts, strict=True)):
        return code
    return code.replace(co_consts=constants)
