"""Code objects: names that users see, nested code, constants and lines."""

from __future__ import annotations

import ast
import dis
import re
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

#: name of the function that holds a cell's statements
STATEMENTS = "__cell__"
#: `co_name` of the code that a function named by `-f` has during the run: it calls the compiled function, and no stack shows it
JUMP = "<jump to {}>"
#: the builtin that code with regions calls
REGION = "__dynascope_region__"

#: matches the instructions that read or bind a global, or a name of a module or class
_GLOBAL = re.compile(r"(LOAD|STORE|DELETE)_(NAME|GLOBAL)|LOAD_FROM_DICT_OR_GLOBALS")
_RESUME = re.compile(r"^torch_dynamo_resume_in_(?P<name>.*)_at_(?P<line>\d+)$", re.S)


def user_name(code_name: str) -> str:
    """The name that users see for a code object; for a resume function, that of the function that it continues."""
    while (match := _RESUME.match(code_name)) is not None:
        code_name = match["name"]
    return "the cell's statements" if code_name == STATEMENTS else code_name


def is_jump(code_name: str) -> bool:
    """Whether this is the code that a function named by `-f` has during the run."""
    return code_name.startswith(JUMP.partition("{")[0])


def is_resume(code_name: str) -> bool:
    """Whether Dynamo made this code object to continue a function after a break."""
    return _RESUME.match(code_name) is not None


def compiled_name(name: str, code_name: str) -> str:
    """What is compiled under this code name, in words: a function with this name, or a resume function of it.

    A cell's statements are one: each run of a cell compiles them.
    """
    return f"resume in {name}" if is_resume(code_name) and user_name(code_name) != user_name(STATEMENTS) else name


def nested_code(code: CodeType) -> Iterator[CodeType]:
    """The code object and all code objects inside it, outer ones first."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from nested_code(constant)


def names_used(code: CodeType) -> set[str]:
    """Names of globals and attributes that this code, and the functions defined in it, may use."""
    return set(code.co_names).union(*(names_used(c) for c in code.co_consts if isinstance(c, CodeType)))


def globals_used(code: CodeType) -> set[str]:
    """Names of globals that this code, and the functions defined in it, may read or bind; an attribute's name is none."""
    instructions = (i for inner in nested_code(code) for i in dis.get_instructions(inner))
    return {i.argval for i in instructions if _GLOBAL.fullmatch(i.opname)}


def names_called(code: CodeType) -> set[str]:
    """Names of methods that this code, and the functions defined in it, call; calls with `*` or keywords may be missing."""
    instructions = (i for inner in nested_code(code) for i in dis.get_instructions(inner))
    return {i.argval for i in instructions if i.opname == "LOAD_METHOD" or (i.opname == "LOAD_ATTR" and "NULL" in i.argrepr)}


def code_key(code: CodeType) -> tuple[str, int]:
    """Name and first line, which identify a definition within its file, however often the file is compiled."""
    return code.co_name, code.co_firstlineno


def same_code(plain: CodeType, code: CodeType) -> bool:
    """Whether two code objects have the same instructions, names and constants, as have those from the same text.

    The second may have more constants: a run adds an unused one to what it retraces (`retrace`).
    """
    if (plain.co_code, plain.co_names, plain.co_varnames) != (code.co_code, code.co_names, code.co_varnames):
        return False
    more = len(code.co_consts) - len(plain.co_consts)
    return more >= 0 and all(
        same_code(a, b) if isinstance(a, CodeType) and isinstance(b, CodeType) else (type(a), a) == (type(b), b)
        for a, b in zip(plain.co_consts, code.co_consts, strict=False)
    )


def map_constants(code: CodeType, change: Callable[[Any], Any]) -> CodeType:
    """The code with `change` applied to its constants and to those of nested code objects, innermost first.

    Returns the same object if nothing changes.
    """
    constants = tuple(change(map_constants(c, change) if isinstance(c, CodeType) else c) for c in code.co_consts)
    if all(new is old for new, old in zip(constants, code.co_consts, strict=True)):
        return code
    return code.replace(co_consts=constants)


def last_line(code: CodeType) -> int:
    """The last line of any instruction in `code` or in a function defined in it."""
    lines = (line for inner in nested_code(code) for _, _, line in inner.co_lines())
    return max([code.co_firstlineno, *(line for line in lines if line is not None)])


def first_line(node: ast.stmt) -> int:
    """The first line of a statement; for a decorated function or class, the line of its first decorator."""
    lines: list[int] = [d.lineno for d in getattr(node, "decorator_list", ())]
    return min([node.lineno, *lines])
