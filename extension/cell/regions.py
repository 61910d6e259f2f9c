"""The regions of one run: looked up before anything runs, in force during the run, removed afterwards.

For `--region 9-12=allow`, the statements of these lines are put into `with __dynascope_region__(False):` in the syntax tree,
without changing a line or column number.  Dynamo honours that `with` while it traces.  The name is a builtin while the cell
runs, because nothing may be put into the user's namespace, and traced code cannot hold the object as a constant.  Only code
that may be traced has regions: functions, and the statements of a cell that are compiled as one (`cell.statements`).

A statement belongs to the region if one of its own lines does; the own lines of a compound statement are its header.  The
region then contains the whole statement, but only the body of a function, and only the bodies of the methods of a class.
Generators and async functions have no regions: while they are suspended, the flag would stay set.

A function from outside the cell gets the new code as its `__code__`, so that the region applies whichever name, attribute or
container leads to the function.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import inspect
import linecache
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from types import CodeType, FunctionType
from typing import Any

from IPython.core.error import UsageError

from dynascope.cell.source import Cell
from dynascope.cell.targets import definitions_of, find_target, parts_of, underlying
from dynascope.compiler.capture.torch_private import caches, config, marks
from dynascope.compiler.compiling import Region, parse_regions
from dynascope.compiler.parsing import syntax_tree
from dynascope.compiler.patching import interrupts_deferred, patched
from dynascope.compiler.report import FlagOrigin, RegionLines, Report
from dynascope.compiler.settings import Settings
from dynascope.compiler.source import edited
from dynascope.compiler.source.code import REGION, STATEMENTS, code_key, first_line, nested_code, same_code
from dynascope.compiler.source.code_swap import Swaps, functions_of, recompiled
from dynascope.compiler.source.syntax import DEFINITIONS, FUNCTIONS, blocks, copied, is_generator, is_string, located
from dynascope.compiler.validate import errors_as

#: why a generator or async function is no target
NEVER_INSIDE = "is a generator or async: a region cannot be set inside it"
_SUSPENDABLE = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


class ActiveRegions:
    """The regions of one run; the constructor raises UsageError, with a one-line message, if one of them is impossible."""

    def __init__(self, shell: Any, cell: Cell, settings: Settings) -> None:
        self.shell, self.cell, self.settings = shell, cell, settings
        with errors_as(UsageError):
            self.regions = parse_regions(settings.region)
        #: the regions in the cell's own code, outer ones first
        self.spans: list[RegionSpan] = []
        #: for each function from outside the cell: the function, its code with the region in it, and the region
        self._functions: list[tuple[FunctionType, CodeType, RegionSpan]] = []
        self._swaps = Swaps()
        #: the code objects of the cell as they are without regions, by `code_key`
        self._plain: dict[tuple[str, int], CodeType] = {}
        for requested in self.regions:
            if requested.lines is not None:
                self._add_lines(requested, *requested.lines)
            else:
                self._add_target(requested)
        self.spans.sort(key=lambda s: s.first - s.last)
        if settings.fullgraph:  # it wins over them
            self.spans, self._functions = [], []

    # -- looking up -----------------------------------------------------------------------------------

    def _add_lines(self, requested: Region, first: int, last: int) -> None:
        begin = min(s.lineno for s in self.cell.statements)
        end = max(s.end_lineno or s.lineno for s in self.cell.statements)
        if last > end or first > end:
            raise UsageError(f"{requested}: the cell's code ends at line {end}")
        span = RegionSpan(requested, self.cell.file, first, last)
        if not any(span.covers(n) for s in self.cell.statements for n in ast.walk(s) if isinstance(n, ast.stmt)):
            raise UsageError(f"{requested}: there is no statement in these lines (the code is in lines {begin} to {end})")
        self.spans.append(span)

    def _add_target(self, requested: Region) -> None:
        definitions = definitions_of(self.cell, requested.target)
        if len(definitions) > 1:
            names = ", ".join(name for name, _ in definitions[:4])
            raise UsageError(f"{requested}: the cell has several definitions of this name: write one of {names}, or give lines")
        if not definitions:
            with errors_as(UsageError, f"{requested}: "):
                value = find_target(requested.target, self.shell.user_ns)
            self._add_object(requested, value)
            return
        _, node = definitions[0]
        if _can_suspend(node):
            raise UsageError(f"{requested}: it {NEVER_INSIDE}")
        functions = {n.name for n in (node.body if isinstance(node, ast.ClassDef) else [node]) if isinstance(n, FUNCTIONS)}
        self.spans.append(RegionSpan(requested, self.cell.file, node.lineno, node.end_lineno or node.lineno, functions))

    def _add_object(self, requested: Region, value: Any) -> None:
        """Prepare code for a function from outside the cell, with its body in the region.

        It needs the source, which must (still) be that of the function's code.
        """
        import torch

        no_source = UsageError(f"{requested}: no `def` with its code was found; use dynascope.region in the code")
        value = underlying(marks.inner_function(value))
        has_forward = isinstance(value, (torch.nn.Module, type))
        called = marks.undecorated(parts_of(value.forward if has_forward else value)[-1])  # inside a decorator's region
        function = inspect.unwrap(called, stop=inspect.isfunction)  # as Dynamo does for `functools.lru_cache`
        if not isinstance(function, FunctionType):
            raise no_source
        code = function.__code__
        if code.co_flags & _SUSPENDABLE:
            raise UsageError(f"{requested}: it {NEVER_INSIDE}")
        edited.refresh()  # the file may have been edited since it was read
        present = edited.located(function) or code  # autoreload leaves a function alone that only moved
        key = code_key(present)

        def compiled(whole: ast.Module) -> list[CodeType]:
            """The function's code from this tree, and its code with the region."""
            modules = [recompiled(t, code.co_filename, code.co_flags) for t in (whole, rewritten(whole, [span]))]
            return [next(c for c in nested_code(module) if code_key(c) == key) for module in modules]

        try:
            tree = syntax_tree("".join(linecache.getlines(code.co_filename, function.__globals__)))
            node = next(n for n in ast.walk(tree) if isinstance(n, FUNCTIONS) and (n.name, first_line(n)) == key)
            span = RegionSpan(requested, code.co_filename, node.lineno, node.end_lineno or node.lineno, {code.co_name})
            # IPython compiles each statement by itself, and Python calls what the same text imports by other instructions
            wholes = (tree, ast.Module([s for s in tree.body if node in ast.walk(s)], []))
            # an outer run may have put the function into a region of its own: that code was compiled from this text, too
            same = (r for p, r in map(compiled, wholes) if _has_region(code) or same_code(p, present))
            with_region = next(c for c in same if c.co_freevars == code.co_freevars)  # none: the file has changed since
        except (SyntaxError, ValueError, StopIteration):
            raise no_source from None
        self._functions.append((function, with_region, span))

    # -- the cell's own code ----------------------------------------------------------------------------

    def compile(self, tree: ast.AST, compile_tree: Callable[[ast.AST], CodeType]) -> CodeType:
        """Compile a tree of the cell with the regions in it."""
        for code in nested_code(compile_tree(tree)):
            self._plain.setdefault(code_key(code), code)
        return compile_tree(rewritten(tree, self.spans))

    # -- on and off -----------------------------------------------------------------------------------

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        """Set all regions for the duration of a `with` block; then every function has its own code again."""
        try:
            with patched(builtins, {REGION: config.error_on_graph_break()}):
                for function, with_region, _ in self._functions:
                    self._swaps.put(function, with_region)
                yield
        finally:
            with interrupts_deferred():
                self._swaps.undo()
                caches.forget_resumes([with_region for _, with_region, _ in self._functions])
                for function in functions_of([self.cell.file]) if self.spans and self._plain else ():
                    code = function.__code__
                    if _has_region(code):
                        function.__code__ = self._plain.get(code_key(code), code)

    # -- afterwards -----------------------------------------------------------------------------------

    def annotate(self, report: Report, traced: Collection[tuple[str, str]]) -> None:
        """Name the regions in the report as the user wrote them, and add notes on those that had no effect."""
        every = [*self.spans, *(span for _, _, span in self._functions)]
        origins = {span.region: FlagOrigin(kind="option", name=span.region.target) for span in every}
        for source in report.sources:
            if source.file == self.cell.file:
                source.regions = [
                    RegionLines(first=s.first, last=s.last, error_on_graph_break=s.region.flag, set_by=origins[s.region])
                    for s in self.spans
                ]
        for b in (b for b in report.breaks if b.region.kind == "with"):
            begin = (s for s in every if s.file == b.region.file and b.region.line in s.with_lines)
            # of two with this flag that begin at the same line, the outer one: all that is in the inner one is in it, too
            b.region = next((origins[s.region] for s in begin if s.region.flag == b.error_on_graph_break), b.region)
        report.summary.unexpected = sum(b.allowed is not True for b in report.breaks)
        report.notes += [f"{r} had no effect: fullgraph=True wins over it." for r in self.regions if self.settings.fullgraph]
        for span in every:
            if not (span.with_lines if span.functions is None else any((span.file, name) in traced for name in span.functions)):
                report.notes.append(f"{span.region} had no effect: nothing was traced with it in this run.")


