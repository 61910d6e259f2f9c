"""Moves a clock reading or a look-up before its loop or to the start of its function, and an import to the module's top."""

from __future__ import annotations

import libcst as cst

from dynascope.compiler.lab.fix.candidate import Candidate, Problem
from dynascope.compiler.lab.fix.syntax.effects import changed_in_place
from dynascope.compiler.lab.fix.syntax.flow import bound_before, small
from dynascope.compiler.lab.fix.syntax.names import dotted, parameters, unused_name, uses
from dynascope.compiler.lab.fix.syntax.source_text import Change, Source, Statement, candidate, parse
from dynascope.compiler.lab.fix.syntax.torch_names import imports

_CLOCKS = {"time.time", "time.perf_counter", "time.monotonic", "time.process_time", "time.time_ns", "time.perf_counter_ns"}
_LOOKUPS = {
    "os.getenv", "os.environ.get", "os.getcwd", "os.getpid", "os.cpu_count", "platform.system", "platform.machine",
    "socket.gethostname", "sys.getrecursionlimit", "torch.cuda.is_available", "torch.cuda.device_count",
    "torch.get_num_threads", "inspect.signature",
}  # fmt: skip


def candidates(problem: Problem) -> list[Candidate]:
    """An import or a call that broke, moved to where it runs earlier."""
    source = parse(problem.source)
    if source is None:
        return []
    return [*_import(problem, source), *_call(problem, source)]


def _import(problem: Problem, source: Source) -> list[Candidate]:
    """An import inside a function, moved to the imports of the module."""
    line = source.innermost(problem, cst.SimpleStatementLine)
    if line is None or not isinstance(source.scope_of(line), cst.FunctionDef) or not source.stands_alone(line):
        return []
    node = line.body[0]
    if not isinstance(node, cst.Import | cst.ImportFrom) or (
        isinstance(node, cst.ImportFrom) and isinstance(node.names, cst.ImportStar)
    ):
        return []
    top = _top(source, line)
    names = uses(node).writes
    scope = source.scope_of(line)
    others = {n.value for n in source.all_of(cst.Name) if n.value in names and source.scope_of(n) is not scope}
    if others or not isinstance(source.parent(line), cst.IndentedBlock) or len(source.block_of(line)) < 2:
        return []
    start, end = source.whole_lines(line)
    lines = [s for s in source.module.body if isinstance(s, cst.SimpleStatementLine)]
    above = [s for s in lines if isinstance(s.body[0], cst.Import | cst.ImportFrom)]
    above = [s for s in above if source.start(s) < source.start(top)]
    at = source.whole_lines(above[-1])[1] if above else source.line_start(source.first_line(top))
    changes = [(at, at, source.lines_text(line).lstrip(" \t")), (start, end, "")]
    assumption = "The module is imported when this one is, even if the function is never called."
    return candidate(problem, source, "Import at the module's top level", changes, assumption)


def _top(source: Source, node: cst.CSTNode) -> cst.CSTNode:
    """The top-level statement that contains a node."""
    found = node
    while (above := source.parent(found)) is not None and above is not source.module:
        found = above
    return found


def _call(problem: Problem, source: Source) -> list[Candidate]:
    """A clock or a look-up, moved before the outermost loop around it, or else to the start of its function."""
    call = source.innermost(problem, cst.Call, lambda n: n if _is_fixed(source, n) else None)
    statement = source.statement_of(call) if call is not None else None
    if call is None or statement is None:
        return []
    scope = source.scope_of(statement)
    if not isinstance(scope, cst.FunctionDef) or any(isinstance(a, cst.Lambda) for a in source.ancestors(call)):
        return []
    loops = [a for a in source.ancestors(statement) if isinstance(a, cst.For | cst.While) and source.scope_of(a) is scope]
    if _full(source, call) in _CLOCKS and any(isinstance(loop, cst.While) for loop in loops):
        return []  # the clock may be what ends the loop
    place = loops[-1] if loops else _first_statement(scope)
    if place is statement or not isinstance(scope.body, cst.IndentedBlock):
        return []
    local = uses(scope.body).writes - (_imported_in(source, scope) & bound_before(source, place))
    if uses(call).reads & local or not source.stands_alone(place):
        return []
    changes = _whole_assignment(source, scope, statement, call, place) if loops else None
    where = "before the loop" if loops else "at the function's start"
    title = f"Call {dotted(call.func)}() {where}"
    assumption = _assumption(source, call, in_loop=bool(loops))
    return candidate(problem, source, title, changes or _named(source, call, place), assumption)


