"""The regions of one run: found before anything runs, in force while it runs, gone afterwards.

Where a region can stand in the text of the code (lines of the cell, a function whose source is at hand) it does: the
statements are put into a `with` (line_regions.py), compiled, and the function's `__code__` is exchanged, so that the
region holds by whatever name, attribute or container the function is reached.  A module's or another object's own method,
and what has no source, is replaced where the target names it, by what `torch._dynamo.error_on_graph_break` makes of it.

`restore` puts back the very same objects; it may be called at any moment, also half-way through `install`.
"""

from __future__ import annotations
import __future__

import ast
import contextlib
import functools
import gc
import inspect
import linecache
import sys
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, MethodType
from typing import Any

from IPython.core.error import UsageError

from dynascope.cell.source import Cell, own_statements
from dynascope.compiler.driver.regions import Region, parse_regions, region
from dynascope.compiler.patching import own, put
from dynascope.compiler.recording.recording import Recording
from dynascope.compiler.report import Break, Report
from dynascope.compiler.settings import Settings
from dynascope.compiler.source.code import first_line, nested_code
from dynascope.compiler.torch_private import caches, marks
from dynascope.regions.lines import EAGER, TRACED, Eager, Functions, Place, installed, origin_of, own_lines, rewritten, yields
from dynascope.selection.named import resolve

_FUTURE = 0
for _name in __future__.all_feature_names:
    _FUTURE |= getattr(__future__, _name).compiler_flag