def _can_suspend(node: ast.AST) -> bool:
    """Whether this is a function that can be suspended: a generator or an `async def`."""
    return isinstance(node, ast.AsyncFunctionDef) or (isinstance(node, ast.FunctionDef) and is_generator(node))


def _has_region(code: CodeType) -> bool:
    return any(REGION in c.co_names for c in nested_code(code))


# -- statements inside a region --------------------------------------------------------------------


#: Python wants these at the start of their block
_DECLARATIONS = (ast.Global, ast.Nonlocal)


@dataclass
class RegionSpan:
    """A region with the lines that it covers, or those of the function or class that it covers."""

    region: Region
    file: str
    first: int
    last: int
    #: the names of the functions in it, if a function or class is given; None: lines are given
    functions: set[str] | None = None
    #: lines at which a `with` was put; the report identifies the region by them
    with_lines: set[int] = field(default_factory=set)

    def covers(self, statement: ast.stmt) -> bool:
        """Whether the statement belongs to the region's lines, or is the definition that is given."""
        if self.functions is not None:
            return isinstance(statement, DEFINITIONS) and (statement.lineno, statement.end_lineno) == (self.first, self.last)
        start, end = own_lines(statement)
        return start <= self.last and self.first <= end


def own_lines(statement: ast.stmt) -> tuple[int, int]:
    """First and last line of a statement; for a compound statement or a definition, of its header alone."""
    end = statement.end_lineno or statement.lineno
    inner = statement.body if isinstance(statement, DEFINITIONS) else [s for block in blocks(statement) for s in block]
    if inner:
        end = min(end, max(statement.lineno, min(first_line(s) for s in inner) - 1))
    return statement.lineno, end


