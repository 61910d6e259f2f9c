"""A number that is only kept, for a log perhaps, stays a tensor until the end of the function."""

from __future__ import annotations

import libcst as cst

from dynascope.compiler.lab.fix.candidate import Candidate, Problem
from dynascope.compiler.lab.fix.rewrites.branch_parts import is_starred
from dynascope.compiler.lab.fix.rewrites.printing import at_the_end, at_top, is_observer
from dynascope.compiler.lab.fix.syntax.conditions import grouped, number_of
from dynascope.compiler.lab.fix.syntax.effects import computes, may_change_in_place
from dynascope.compiler.lab.fix.syntax.flow import small
from dynascope.compiler.lab.fix.syntax.names import dotted, unused_name, uses
from dynascope.compiler.lab.fix.syntax.source_text import Change, Source, candidate, parse

_LATER = "The number is taken after the last tensor operation of the function."


def candidates(problem: Problem) -> list[Candidate]:
    """`loss = x.item()`, `self.loss = x.item()` and `losses.append(x.item())`: the number is taken at the end."""
    source = parse(problem.source)
    if source is None:
        return []
    call = source.innermost(problem, cst.Call, lambda n: n if number_of(n) is not None else None)
    statement = source.innermost(problem, cst.SimpleStatementLine)
    if call is None or statement is None or len(statement.body) != 1 or not source.stands_alone(statement):
        return []
    scope = source.scope_of(statement)
    if not isinstance(scope, cst.FunctionDef) or not isinstance(scope.body, cst.IndentedBlock):
        return []
    kept = statement.body[0]
    if isinstance(kept, cst.Assign) and len(kept.targets) == 1 and kept.value is call:
        target = kept.targets[0].target
        if isinstance(target, cst.Name):
            return _local(problem, source, scope, statement, call, target.value)
        if isinstance(target, cst.Attribute | cst.Subscript):
            return _stored_later(problem, source, scope, statement, call)
    if isinstance(kept, cst.Expr) and isinstance(kept.value, cst.Call) and _appends(kept.value, call):
        return _stored_later(problem, source, scope, statement, call)
    return []


def _appends(call: cst.Call, number: cst.Call) -> bool:
    name = call.func.attr.value if isinstance(call.func, cst.Attribute) else ""
    return name == "append" and len(call.args) == 1 and call.args[0].value is number


def _inner(source: Source, call: cst.Call) -> tuple[str, str]:
    """The detached tensor that a number is taken from, and the conversion: "item", "float", "int" or "bool"."""
    inner, kind = number_of(call) or (call, "item")
    copied = ".clone()" if may_change_in_place(inner, source.scope_of(call)) else ""
    return f"{grouped(inner, source.text_of(inner))}.detach(){copied}", kind


def _number(name: str, kind: str) -> str:
    return f"{name}.item()" if kind == "item" else f"{kind}({name})"


def _kept(source: Source, call: cst.Call) -> tuple[int, int, str]:
    return source.start(call), source.end(call), _inner(source, call)[0]


def _local(
    problem: Problem, source: Source, scope: cst.FunctionDef, statement: cst.SimpleStatementLine, call: cst.Call, name: str
) -> list[Candidate]:
    """Candidates for a local number that is used only in messages, in stores to objects and in the return value."""
    top = at_top(source, scope, statement)
    block = list(scope.body.body)
    if top is not statement:
        return []
    after = block[block.index(statement) + 1 :]
    if name in uses(*after).writes:
        return []
    users = [s for s in after if name in uses(s).reads]
    last = block[-1]
    returned = small([last])[0] if isinstance(last, cst.SimpleStatementLine) else None
    moving = [s for s in users if s is not last or not isinstance(returned, cst.Return)]
    if any(name == n.value for s in users for n in _arithmetic(s)) or len(users) == 0:
        return []
    middle = [s for s in after if s not in moving and s is not last]
    if any(isinstance(j, cst.Return | cst.Raise) for s in middle for j in uses(s).jumps):
        return []
    if any(not is_observer(source, s) and not _stores(s) for s in moving) or any(is_observer(source, s) for s in middle):
        return []
    if any((uses(s).reads - {name}) & uses(*middle).writes for s in moving):
        return []
    indent = source.indent(statement)
    lines = [f"{name} = {_number(name, _inner(source, call)[1])}"]
    changes: list[Change] = [_kept(source, call)]
    for one in moving:
        if not source.can_be_indented(one, source.indent(scope.body.body[0])):
            return []
        lines += [line.removeprefix(indent) for line in source.lines_text(one).rstrip("\n").split("\n")]
        changes.append((*source.whole_lines(one), ""))
    if isinstance(returned, cst.Return) and returned.value is not None and name in uses(returned.value).reads:
        ending = _return_with(source, last, returned, name, lines)
    else:
        ending = at_the_end(source, scope, lines)
    if ending is None or not (middle or (isinstance(returned, cst.Return) and computes(returned))):
        return []
    return candidate(problem, source, "Take the number at the end", [*changes, *ending], _LATER)