class ActiveRegions:
    """The regions of one run; making it raises UsageError, in one line, where one of them cannot be."""

    def __init__(self, shell: Any, cell: Cell, settings: Settings) -> None:
        self.shell, self.cell, self.settings = shell, cell, settings
        try:
            self.regions = parse_regions(settings.region)
        except ValueError as error:
            raise UsageError(str(error)) from None
        self.eager = Eager()
        #: in this cell; outer ones first
        self.places: list[Place] = []
        #: elsewhere: a function, its own code, the code with the region in it
        self._functions: list[tuple[FunctionType, CodeType, CodeType]] = []
        #: what was, or will be, replaced: owner (a namespace), name, original, replacement
        self._patches: list[tuple[Any, str, Any, Any]] = []
        #: (file, line) of a `with` in another file -> its region
        self._elsewhere: dict[tuple[str, int], Region] = {}
        #: names of patched functions
        self._named: dict[str, Region] = {}
        #: a function's region, and the name of the function that has to be traced for it to have an effect
        self._wanted: list[tuple[Region, str]] = []
        #: the plain code of everything in the cell that was compiled with a region in it
        self._plain: dict[tuple[str, int], CodeType] = {}
        for found in self.regions:
            if found.lines is not None:
                self._find_lines(found)
            else:
                self._find_function(found)
        self.places.sort(key=lambda p: p.first - p.last)

    # -- finding --------------------------------------------------------------------------------------

    def _find_lines(self, found: Region) -> None:
        assert found.lines is not None
        first, last = found.lines
        begin = min(s.lineno for s in self.cell.statements)
        end = max(s.end_lineno or s.lineno for s in self.cell.statements)
        if last > end or first > end:
            raise UsageError(f"{found}: the cell's code ends at line {end}")
        place = Place(found, first, last)
        around = [s for s in _all_statements(self.cell.statements) if place.covers(s)]
        if not around:
            raise UsageError(f"{found}: there is no statement in these lines (the code is in lines {begin} to {end})")
        for node in _all_statements(self.cell.statements):
            if isinstance(node, Functions) and yields(node) and node.lineno <= last and first <= (node.end_lineno or 0):
                inside = first > own_lines(node)[0] or last < (node.end_lineno or 0)
                if inside or place.covers(node):
                    raise UsageError(f"{found}: {node.name} is a generator or async: a region cannot be set inside it")
        self.places.append(place)

    def _find_function(self, found: Region) -> None:
        nodes = _definitions(self.cell, found.target)
        if len(nodes) > 1:
            names = ", ".join(name for name, _ in nodes[:4])
            raise UsageError(f"{found}: the cell has several of this name: write one of {names}, or lines")
        if nodes:
            _, node = nodes[0]
            if isinstance(node, Functions) and yields(node):
                raise UsageError(f"{found}: it is a generator or async: a region cannot be set inside it")
            self._wanted.append((found, node.name))
            self.places.append(Place(found, node.lineno, node.end_lineno or node.lineno, function=node.name))
            return
        try:
            value = resolve(found.target, self.shell.user_ns)
        except LookupError as error:
            raise UsageError(f"{found}: {error}") from None
        self._find_object(found, value)

    def _find_object(self, found: Region, value: Any) -> None:
        import torch

        value = marks.inner_function(value)
        if isinstance(value, torch.nn.Module):
            self._patch(found, vars(value), "forward", value.forward)
            return
        if isinstance(value, type):
            forward = inspect.getattr_static(value, "forward", None) if issubclass(value, torch.nn.Module) else None
            if not isinstance(forward, FunctionType):
                raise UsageError(f"{found}: it is a class; name one of its methods, {found.target}.NAME")
            value = forward
        owner_name, _, name = found.target.rpartition(".")
        owner: Any = None
        if owner_name:  # a module that is loaded need not be imported in the notebook
            owner = sys.modules.get(owner_name) if owner_name not in self.shell.user_ns else None
            owner = owner or resolve(owner_name, self.shell.user_ns)
        if isinstance(value, MethodType) and not isinstance(value.__self__, type):
            if not hasattr(value.__self__, "__dict__"):
                raise UsageError(f"{found}: its object cannot be patched; name the method of its class")
            self._patch(found, vars(value.__self__), value.__func__.__name__, value)
            return
        function = inspect.unwrap(value.__func__ if isinstance(value, MethodType) else value)
        if isinstance(function, FunctionType):
            if function.__code__.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
                raise UsageError(f"{found}: it is a generator or async: a region cannot be set inside it")
            made = self._with_region(found, function)
            if made is not None:
                self._functions.append((function, function.__code__, made))
                self._wanted.append((found, function.__code__.co_name))
                return
        if not callable(value):
            raise UsageError(f"{found}: it is a {type(value).__name__}, not a function, method or nn.Module")
        space = self.shell.user_ns if owner is None else owner
        if owner is None or inspect.ismodule(owner):
            self._patch(found, space if owner is None else vars(owner), name, value)
        elif isinstance(owner, type):
            self._patch(found, owner, name, value)
        else:
            raise UsageError(f"{found}: its source is not at hand, and it cannot be replaced there")

    def _patch(self, found: Region, owner: Any, name: str, value: Any) -> None:
        raw = own(owner, name)
        made: Any = region(error_on_graph_break=found.flag)(value)
        if isinstance(raw, staticmethod):
            made = staticmethod(made)
        self._patches.append((owner, name, raw, made))
        self._named[getattr(value, "__name__", name)] = found

    def _with_region(self, found: Region, function: FunctionType) -> CodeType | None:
        """The function's code with its body in the region; None where its source is not (or no longer) that of its code."""
        code = function.__code__
        text = "".join(linecache.getlines(code.co_filename, function.__globals__))
        try:
            tree = ast.parse(text)
            node = next(n for n in ast.walk(tree) if isinstance(n, Functions) and _is_of(n, code))
        except (SyntaxError, ValueError, StopIteration):
            return None
        place = Place(found, node.lineno, node.end_lineno or node.lineno, function=node.name)

        def compiled(made: ast.Module) -> CodeType | None:
            flags = code.co_flags & _FUTURE
            return _find_code(compile(made, code.co_filename, "exec", flags, dont_inherit=True), code)

        plain, made = compiled(tree), compiled(rewritten(tree, [place]))
        if plain is None or made is None or plain.co_code != code.co_code or made.co_freevars != code.co_freevars:
            return None
        self._elsewhere.update({(code.co_filename, line): found for line in place.lines})
        return made

    # -- the cell's own code ----------------------------------------------------------------------------

    def compile(self, tree: ast.AST, make: Callable[[ast.AST], CodeType]) -> CodeType:
        """The code of a tree of the cell with its regions in it."""
        _, *inner = nested_code(make(tree))
        for code in inner:
            self._plain.setdefault((code.co_name, code.co_firstlineno), code)
        return make(rewritten(tree, self.places))

    @contextlib.contextmanager
    def around(self, statement: ast.stmt) -> Iterator[None]:
        """Every region around one of the cell's own statements, for an expression, which cannot stand in a `with`."""
        with contextlib.ExitStack() as stack:
            for place in self.places:
                if place.function is None and place.covers(statement):
                    place.lines.add(statement.lineno)
                    stack.enter_context(self.eager(place.region.flag, str(place.region)))
            yield

    # -- on and off -----------------------------------------------------------------------------------

    @contextlib.contextmanager
    def installed(self, recording: Recording) -> Iterator[None]:
        """Sets all regions for the duration."""
        self.eager.events = recording.events
        try:
            with installed(self.eager):
                self.install()
                yield
        finally:
            self.restore()

    def inherited_by(self, made: Callable[..., Any], plain: Callable[[], Callable[..., Any]]) -> Callable[..., Any]:
        """An entry point that, called in a region of the cell's own statements, leaves the region's flag in force."""
        if not self.places or self.settings.error_on_graph_break is None or self.settings.fullgraph:
            return made
        inheriting = plain()

        @functools.wraps(made)
        def call(*args: Any, **kwargs: Any) -> Any:
            return (inheriting if self.eager.depth else made)(*args, **kwargs)

        return call

    def install(self) -> None:
        for owner, name, _, made in self._patches:
            put(owner, name, made)
        for function, _, code in self._functions:
            function.__code__ = code

    def restore(self) -> None:
        """Put back what was replaced: the very same objects."""
        for owner, name, raw, made in reversed(self._patches):
            if own(owner, name) is made:
                put(owner, name, raw)
        for function, code, made in self._functions:
            if function.__code__ is made:
                function.__code__ = code
        caches.forget_resumes([made for _, _, made in self._functions])
        if self.places and self._plain:
            for function in [f for f in gc.get_objects() if type(f) is FunctionType]:
                code = function.__code__
                if code.co_filename == self.cell.file and _has_region(code):
                    plain = self._plain.get((code.co_name, code.co_firstlineno))
                    if plain is not None:
                        function.__code__ = plain

    # -- afterwards -----------------------------------------------------------------------------------

    def annotate(self, report: Report) -> None:
        """Name the regions in the report as the user wrote them, and say which had no effect."""
        fullgraph = self.settings.fullgraph
        blocks = self._elsewhere | {(self.cell.file, line): p.region for p in self.places for line in p.lines}
        for source in report.sources:
            if source.file == self.cell.file and not fullgraph:
                source.regions = [p.lines_of() for p in self.places]
        for broken in report.breaks:
            at = broken.region
            if at.kind == "with" and at.file is not None and at.line is not None:
                found = blocks.get((at.file, at.line))
            else:
                found = self._named.get(at.name or "") if at.kind == "decorator" else None
            if found is not None:
                broken.region = origin_of(found)
            elif not at.is_region:  # no `with` was traced
                self._tell_call(report, broken)
        report.summary.unexpected = sum(b.allowed is not True for b in report.breaks)
        if fullgraph:
            report.notes += [f"{found} had no effect: fullgraph=True wins over it." for found in self.regions]
            return
        if report.error is not None:
            return  # what was traced until then is not all there would have been
        traced = {name for f in report.frames for name in (f.name, f.code_name)}
        traced |= {str(i.name).rpartition(".")[2] for f in report.frames for i in f.inlined}
        traced |= {entry.function for b in report.breaks for entry in b.stack}
        for found, name in self._wanted:
            if name not in traced:
                report.notes.append(f"{found} had no effect: {found.target} was not traced in this run.")

    def _tell_call(self, report: Report, broken: Break) -> None:
        """A break under a call that one of the cell's own statements makes in a region."""
        around = {self.eager.frames.get(str(report.frame(hit.frame).compile_id)) for hit in broken.hits}
        found = next((r for r in self.regions if around == {str(r)} and r.flag == broken.error_on_graph_break), None)
        if found is not None:
            broken.region = origin_of(found)
            broken.allowed = not found.flag and not broken.fullgraph


