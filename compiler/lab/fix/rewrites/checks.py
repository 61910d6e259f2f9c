"""A check of tensor values that raises an exception becomes an assertion in the graph."""

from __future__ import annotations

import ast

from dynascope.compiler.lab.fix.candidate import Candidate, Condition, Problem
from dynascope.compiler.lab.fix.rewrites import conditions
from dynascope.compiler.lab.fix.rewrites.reading import is_pure
from dynascope.compiler.lab.fix.rewrites.source import Source, Torch, candidate, dotted, parse

_VALUES_LOST = ", with the message's text but not its values"
_GPU = "on a GPU the error is reported at a later synchronization"


def candidates(problem: Problem) -> list[Candidate]:
    """`if bad: raise Error(...)` and `assert good, f"..."` as `torch._assert_async`."""
    source = parse(problem.source)
    if source is None or problem.in_try:
        return []
    asserted = source.innermost(problem, ast.Assert)
    checked: list[tuple[ast.expr, ast.expr | None]] = []  # conditions that are good or, for `raise`, bad, and the messages
    kinds, statement = ["AssertionError"], asserted or source.branch_at(problem, ast.If)
    if asserted is not None:
        checked.append((asserted.test, asserted.msg))
    elif statement is not None and source.stands_alone(statement):
        kinds, at = [], [statement]
        while at:
            branch = at[0]
            raised = branch.body[0] if isinstance(branch, ast.If) and len(branch.body) == 1 else None
            if not isinstance(raised, ast.Raise) or raised.exc is None or not isinstance(branch, ast.If) or len(at) > 1:
                return []
            given = raised.exc.args if isinstance(raised.exc, ast.Call) else []
            # more arguments than the message are lost, too
            checked.append((branch.test, ast.Tuple(given, ast.Load()) if len(given) > 1 else next(iter(given), None)))
            kinds.append(dotted(raised.exc.func if isinstance(raised.exc, ast.Call) else raised.exc) or "another exception")
            at = branch.orelse  # type: ignore[assignment]
    if statement is None or not checked:
        return []
    torch, lines, shortened, tests = Torch(source, source.scope_of(statement)), list[str](), "", list[Condition]()
    for test, message in checked:
        good = (conditions.as_tensor if asserted is not None else conditions.negated)(source, torch, test)
        if good is None or conditions.is_python(test) or not is_pure(torch, test):
            return []
        text = message.elts[0] if isinstance(message, ast.Tuple) and not hasattr(message, "lineno") else message
        lines.append(f"{torch('_assert_async')}({good}, {_message(source, text)})")
        is_constant = message is None or (isinstance(message, ast.Constant) and isinstance(message.value, str))
        shortened, tests = shortened if is_constant else _VALUES_LOST, [*tests, *conditions.parts(source, torch, test)]
    indent = source.indent(statement)
    if asserted is not None:
        changes = [(source.start(asserted), source.end(asserted), lines[0])]
    else:
        lines = [*source.comments(statement.lineno, statement.end_lineno or 0), *lines]
        changes = [(*source.whole_lines(statement), "".join(f"{indent}{line}\n" for line in lines))]
    changed = " and ".join(k for k in dict.fromkeys(kinds) if k != "RuntimeError")
    first = f"Raises RuntimeError instead of {changed}" if changed else "Raises RuntimeError from inside the graph"
    assumption = f"{first}{shortened}; {_GPU}.{conditions.precision(source, *(test for test, _ in checked))}"
    return candidate(problem, source, "Assert inside the graph", [*changes, *torch.changes()], assumption, tuple(tests))


def _message(source: Source, text: ast.expr | None) -> str:
    """The message as a constant, with the source text of f-string fields and other code: no values are known inside a graph."""
    if isinstance(text, ast.Constant) and isinstance(text.value, str):
        return source.text_of(text)
    if isinstance(text, ast.JoinedStr):
        fields = [(getattr(part, "value", part), isinstance(part, ast.Constant)) for part in text.values]
        return repr("".join(str(value) if is_text else f"{{{ast.unparse(value)}}}" for value, is_text in fields))
    return repr(source.text_of(text)) if text is not None else '"check failed"'