def rewritten(tree: Any, spans: list[RegionSpan]) -> Any:
    """A copy of the tree with the statements of each span inside its region; `spans` has outer ones first."""
    tree = copied(tree)
    if isinstance(getattr(tree, "body", None), list):
        for span in reversed(spans):  # inner ones first, so that the outer `with` is put around theirs
            _rewrite(tree.body, span, is_traced=False)
    return tree


def _rewrite(block: list[ast.stmt], span: RegionSpan, *, is_traced: bool) -> None:
    """Put the statements of the span into its region, in place; `is_traced`: whether the block is a function's.

    Of statements that are in the region already, and of untraced ones, only the functions that they define are put into it:
    these may be called later.
    """
    out: list[ast.stmt] = []
    for index, statement in enumerate(block):
        stays = isinstance(statement, (*DEFINITIONS, *_DECLARATIONS)) or (index == 0 and is_string(statement))
        is_put = is_traced and not stays and span.covers(statement)
        for inner in blocks(statement):
            _rewrite(inner, span, is_traced=is_traced and not is_put)
        if isinstance(statement, DEFINITIONS):
            _rewrite_definition(statement, span)
        out.append(_with([statement], span) if is_put else statement)
    block[:] = out


def _rewrite_definition(node: Any, span: RegionSpan) -> None:
    if not span.covers(node) or node.name == STATEMENTS:  # the name: the cell's statements as a function (`cell.statements`)
        if not _can_suspend(node):
            _rewrite(node.body, span, is_traced=isinstance(node, FUNCTIONS))
        return
    functions = [n for n in (node.body if isinstance(node, ast.ClassDef) else [node]) if isinstance(n, FUNCTIONS)]
    for body in (function.body for function in functions if not _can_suspend(function)):
        start = 1 if is_string(body[0]) else 0  # the docstring, `global` and `nonlocal` stay at the start
        while start < len(body) and isinstance(body[start], _DECLARATIONS):
            start += 1
        if body[start:]:
            _rewrite(body, span, is_traced=False)
            body[start:] = [_with(body[start:], span)]


def _with(body: list[ast.stmt], span: RegionSpan) -> ast.stmt:
    first, last = body[0], body[-1]
    span.with_lines.add(first.lineno)
    call = ast.Call(func=ast.Name(id=REGION, ctx=ast.Load()), args=[ast.Constant(value=span.region.flag)], keywords=[])
    statement = located(ast.With(items=[ast.withitem(context_expr=call)], body=body), first)
    statement.end_lineno, statement.end_col_offset = last.end_lineno, last.end_col_offset
    return statement
