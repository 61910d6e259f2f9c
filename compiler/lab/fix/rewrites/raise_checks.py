"""A check of tensor values that raises an exception becomes an assertion in the graph."""

from __future__ import annotations

import libcst as cst

from dynascope.compiler.lab.fix.candidate import Candidate, Condition, Problem
from dynascope.compiler.lab.fix.syntax import conditions
from dynascope.compiler.lab.fix.syntax.effects import is_pure
from dynascope.compiler.lab.fix.syntax.flow import small, statements
from dynascope.compiler.lab.fix.syntax.names import dotted
from dynascope.compiler.lab.fix.syntax.source_text import Source, candidate, parse
from dynascope.compiler.lab.fix.syntax.torch_names import Torch

_VALUES_LOST = ", with the message's text but not its values"
_GPU = "on a GPU the error is reported at a later synchronization"


def candidates(problem: Problem) -> list[Candidate]:
    """`if bad: raise Error(...)` and `assert good, f"..."` as `torch._assert_async`."""
    source = parse(problem.source)
    if source is None or problem.in_try:
        return []
    asserted = source.innermost(problem, cst.Assert, lambda n: n.test)
    if asserted is None and problem.column is not None:
        asserted = source.innermost(problem, cst.Assert)
    if asserted is not None:
        return _assert(problem, source, asserted)
    branch = source.branch_at(problem)
    return _raise(problem, source, branch) if branch is not None else []


def _assert(problem: Problem, source: Source, node: cst.Assert) -> list[Candidate]:
    torch = Torch(source, source.scope_of(node))
    good = conditions.as_tensor(source, torch, node.test)
    if good is None or conditions.is_python(node.test) or not is_pure(torch, node.test):
        return []
    message = _message(source, node.msg)
    changes = [(source.start(node), source.end(node), _call(torch, good, message)), *torch.changes()]
    precision = conditions.precision(source, node.test)
    assumption = f"Raises RuntimeError instead of AssertionError{_shortened(node.msg)}; {_GPU}.{precision}"
    return candidate(
        problem, source, "Assert inside the graph", changes, assumption, conditions.parts(source, torch, node.test)
    )


def _raise(problem: Problem, source: Source, branch: cst.If) -> list[Candidate]:
    if conditions.is_python(branch.test) or not source.stands_alone(branch):
        return []
    torch = Torch(source, source.scope_of(branch))
    lines, shortened = source.comments(*source.lines(branch)), ""
    tests: list[Condition] = []
    asked: list[cst.BaseExpression] = []
    kinds: list[str] = []
    at: cst.If | None = branch
    while at is not None:
        raised = small(statements(at.body))
        if len(raised) != 1 or not isinstance(raised[0], cst.Raise) or raised[0].exc is None or not is_pure(torch, at.test):
            return []
        error = raised[0].exc
        good = conditions.negated(source, torch, at.test)
        if good is None or conditions.is_python(at.test):
            return []
        text = error.args[0].value if isinstance(error, cst.Call) and error.args else None
        lines.append(_call(torch, good, _message(source, text)))
        tests += conditions.parts(source, torch, at.test)
        asked.append(at.test)
        kinds.append(dotted(error.func if isinstance(error, cst.Call) else error) or "another exception")
        has_more = isinstance(error, cst.Call) and len(error.args) > 1
        shortened = shortened or (_VALUES_LOST if has_more else _shortened(text))
        if at.orelse is not None and not isinstance(at.orelse, cst.If):
            return []
        at = at.orelse
    indent = source.indent(branch)
    start, end = source.whole_lines(branch)
    changes = [(start, end, "".join(f"{indent}{line}\n" for line in lines)), *torch.changes()]
    changed = [k for k in dict.fromkeys(kinds) if k != "RuntimeError"]
    first = (
        f"Raises RuntimeError instead of {' and '.join(changed)}" if changed else "Raises RuntimeError from inside the graph"
    )
    return candidate(
        problem,
        source,
        "Assert inside the graph",
        changes,
        f"{first}{shortened}; {_GPU}.{conditions.precision(source, *asked)}",
        tuple(tests),
    )


def _call(torch: Torch, good: str, message: str) -> str:
    return f"{torch('_assert_async')}({good}, {message})"


def _message(source: Source, text: cst.BaseExpression | None) -> str:
    """The message as a constant, with the source text of f-string fields and other code: no values are known inside a graph."""
    if isinstance(text, cst.SimpleString | cst.ConcatenatedString) and "f" not in _prefixes(text):
        return source.text_of(text)
    if isinstance(text, cst.FormattedString | cst.ConcatenatedString):
        return repr(_constant_parts(source, text))
    return repr(source.text_of(text)) if text is not None else '"check failed"'


def _prefixes(text: cst.SimpleString | cst.ConcatenatedString | cst.FormattedString | cst.BaseExpression) -> str:
    if isinstance(text, cst.ConcatenatedString):
        return _prefixes(text.left) + _prefixes(text.right)
    return text.prefix.lower() if isinstance(text, cst.SimpleString) else "f"


def _constant_parts(source: Source, text: cst.BaseExpression) -> str:
    if isinstance(text, cst.ConcatenatedString):
        return _constant_parts(source, text.left) + _constant_parts(source, text.right)
    if isinstance(text, cst.SimpleString):
        value = text.evaluated_value
        return value if isinstance(value, str) else ""
    if isinstance(text, cst.FormattedString):
        parts = [
            p.value.replace("{{", "{").replace("}}", "}")
            if isinstance(p, cst.FormattedStringText)
            else "{" + source.text_of(p.expression) + "}"
            for p in text.parts
            if isinstance(p, cst.FormattedStringText | cst.FormattedStringExpression)
        ]
        return "".join(parts)
    return ""


def _shortened(text: cst.BaseExpression | None) -> str:
    constant = text is None or (isinstance(text, cst.SimpleString | cst.ConcatenatedString) and "f" not in _prefixes(text))
    return "" if constant else _VALUES_LOST