def _arithmetic(node: cst.CSTNode) -> list[cst.Name]:
    """Names that are operands of arithmetic; the number must not be one of them."""
    found: list[cst.Name] = []
    pending: list[cst.CSTNode] = [node]
    while pending:
        one = pending.pop()
        if isinstance(one, cst.BinaryOperation) and not isinstance(one.left, cst.BaseString):
            found += [n for n in (one.left, one.right) if isinstance(n, cst.Name)]
        pending.extend(one.children)
    return found


def _stores(one: cst.CSTNode) -> bool:
    """Whether a statement keeps a value in an attribute, an item or a list."""
    inner = small([one])
    kept = inner[0] if len(inner) == 1 else None
    if isinstance(kept, cst.Assign):
        return all(isinstance(t.target, cst.Attribute | cst.Subscript) for t in kept.targets)
    return isinstance(kept, cst.Expr) and isinstance(kept.value, cst.Call) and dotted(kept.value.func).endswith(".append")


def _return_with(source: Source, last: cst.CSTNode, returned: cst.Return, name: str, lines: list[str]) -> list[Change] | None:
    """The changes to `return y * 2, loss`: `y * 2` is computed before the number is taken."""
    value = returned.value
    if not isinstance(value, cst.Tuple) or not source.stands_alone(last):
        return at_the_end(source, source.scope_of(last), lines) if isinstance(value, cst.Name) else None  # type: ignore[arg-type]
    if is_starred(value):
        return None
    indent = source.indent(last)
    above, parts, taken = [], [], [name]
    for element in value.elements:
        part = element.value
        if dotted(part) or name in uses(part).reads:
            parts.append(source.argument(part))
        else:
            new = unused_name(source, "result", *taken)
            taken.append(new)
            above.append(f"{new} = {source.text_of(part)}")
            parts.append(new)
    start, end = source.whole_lines(last)
    text = [*above, *lines, f"return {', '.join(parts)}{',' if len(parts) == 1 else ''}"]
    return [(start, end, "".join(f"{indent}{line}\n" for line in text))]


def _stored_later(
    problem: Problem, source: Source, scope: cst.FunctionDef, statement: cst.SimpleStatementLine, call: cst.Call
) -> list[Candidate]:
    """The statement that stores the number moves to the end of the function."""
    block = list(scope.body.body)
    if statement not in block:
        return []
    after = block[block.index(statement) + 1 :]
    last = small(after[-1:])
    middle = after[:-1] if last and isinstance(last[0], cst.Return) else after
    read = uses(statement).reads - uses(call).reads
    if read & uses(*after).writes or any(uses(s).jumps for s in middle):
        return []
    kept = small([statement])[0]
    target = dotted(kept.targets[0].target) if isinstance(kept, cst.Assign) else ""
    if target and any(target in source.text_of(s) for s in after):
        return []
    name = unused_name(source, "kept")
    tensor, kind = _inner(source, call)
    indent = source.indent(statement)
    start, end = source.whole_lines(statement)
    text = source.lines_text(statement).rstrip("\n").removeprefix(indent)
    low = source.start(call) - source.start(statement)
    later = text[:low] + _number(name, kind) + text[low + source.end(call) - source.start(call) :]
    ending = at_the_end(source, scope, later.split("\n"))
    if ending is None or (not middle and len(ending) == 1):
        return []
    changes = [(start, end, f"{indent}{name} = {tensor}\n"), *ending]
    return candidate(problem, source, "Take the number at the end", changes, _LATER)
