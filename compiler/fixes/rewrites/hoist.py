"""What does not depend on its place moves before the loop: an import, a constant look-up, a clock."""

from __future__ import annotations

import libcst as cst

from dynascope.compiler.fixes.candidate import Candidate, Problem
from dynascope.compiler.fixes.syntax.effects import changed_in_place
from dynascope.compiler.fixes.syntax.flow import bound_before, small, statements
from dynascope.compiler.fixes.syntax.names import dotted, unused_name, uses
from dynascope.compiler.fixes.syntax.source_text import Change, Source, Statement, candidate, parse
from dynascope.compiler.fixes.syntax.torch_names import imports

_CLOCKS = {"time.time", "time.perf_counter", "time.monotonic", "time.process_time", "time.time_ns", "time.perf_counter_ns"}
_LOOKUPS = {
    "os.getenv",
    "os.environ.get",
    "os.getcwd",
    "os.getpid",
    "os.cpu_count",
    "platform.system",
    "socket.gethostname",
    "sys.getrecursionlimit",
}
_LOOKUPS |= {
    "torch.cuda.is_available",
    "torch.cuda.device_count",
    "torch.get_num_threads",
    "platform.machine",
    "inspect.signature",
}


def candidates(problem: Problem) -> list[Candidate]:
    """A call of the loop before it, or a call of the function at its start."""
    source = parse(problem.source)
    if source is None:
        return []
    return [*_import(problem, source), *_call(problem, source)]


def _import(problem: Problem, source: Source) -> list[Candidate]:
    """An import inside a function, at the module's own."""
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
    at = source.whole_lines(above[-1])[1] if above else _start_of(source, top)
    changes = [(at, at, source.lines_text(line).lstrip(" \t")), (start, end, "")]
    assumption = "The module is imported when this one is, also where the function is never called."
    return candidate(problem, source, "Import at the module's top level", changes, assumption)


def _top(source: Source, node: cst.CSTNode) -> cst.CSTNode:
    """The module's own statement around a node."""
    found = node
    while (above := source.parent(found)) is not None and above is not source.module:
        found = above
    return found


def _start_of(source: Source, statement: cst.CSTNode) -> int:
    """Offset of the first line of a statement, with its decorators."""
    decorators = getattr(statement, "decorators", ())
    return source.line_start(source.lines(decorators[0])[0] if decorators else source.lines(statement)[0])


def _call(problem: Problem, source: Source) -> list[Candidate]:
    """A clock or a look-up: before the loop around it, or else at the start of its function."""
    call = source.innermost(problem, cst.Call, lambda n: n if _is_fixed(source, n) else None)
    statement = source.statement_of(call) if call is not None else None
    if call is None or statement is None:
        return []
    scope = source.scope_of(statement)
    if not isinstance(scope, cst.FunctionDef) or any(isinstance(a, cst.Lambda) for a in source.ancestors(call)):
        return []
    name = dotted(call.func)
    clock = _full(source, call) in _CLOCKS
    loops = [a for a in source.ancestors(statement) if isinstance(a, cst.For | cst.While) and source.scope_of(a) is scope]
    if loops:
        place: Statement = loops[-1]
        where, assumption = "before the loop", f"{name}() gives the same in each turn of the loop."
        if clock:
            assumption = "The time is taken once, before the loop, instead of in each turn."
    else:
        place = scope.body.body[0]  # type: ignore[assignment]
        first = small([place])[0] if statements(scope.body) else None
        if isinstance(first, cst.Expr) and isinstance(first.value, cst.SimpleString) and len(scope.body.body) > 1:
            place = scope.body.body[1]  # type: ignore[assignment]
        if place is statement or not isinstance(scope.body, cst.IndentedBlock):
            return []
        where, assumption = "at the function's start", f"{name}() is called earlier in the function."
    local = uses(scope.body).writes - (_imported_in(source, scope) & bound_before(source, place))
    if uses(call).reads & local or not source.stands_alone(place):
        return []
    indent, start = source.indent(place), source.whole_lines(place)[0]
    kept = small([statement]) if isinstance(statement, cst.SimpleStatementLine) else []
    whole = kept[0] if len(kept) == 1 else None
    is_alone = (
        isinstance(whole, cst.Assign) and whole.value is call and all(isinstance(t.target, cst.Name) for t in whole.targets)
    )
    bound = uses(statement).writes if is_alone else set()
    if (
        is_alone
        and loops
        and not changed_in_place(bound, scope.body)
        and _bound_once(source, scope, bound)
        and len(source.block_of(statement)) > 1
    ):
        low, high = source.whole_lines(statement)
        moved = source.lines_text(statement).lstrip(" \t")
        changes: list[Change] = [(start, start, indent + moved), (low, high, "")]
    else:
        new = unused_name(source, "started" if clock else "looked_up")
        changes = [(start, start, f"{indent}{new} = {source.text_of(call)}\n"), (source.start(call), source.end(call), new)]
    return candidate(problem, source, f"Call {name}() {where}", changes, assumption)


def _imported_in(source: Source, scope: cst.FunctionDef) -> set[str]:
    """Names that only imports of the function bind."""
    found = [*source.inside(scope, cst.Import), *source.inside(scope, cst.ImportFrom)]
    lines = source.inside(scope, cst.SimpleStatementLine)
    others = [s for s in lines if not any(isinstance(one, cst.Import | cst.ImportFrom) for one in s.body)]
    return uses(*found).writes - uses(*others).writes


def _bound_once(source: Source, scope: cst.FunctionDef, names: set[str]) -> bool:
    targets = [t for t in source.inside(scope, cst.AssignTarget) if source.scope_of(t) is scope and dotted(t.target) in names]
    return len(targets) == len(names)


def _full(source: Source, call: cst.Call) -> str:
    """The name of a function with the module that it was imported from."""
    first, dot, rest = dotted(call.func).partition(".")
    return imports(source, source.scope_of(call)).get(first, first) + dot + rest


def _is_fixed(source: Source, call: cst.Call) -> bool:
    last = call.func.attr if isinstance(call.func, cst.Attribute) else call.func
    imported = last.value if isinstance(last, cst.Name) else ""
    return bool(imported) and _full(source, call) in _CLOCKS | _LOOKUPS