def _all_statements(body: list[ast.stmt]) -> list[ast.stmt]:
    """Every statement, also those in functions and classes."""
    return [n for s in body for n in ast.walk(s) if isinstance(n, ast.stmt)]


def _definitions(cell: Cell, target: str) -> list[tuple[str, Any]]:
    """(dotted name, node) of each function or class in the cell that the target means: its dotted name, or its last part."""
    found: list[tuple[str, Any]] = []

    def walk(body: list[ast.stmt], path: str) -> None:
        for node in own_statements(body):
            if isinstance(node, (*Functions, ast.ClassDef)):
                name = f"{path}{node.name}"
                found.append((name, node))
                walk(node.body, f"{name}.")

    walk(cell.statements, "")
    exact = [(name, node) for name, node in found if name == target]
    if exact:
        return exact[-1:]  # defined twice: the last one is what the name means afterwards
    return [(name, node) for name, node in found if "." not in target and name.rpartition(".")[2] == target]


def _is_of(node: Any, code: CodeType) -> bool:
    return bool(node.name == code.co_name and first_line(node) == code.co_firstlineno)


def _find_code(root: CodeType, like: CodeType) -> CodeType | None:
    _, *inner = nested_code(root)
    return next((c for c in inner if (c.co_name, c.co_firstlineno) == (like.co_name, like.co_firstlineno)), None)


def _has_region(code: CodeType) -> bool:
    return any(TRACED in c.co_names or EAGER in c.co_names for c in nested_code(code))
