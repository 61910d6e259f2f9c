"""Rewrites statements so that they run inside a region, without changing a line or column number.

For `--region 9-12=allow`, the statements of these lines are put into `with __dynascope_region__(False):` in the syntax tree.
Dynamo honours that `with` while it traces.  Where the cell's own statements are not traced, the name is `__dynascope_here__`
(`Eager`).  Both names are builtins while the cell runs (`installed`), because nothing may be put into the user's namespace, and
traced code cannot hold the objects as constants.

A statement belongs to the region if one of its own lines does; the own lines of a compound statement are its header.  The
region then contains the whole statement, but only the body of a function, and only the bodies of the methods of a class.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import copy
from collections.abc import Callable, Iterator
from typing import Any

from dynascope.cell.ast_tools import DEFINITIONS, FUNCTIONS, blocks, is_string, located, own_statements
from dynascope.compiler.builder.events.schema import Event, FrameEnd
from dynascope.compiler.capture.torch_private import config
from dynascope.compiler.compiling import Region
from dynascope.compiler.compiling import region as torch_region
from dynascope.compiler.patching import patched
from dynascope.compiler.report import FlagOrigin, RegionLines
from dynascope.compiler.source.code import STATEMENTS, first_line

#: builtins that rewritten code calls: in functions, which are traced, and in the cell's own statements, which are not
TRACED, EAGER = "__dynascope_region__", "__dynascope_here__"


class RegionSpan:
    """A region with the lines that it covers, or with the function or class that it covers."""

    def __init__(self, region: Region, first: int, last: int, function: str | None = None) -> None:
        self.region = region
        self.first, self.last = first, last
        #: the name of the function or class, if one is given; `first` and `last` are then the lines of its definition
        self.function = function
        #: lines at which a `with` was put; the report identifies the region by them
        self.with_lines: set[int] = set()

    def to_region_lines(self) -> RegionLines:
        """The region in the form in which a report lists the regions of a source."""
        return RegionLines(
            first=self.first, last=self.last, error_on_graph_break=self.region.flag, set_by=origin_of(self.region)
        )

    def covers(self, statement: ast.stmt) -> bool:
        """Whether the region is given by lines, not by a function, and the statement belongs to them."""
        start, end = own_lines(statement)
        return self.function is None and start <= self.last and self.first <= end

    def is_of(self, node: ast.stmt) -> bool:
        """Whether the region is given by a function or class, and `node` is its definition."""
        return self.function is not None and (node.lineno, node.end_lineno) == (self.first, self.last)


def origin_of(region: Region) -> FlagOrigin:
    """A `--region` option, as a report names it."""
    return FlagOrigin(kind="option", name=region.target)


def own_lines(statement: ast.stmt) -> tuple[int, int]:
    """First and last line of a statement; for a compound statement or a definition, of its header alone."""
    end = statement.end_lineno or statement.lineno
    inner = statement.body if isinstance(statement, DEFINITIONS) else [s for block in blocks(statement) for s in block]
    if inner:
        end = min(end, max(statement.lineno, min(first_line(s) for s in inner) - 1))
    return statement.lineno, end


def rewritten(tree: Any, spans: list[RegionSpan]) -> Any:
    """A copy of the tree with the statements of each span inside its region; `spans` has outer ones first."""
    tree = copy.deepcopy(tree)
    if isinstance(getattr(tree, "body", None), list):
        for span in reversed(spans):  # inner ones first, so that the outer `with` is put around theirs
            _rewrite(tree.body, span, EAGER)
    return tree


def _rewrite(block: list[ast.stmt], span: RegionSpan, name: str) -> None:
    """Put the statements of the span into its region, in place; `name` is the builtin to call at this level."""
    out: list[ast.stmt] = []
    covered: list[ast.stmt] = []

    def flush() -> None:
        if covered:
            out.append(_with(covered.copy(), span, name))
            covered.clear()

    for index, statement in enumerate(block):
        is_definition = isinstance(statement, DEFINITIONS)
        is_docstring = index == 0 and is_string(statement)
        if not is_definition and not is_docstring and not _is_declaration(statement) and span.covers(statement):
            _rewrite_definitions(blocks(statement), span)
            covered.append(statement)
            continue
        flush()
        if is_definition:
            _rewrite_definition(statement, span)
        for inner in blocks(statement):
            _rewrite(inner, span, name)
        out.append(statement)
    flush()
    block[:] = out


def _is_declaration(statement: ast.stmt) -> bool:
    """Whether Python wants the statement at the start of its block."""
    is_future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
    return is_future or isinstance(statement, (ast.Global, ast.Nonlocal))


def _rewrite_definitions(blocks: list[list[ast.stmt]], span: RegionSpan) -> None:
    """Put what the span covers of the definitions in these blocks into its region: they may be called after the blocks ran."""
    for statement in (s for block in blocks for s in own_statements(block)):
        if isinstance(statement, DEFINITIONS):
            _rewrite_definition(statement, span)


def _rewrite_definition(node: Any, span: RegionSpan) -> None:
    if node.name == STATEMENTS:  # the cell's statements as a function (`selection.statements`)
        _rewrite(node.body, span, TRACED)
    elif not span.is_of(node) and not span.covers(node):
        _rewrite(node.body, span, TRACED if isinstance(node, FUNCTIONS) else EAGER)
    elif isinstance(node, ast.ClassDef):
        for method in node.body:
            if isinstance(method, FUNCTIONS):
                _cover_body(method.body, span)
    else:
        _cover_body(node.body, span)


def _cover_body(body: list[ast.stmt], span: RegionSpan) -> None:
    """Put a function's body into the region, except its docstring and the `global` and `nonlocal` statements at its start."""
    start = 1 if is_string(body[0]) else 0
    while start < len(body) and _is_declaration(body[start]):
        start += 1
    if body[start:]:
        _rewrite_definitions([body], span)
        body[start:] = [_with(body[start:], span, TRACED)]


def _with(body: list[ast.stmt], span: RegionSpan, name: str) -> ast.stmt:
    first, last = body[0], body[-1]
    span.with_lines.add(first.lineno)
    values: list[bool | str] = [span.region.flag] if name == TRACED else [span.region.flag, str(span.region)]
    call = ast.Call(func=ast.Name(id=name, ctx=ast.Load()), args=[ast.Constant(value=v) for v in values], keywords=[])
    statement = located(ast.With(items=[ast.withitem(context_expr=call)], body=body), first)
    statement.end_lineno, statement.end_col_offset = last.end_lineno, last.end_col_offset
    return statement


class Eager:
    """Sets the flag of regions in the cell's own statements, and notes which frames are compiled inside them."""

    def __init__(self) -> None:
        #: how many of these regions are entered; entry points called inside one inherit its flag
        self.depth = 0
        #: what the run has recorded so far
        self.events: list[Event] = []
        #: compile id of each frame that was compiled inside one -> the innermost region
        self.frames: dict[str, str] = {}

    @contextlib.contextmanager
    def __call__(self, flag: bool, name: str) -> Iterator[None]:
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


def installed(eager: Callable[[bool, str], Any]) -> contextlib.AbstractContextManager[None]:
    """Add the two builtins that rewritten code calls, for the duration of a `with` block."""
    return patched(builtins, {TRACED: config.error_on_graph_break(), EAGER: eager})
