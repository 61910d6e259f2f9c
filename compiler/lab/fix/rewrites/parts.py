"""A loop, `with` or `try` around a graph break, or its body, becomes a function, so that the code around it is not skipped."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from dynascope.compiler.lab.fix.candidate import Candidate, Problem
from dynascope.compiler.lab.fix.syntax.effects import computes, looks_around
from dynascope.compiler.lab.fix.syntax.flow import (
    bound_before,
    certainly_bound,
    leaves,
    read_first,
    read_later,
    shared_names,
    statements,
    targets_of,
)
from dynascope.compiler.lab.fix.syntax.names import names_in_order, unused_name, uses
from dynascope.compiler.lab.fix.syntax.source_text import Change, Source, candidate, indented, parse

_Block = cst.For | cst.While | cst.With | cst.Try
_TITLES = {"For": "loop", "While": "loop", "With": "with block", "Try": "try block"}


def candidates(problem: Problem) -> list[Candidate]:
    """First the outermost block as a function of its own, then the body of the innermost block."""
    source = parse(problem.source)
    if source is None:
        return []
    statement = source.statement_of(source.innermost(problem, cst.SimpleStatementLine) or source.module)
    branch = source.branch_at(problem)
    inside: cst.CSTNode | None = statement or branch
    if inside is None:
        return []
    scope = source.scope_of(inside)
    around = [a for a in source.ancestors(inside) if isinstance(a, _Block) and source.scope_of(a) is scope]
    if not around or not isinstance(scope, cst.FunctionDef):
        return []
    block = around[0]
    kind = _TITLES[type(block).__name__]
    body, whole = _body(source, block), _whole(source, around[-1])
    made: list[Candidate] = []
    if whole is not None:
        start, end = source.whole_lines(around[-1])
        changes: list[Change] = [(start, end, whole)]
        made += candidate(problem, source, f"Give the {_TITLES[type(around[-1]).__name__]} a function of its own", changes)
    if body is not None:
        made += candidate(problem, source, f"Give the body of the {kind} a function of its own", body.changes(source, block))
    return made


@dataclass
class _Part:
    """A function made of some statements, and the call that replaces them."""

    name: str
    given: list[str]
    results: list[str]

    def header(self) -> str:
        return f"def {self.name}({', '.join(self.given)}):"

    def returned(self) -> str:
        return f"return {', '.join(self.results)}"

    def call(self) -> str:
        call = f"{self.name}({', '.join(self.given)})"
        return f"{', '.join(self.results)} = {call}" if self.results else call


def _part(source: Source, run: list[cst.CSTNode], name: str, turns: set[str] | None = None) -> _Part | None:
    """The function that these statements become; None if they cannot become one.

    `turns`: the names that a `for` loop around them binds in each turn.
    """
    used = uses(*run)
    if looks_around(*run) or any(isinstance(s, cst.Del | cst.Global | cst.Nonlocal) for s in used.stores):
        return None
    if any(isinstance(j, cst.Return | cst.Yield | cst.Await) for j in used.jumps) or _jumps_out(run):
        return None
    if used.writes & shared_names(source):
        return None
    before, after, sure = bound_before(source, run[0]), read_later(source, *run), certainly_bound(run)
    results = [n for n in names_in_order(source, *run) if n in used.writes & after]
    given = [n for n in names_in_order(source, *run) if n in used.writes & before and (n in used.reads or n not in sure)]
    given += [n for n in names_in_order(source, *run) if n in used.reads & (turns or set()) and n not in given]
    if any(n not in sure and n not in before for n in results) or read_first(run) & used.writes - before:
        return None
    nested = [n for r in run for n in (*source.inside(r, cst.Lambda), *source.inside(r, cst.FunctionDef))]
    if any(uses(n).reads & used.writes for n in nested):
        return None
    return _Part(name, given, results)


def _jumps_out(run: list[cst.CSTNode]) -> bool:
    """Whether a break or continue belongs to a loop around the statements."""
    for one in run:
        if isinstance(one, cst.Break | cst.Continue):
            return True
        if isinstance(one, cst.For | cst.While):
            if one.orelse is not None and _jumps_out(list(one.orelse.children)):
                return True
        elif not isinstance(one, cst.FunctionDef | cst.ClassDef) and _jumps_out(list(one.children)):
            return True
    return False


def _whole(source: Source, block: _Block) -> str | None:
    """The text of the block as a function, and of its call; None if the block cannot move."""
    if not source.stands_alone(block) or not _computed_around(source, block):
        return None
    part = _part(source, [block], unused_name(source, "run_" + _TITLES[type(block).__name__].split(" ")[0]))
    lines = indented(source.lines_text(block), source.indent_unit)
    if part is None or lines is None or _is_seen_after_an_exception(source, block, part):
        return None
    indent, inner = source.indent(block), source.indent(block) + source.indent_unit
    end = f"{inner}{part.returned()}\n" if part.results else ""
    return f"{indent}{part.header()}\n{lines}{end}{indent}{part.call()}\n"


def _computed_around(source: Source, block: _Block) -> bool:
    """Whether the function also computes outside of the block; if not, moving the block would only move what is skipped."""
    scope = source.scope_of(block)
    outside = [
        s
        for s in source.inside(scope, cst.SimpleStatementLine)
        if source.scope_of(s) is scope and not source.is_inside(s, block)
    ]
    return any(computes(s) for s in outside)


@dataclass
class _Body:
    """The body of a block, as a function that is defined before the block."""

    part: _Part
    run: list[cst.CSTNode]

    def changes(self, source: Source, block: _Block) -> list[Change]:
        indent, inner = source.indent(block), source.indent(self.run[0])
        start, end = source.whole_lines(*self.run)
        result = f"{inner}{self.part.returned()}\n" if self.part.results else ""
        function = f"{indent}{self.part.header()}\n{source.lines_text(*self.run)}{result}"
        at = source.whole_lines(block)[0]
        return [(at, at, function), (start, end, f"{inner}{self.part.call()}\n")]


def _body(source: Source, block: _Block) -> _Body | None:
    run = statements(block.body)
    if not run or not isinstance(block.body, cst.IndentedBlock) or not source.stands_alone(block):
        return None
    turns = targets_of(block) if isinstance(block, cst.For) else set()
    part = _part(source, run, unused_name(source, "step"), turns)
    lines = [s for r in run for s in (r, *source.inside(r, cst.SimpleStatementLine, cst.SimpleStatementSuite))]
    several = sum(len(s.body) for s in lines if isinstance(s, cst.SimpleStatementLine | cst.SimpleStatementSuite)) > 1
    if part is None:
        return None
    if several and (_is_seen_after_an_exception(source, block, part) or (part.results and _suppresses(source, block))):
        return None
    if isinstance(block, cst.Try):
        written = uses(*run).writes
        seen = uses(*block.handlers, block.finalbody).reads
        handled = [h for h in block.handlers if not leaves(statements(h.body))]
        if written & seen or (handled and part.results and several):
            return None  # after an exception, code may read what was assigned before it
    return _Body(part, run)


def _is_seen_after_an_exception(source: Source, block: _Block, part: _Part) -> bool:
    """Whether a `try` or `suppress` around the block lets code go on that reads what the block has assigned by then."""
    written = uses(block).writes
    for outer in source.ancestors(block):
        if isinstance(outer, cst.FunctionDef):
            break
        if isinstance(outer, cst.Try | cst.TryStar) and source.is_inside(block, outer.body):
            goes_on = any(not leaves(statements(h.body)) for h in outer.handlers)
            if written & uses(*outer.handlers, outer.finalbody).reads or (goes_on and part.results):
                return True
        if part.results and _suppresses(source, outer):
            return True
    return False


def _suppresses(source: Source, block: cst.CSTNode) -> bool:
    """Whether a block is a `with suppress(...)`."""
    return isinstance(block, cst.With) and any("suppress" in source.text_of(item) for item in block.items)
