"""Statements that run inside a region, with every line and column number as it is.

`--region 9-12=allow` puts the statements of these lines into `with __dynascope_region__(False):`, in the syntax tree.
Dynamo honours the `with` where it traces it.  That name is a builtin while the cell runs (`installed`): nothing is put
into the user's namespace, and code that Dynamo traces cannot hold the object as a constant.

A statement belongs to the region if any line of its own does: its header, for one with blocks; all of it then goes in.
A function's header stands for its whole body.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import copy
from collections.abc import Callable, Iterator
from typing import Any

from dynascope.cell.source import DEFINITIONS, blocks
from dynascope.compiler.driver.regions import Region
from dynascope.compiler.driver.regions import region as torch_region
from dynascope.compiler.events.schema import Event, FrameEnd
from dynascope.compiler.patching import patched
from dynascope.compiler.report import FlagOrigin, RegionLines
from dynascope.compiler.source.code import STATEMENTS, first_line
from dynascope.compiler.torch_private import region_flag

#: what the statements of a function call; and what those of the cell itself call, which are not traced
TRACED, EAGER = "__dynascope_region__", "__dynascope_here__"

Functions = (ast.FunctionDef, ast.AsyncFunctionDef)


class Place:
    """One region and where it is: lines, or the body of one function (given by the lines of its definition)."""

    def __init__(self, region: Region, first: int, last: int, function: str | None = None) -> None:
        self.region = region
        self.first, self.last = first, last
        self.function = function
        #: lines at which a `with` was put: reports name the region by them
        self.lines: set[int] = set()

    def lines_of(self) -> RegionLines:
        """As a report has it."""
        return RegionLines(
            first=self.first, last=self.last, error_on_graph_break=self.region.flag, set_by=origin_of(self.region)
        )

    def covers(self, statement: ast.stmt) -> bool:
        start, end = own_lines(statement)
        return start <= self.last and self.first <= end


def origin_of(region: Region) -> FlagOrigin:
    """A `--region` option, as a report names it."""
    return FlagOrigin(kind="option", name=region.target)


def own_lines(statement: ast.stmt) -> tuple[int, int]:
    """First and last line of a statement's own: the header, for one with blocks."""
    end = statement.end_lineno or statement.lineno
    inner = statement.body if isinstance(statement, DEFINITIONS) else [s for block in blocks(statement) for s in block]
    if inner:
        end = min(end, max(statement.lineno, min(first_line(s) for s in inner) - 1))
    return statement.lineno, end


def rewritten(tree: Any, places: list[Place]) -> Any:
    """A copy of the tree with the statements of each place in its region, outer regions first."""
    made = copy.deepcopy(tree)
    for place in reversed(places):  # inner ones first, so that the outer `with` goes around theirs
        if hasattr(made, "body") and isinstance(made.body, list):
            made.body = _block(made.body, place, traced=False)
    return made


def _block(statements: list[ast.stmt], place: Place, traced: bool) -> list[ast.stmt]:
    out: list[ast.stmt] = []
    inside: list[ast.stmt] = []

    def close() -> None:
        if inside:
            out.append(_with(list(inside), place, traced))
            inside.clear()

    for statement in statements:
        if isinstance(statement, DEFINITIONS):
            close()
            out.append(_definition(statement, place))
        elif place.function is None and place.covers(statement) and not isinstance(statement, (ast.Global, ast.Nonlocal)):
            inside.append(statement)
        else:
            close()
            _inside(statement, place, traced)
            out.append(statement)
    close()
    return out


def _inside(statement: ast.stmt, place: Place, traced: bool) -> None:
    for field in ("body", "orelse", "finalbody"):
        if getattr(statement, field, None):
            setattr(statement, field, _block(getattr(statement, field), place, traced))
    for field in ("handlers", "cases"):
        for part in getattr(statement, field, ()):
            part.body = _block(part.body, place, traced)


def _definition(node: Any, place: Place) -> ast.stmt:
    if node.name == STATEMENTS:  # the cell's statements, made a function (statements.py)
        node.body = _block(node.body, place, traced=True)
        statements: ast.stmt = node
        return statements
    whole = (
        (node.lineno, node.end_lineno) == (place.first, place.last)
        if place.function is not None
        else place.covers(node) and not isinstance(node, ast.ClassDef)
    )
    if isinstance(node, ast.ClassDef) and (whole or (place.function is None and place.covers(node))):
        return _class(node, place)
    if not whole:
        node.body = _block(node.body, place, traced=isinstance(node, Functions))
    else:
        node.body = _body(node.body, place)
    made: ast.stmt = node
    return made


def _class(node: ast.ClassDef, place: Place) -> ast.stmt:
    for inner in node.body:
        if isinstance(inner, Functions):
            inner.body = _body(inner.body, place)
    return node


def _body(body: list[ast.stmt], place: Place) -> list[ast.stmt]:
    """A function's whole body; its text and its `global` statements stay in front."""
    front = 0
    first = body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        front = 1
    while front < len(body) and isinstance(body[front], (ast.Global, ast.Nonlocal)):
        front += 1
    return [*body[:front], _with(body[front:], place, True)] if body[front:] else body


def _with(body: list[ast.stmt], place: Place, traced: bool) -> ast.stmt:
    first, last = body[0], body[-1]
    place.lines.add(first.lineno)
    name = ast.Name(id=TRACED if traced else EAGER, ctx=ast.Load())
    values: list[bool | str] = [place.region.flag] if traced else [place.region.flag, str(place.region)]
    call = ast.Call(func=name, args=[ast.Constant(value=v) for v in values], keywords=[])
    made = ast.With(items=[ast.withitem(context_expr=call, optional_vars=None)], body=body, type_comment=None)
    nodes: list[Any] = [made, call, name, *call.args]
    for node in nodes:
        node.lineno = node.end_lineno = first.lineno
        node.col_offset = node.end_col_offset = first.col_offset
    made.end_lineno, made.end_col_offset = last.end_lineno, last.end_col_offset
    return made


def yields(node: ast.AST) -> bool:
    """Whether this function can be left in the middle: a generator or an `async def`."""
    if isinstance(node, ast.AsyncFunctionDef):
        return True

    def own(inner: ast.AST) -> Iterator[ast.AST]:
        for child in ast.iter_child_nodes(inner):
            if not isinstance(child, (*DEFINITIONS, ast.Lambda)):
                yield child
                yield from own(child)

    return any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in own(node))


class Eager:
    """The cell's own statements: the flag is set, and entry points called in here inherit it."""

    def __init__(self) -> None:
        self.depth = 0
        #: what the run has recorded so far
        self.events: list[Event] = []
        #: compile id of each frame that was compiled in here -> the innermost region
        self.frames: dict[str, str] = {}

    def __call__(self, flag: bool, name: str) -> Any:
        return self._inside(flag, name)

    @contextlib.contextmanager
    def _inside(self, flag: bool, name: str) -> Iterator[None]:
        start = len(self.events)
        self.depth += 1
        try:
            with torch_region(error_on_graph_break=flag):
                yield
        finally:
            self.depth -= 1
            for event in self.events[start:]:
                if isinstance(event, FrameEnd) and event.compile_id is not None:
                    self.frames.setdefault(event.compile_id, name)


@contextlib.contextmanager
def installed(eager: Callable[[bool, str], Any]) -> Iterator[None]:
    """The two names that rewritten code calls, as builtins; nested runs put back what they found."""
    with patched(builtins, {TRACED: region_flag.error_on_graph_break(), EAGER: eager}):
        yield