def _first_statement(scope: cst.FunctionDef) -> Statement:
    """The first statement of a function after its docstring."""
    body: list[Statement] = list(scope.body.body)  # type: ignore[arg-type]
    first = small(body[:1])[:1]
    is_docstring = bool(first) and isinstance(first[0], cst.Expr) and isinstance(first[0].value, cst.SimpleString)
    return body[1] if is_docstring and len(body) > 1 else body[0]


def _assumption(source: Source, call: cst.Call, *, in_loop: bool) -> str:
    name, is_clock = dotted(call.func), _full(source, call) in _CLOCKS
    if not in_loop:
        measured = " Times measured with it change." if is_clock else ""
        return f"{name}() is called earlier in the function.{measured}"
    if is_clock:
        return "The time is taken once, before the loop, instead of in each iteration."
    return f"{name}() returns the same value in every iteration of the loop."


def _whole_assignment(
    source: Source, scope: cst.FunctionDef, statement: Statement, call: cst.Call, place: Statement
) -> list[Change] | None:
    """The whole statement, moved before the loop; None unless it only binds names that nothing else binds or changes."""
    inside = small([statement]) if isinstance(statement, cst.SimpleStatementLine) else []
    assigned = inside[0] if len(inside) == 1 else None
    if not isinstance(assigned, cst.Assign) or assigned.value is not call or len(source.block_of(statement)) < 2:
        return None
    bound = uses(statement).writes
    if not all(isinstance(t.target, cst.Name) for t in assigned.targets) or not _bound_once(source, scope, bound):
        return None
    if changed_in_place(bound, scope.body):
        return None
    start = source.whole_lines(place)[0]
    moved = source.indent(place) + source.lines_text(statement).lstrip(" \t")
    return [(start, start, moved), (*source.whole_lines(statement), "")]


def _named(source: Source, call: cst.Call, place: Statement) -> list[Change]:
    """The changes that bind the call's value to a new name before `place`, and use the name instead of the call."""
    name = unused_name(source, "started" if _full(source, call) in _CLOCKS else "looked_up")
    start = source.whole_lines(place)[0]
    line = f"{source.indent(place)}{name} = {source.text_of(call)}\n"
    return [(start, start, line), (source.start(call), source.end(call), name)]


def _imported_in(source: Source, scope: cst.FunctionDef) -> set[str]:
    """Names that only imports bind in the function."""
    found = [*source.inside(scope, cst.Import), *source.inside(scope, cst.ImportFrom)]
    lines = source.inside(scope, cst.SimpleStatementLine)
    others = [s for s in lines if not any(isinstance(one, cst.Import | cst.ImportFrom) for one in s.body)]
    return uses(*found).writes - uses(*others).writes


def _bound_once(source: Source, scope: cst.FunctionDef, names: set[str]) -> bool:
    """Whether a function binds each of these names in one place, and takes none as an argument."""
    binding = source.inside(scope, cst.AssignTarget, cst.AnnAssign, cst.AugAssign, cst.For, cst.NamedExpr)
    targets = [b.target for b in binding if source.scope_of(b) is scope]  # type: ignore[attr-defined]
    targets += [as_name.name for as_name in source.inside(scope, cst.AsName)]
    found = [n.value for t in targets for n in (t, *source.inside(t, cst.Name)) if isinstance(n, cst.Name) and n.value in names]
    return len(found) == len(names) and not names & parameters(scope)


def _full(source: Source, call: cst.Call) -> str:
    """The full dotted name of the called function, such as `time.perf_counter`."""
    first, dot, rest = dotted(call.func).partition(".")
    return imports(source, source.scope_of(call)).get(first, first) + dot + rest


def _is_fixed(source: Source, call: cst.Call) -> bool:
    last = call.func.attr if isinstance(call.func, cst.Attribute) else call.func
    imported = last.value if isinstance(last, cst.Name) else ""
    return bool(imported) and _full(source, call) in _CLOCKS | _LOOKUPS
