"""Messages (prints, warnings, logs) move after the graph, or after the last tensor operation of the function, in order."""

from __future__ import annotations

import ast

from dynascope.compiler.lab.fix.candidate import Candidate, Problem
from dynascope.compiler.lab.fix.rewrites.reading import computes, is_python, number_of, uses
from dynascope.compiler.lab.fix.rewrites.source import FUNCTIONS, Change, Source, candidate, dotted, parse

_LATER = "Messages are written after the last tensor operation of the function: not at all if one in between raises."
_BEHIND = "Messages are written after the graph that they stand in: not at all if one of its operations raises."
_LEVELS = {"debug", "info", "warning", "warn", "error", "exception", "critical", "log"}
_SETTINGS = {"torch._dynamo.config.reorderable_logging_functions": ["builtins.print"]}


def candidates(problem: Problem) -> list[Candidate]:
    """First a `print` that the compiler itself can move, then this and all later messages moved to the end of the function."""
    source = parse(problem.source)
    statement = None if source is None else source.branch_at(problem, ast.If) or source.innermost(problem, ast.Expr)
    if source is None or statement is None or not is_message(statement):
        return []
    inner = source.innermost(problem, ast.Expr) or statement
    return [*_printed_later(problem, source, inner), *_moved(problem, source, statement)]


def is_message(node: ast.AST) -> bool:
    """Whether a statement only prints, warns or logs."""
    if isinstance(node, ast.If):
        return all(map(is_message, [*node.body, *node.orelse])) and not uses(node.test).stores
    call = node.value if isinstance(node, ast.Expr) else None
    if not isinstance(call, ast.Call):
        return False
    name = dotted(call.func)
    if name in ("print", "warnings.warn", "warn", "sys.stdout.write", "sys.stderr.write", "sys.stdout.flush"):
        return True
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in _LEVELS:
        return False
    base = call.func.value
    words = dotted(base.func if isinstance(base, ast.Call) else base).lower().split(".")
    return any(word.strip("_") in ("logging", "logger", "log", "getlogger") for word in words)


def _printed_later(problem: Problem, source: Source, statement: ast.stmt) -> list[Candidate]:
    """`print(x.item())` as `print(f"{x}")`, which the compiler moves after the graph, together with the setting for it.

    The second candidate prints copies: a tensor may be changed in place after the message.
    """
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or dotted(call.func) != "print":
        return []
    changes: list[Change] = []
    for value in call.args:
        number = number_of(value)
        kept = number[0] if number is not None and number[1] == "item" else None
        if _is_of_the_trace(value):
            kept = value  # the compiler moves formatted strings, but not sizes and types
        if kept is not None and not set('"\n') & set(source.text_of(kept)):
            changes += _around(source, value, kept, 'f"{', '}"')
        for field in value.values if isinstance(value, ast.JoinedStr) else ():
            inner = number_of(field.value) if isinstance(field, ast.FormattedValue) else None
            if inner is not None and inner[1] == "item" and isinstance(field, ast.FormattedValue) and field.conversion == -1:
                changes += _around(source, field.value, inner[0], "", "")
    names = [leaf for value in call.args for leaf in _leaves(value) if isinstance(leaf, ast.Name)]
    copies = [(source.end(name), source.end(name), ".clone()") for name in names]
    made = candidate(problem, source, "Print values and sizes as text, after the graph", changes, _BEHIND, (), _SETTINGS)
    title = "Print copies of values, after the graph"
    return made + (candidate(problem, source, title, [*changes, *copies], _BEHIND, (), _SETTINGS) if copies else [])


def _is_of_the_trace(value: ast.expr) -> bool:
    """Whether a value is known when the code is traced, and no text: a size, a type, or a tuple or list of these."""
    if isinstance(value, ast.Tuple | ast.List):
        return bool(value.elts) and all(map(_is_of_the_trace, value.elts))
    if isinstance(value, ast.Call) and dotted(value.func) in ("tuple", "list"):
        return len(value.args) == 1 and _is_of_the_trace(value.args[0])
    return not isinstance(value, ast.Constant) and is_python(value)


def _around(source: Source, whole: ast.expr, kept: ast.expr, before: str, after: str) -> list[Change]:
    """Replace what is around the kept part, so that the part itself can have changes of its own."""
    return [(source.start(whole), source.start(kept), before), (source.end(kept), source.end(whole), after)]


def _moved(problem: Problem, source: Source, statement: ast.stmt) -> list[Candidate]:
    """The messages of a function's own block, from this one on, at its end.

    Values that must be computed are still computed in the old place of their message, except in an `if` on values.
    """
    scope = source.scope_of(statement)
    block = scope.body if isinstance(scope, FUNCTIONS) else []
    top = next((s for s in (statement, *source.ancestors(statement)) if s in block), None)
    rest = block[block.index(top) :] if isinstance(top, ast.stmt) else []
    tops, others = [s for s in rest if is_message(s)], [s for s in rest if not is_message(s)]
    last = others[-1] if others and isinstance(others[-1], ast.Return) else None
    middle = others[:-1] if last is not None else others
    if not tops or top not in tops or not others or any(uses(s).jumps for s in middle):
        return []
    changes: list[Change] = []
    lines, taken = list[str](), list[str]()
    for one in tops:
        after = [s for s in others if s.lineno > one.lineno]
        rewritten, saved, names = uses(*after).writes, list[str](), list[Change]()
        for leaf in _values(one):
            if isinstance(leaf, ast.Name) and leaf.id not in rewritten:
                continue
            if isinstance(one, ast.If) and not isinstance(leaf, ast.Name) and not is_python(one.test):
                if uses(leaf).reads & rewritten:
                    return []
                continue
            name = source.unused_name("logged", *taken)
            taken.append(name)
            saved.append(f"{name} = {source.text_of(leaf)}")
            names.append((source.start(leaf), source.end(leaf), name))
        if not source.stands_alone(one):
            return []
        start, end = source.whole_lines(one)
        changes.append((start, end, "".join(f"{source.indent(one)}{line}\n" for line in saved)))
        lines.append(source.changed(start, end, names).rstrip("\n") + "\n")
    ending = _at_the_end(source, block[-1], last, "".join(lines))
    return [] if ending is None else candidate(
        problem, source, "Write messages after the last tensor operation", [*changes, *ending], _LATER
    )  # fmt: skip


def _values(node: ast.stmt) -> list[ast.expr]:
    """The values that a message is made of: arguments, the fields of f-strings, and the tensors of `.item()`."""
    if isinstance(node, ast.If):
        return [*_numbers(node.test), *(leaf for s in (*node.body, *node.orelse) for leaf in _values(s))]
    return [leaf for a in getattr(getattr(node, "value", None), "args", ()) for leaf in _leaves(a)]


def _leaves(value: ast.expr) -> list[ast.expr]:
    if isinstance(value, ast.JoinedStr):
        return [leaf for part in value.values if isinstance(part, ast.FormattedValue) for leaf in _leaves(part.value)]
    if isinstance(value, ast.BinOp) and isinstance(value.left, ast.Constant):  # "%s" % x
        return [leaf for part in getattr(value.right, "elts", [value.right]) for leaf in _leaves(part)]
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and isinstance(value.func.value, ast.Constant):
        return [leaf for a in value.args for leaf in _leaves(a)]
    if isinstance(value, ast.Constant | ast.Lambda) or dotted(value).startswith(("sys.", "warnings.")):
        return []
    if isinstance(value, ast.Name) and value.id[:1].isupper():  # a class: the category of a warning
        return []
    return _numbers(value) or [value]


def _numbers(value: ast.AST) -> list[ast.expr]:
    number = number_of(value)
    return [number[0]] if number is not None else [n for child in ast.iter_child_nodes(value) for n in _numbers(child)]


def _at_the_end(source: Source, last: ast.stmt, returned: ast.Return | None, text: str) -> list[Change] | None:
    """The changes that run these lines just before a function returns; None if its last statement does not allow it."""
    if returned is None:
        end = source.whole_lines(last)[1]
        return [(end, end, ("" if source.text[end - 1] == "\n" else "\n") + text)]
    start, end = source.whole_lines(returned)
    if not source.stands_alone(returned):
        return None
    if returned.value is None or not computes(returned):
        return [(start, start, text)]
    name, indent = source.unused_name("result"), source.indent(returned)
    line_end = "" if source.text[end - 1] == "\n" else "\n"
    head = source.start(returned), source.start(returned) + len("return")
    return [(*head, f"{name} ="), (end, end, f"{line_end}{text}{indent}return {name}\n")]
