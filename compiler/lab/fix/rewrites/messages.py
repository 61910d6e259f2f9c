"""Messages (prints, warnings, logs) move after the graph, or after the last tensor operation of the function, in order."""

from __future__ import annotations

import ast
import itertools
from functools import partial

from dynascope.compiler.lab.fix.candidate import Candidate, Problem
from dynascope.compiler.lab.fix.rewrites.reading import is_python, number_of, uses
from dynascope.compiler.lab.fix.rewrites.source import FUNCTIONS, Change, Rewrite, Source, applicable, dotted, parse, require
from dynascope.compiler.lab.fix.text_edits import NotApplicable

_LATER = "Messages are written after the last tensor operation of the function: not at all if one in between raises."
_BEHIND = "Messages are written after their graph: not if an operation of it raises, or where other compiled code calls this."
_EACH_SIZE = "Each size in them may get a compiled version of its own."
_LEVELS = {"debug", "info", "warning", "warn", "error", "exception", "critical", "log"}
_WRITERS = ("print", "warnings.warn", "warn", "sys.stdout.write", "sys.stderr.write", "sys.stdout.flush")
_COMPUTING = (ast.Call, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Subscript)
_SETTINGS = {"torch._dynamo.config.reorderable_logging_functions": ["builtins.print"]}


def candidates(problem: Problem) -> list[Candidate]:
    """First a `print` that the compiler itself can move, then this and all later messages moved to the end of the function."""
    source = parse(problem.source)
    statement = source.branch_at(problem, ast.If) or require(source.innermost(problem, ast.Expr))
    require(_is_message(statement))
    return applicable(problem, partial(_printed, False), partial(_printed, True), partial(_moved, statement))


def _is_message(node: ast.AST) -> bool:
    """Whether a statement only prints, warns or logs."""
    match node:
        case ast.If(test=test, body=body, orelse=others):
            return all(map(_is_message, [*body, *others])) and not uses(test).stores
        case ast.Expr(value=ast.Call(func=function)) if dotted(function) in _WRITERS:
            return True
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=base, attr=level))) if level in _LEVELS:
            words = dotted(getattr(base, "func", base)).lower().split(".")
            return any(word.strip("_") in ("logging", "logger", "log", "getlogger") for word in words)
    return False


def _printed(with_copies: bool, problem: Problem) -> Candidate:
    """`print(x.item())` as `print(f"{x}")`, which the compiler moves after the graph, together with the setting for it.

    With copies of values: a tensor may be changed in place after the message.
    """
    statement = require(parse(problem.source).innermost(problem, ast.Expr))
    rewrite, call, changes = Rewrite(problem, statement), statement.value, list[Change]()
    source = rewrite.source
    if not isinstance(call, ast.Call) or dotted(call.func) != "print":
        raise NotApplicable
    assumes = _BEHIND
    for value in call.args:
        # the compiler moves formatted strings, but not sizes and types
        kept = value if _is_of_the_trace(value) else _of_item(value)
        if kept is not None and not set('"\n') & set(source.text_of(kept)):
            changes += _around(source, value, kept, 'f"{', '}"')
            assumes = f"{_BEHIND} {_EACH_SIZE}" if kept is value else assumes
        for field in value.values if isinstance(value, ast.JoinedStr) else ():
            match field:
                case ast.FormattedValue(value=number, conversion=-1) if (kept := _of_item(number)) is not None:
                    changes += _around(source, number, kept, "", "")
    if not with_copies:
        return rewrite.candidate("Print values and sizes as text, after the graph", changes, assumes, _SETTINGS)
    names = [leaf for value in call.args for leaf in _leaves(value) if isinstance(leaf, ast.Name)]
    changes += [(source.end(name), source.end(name), ".clone()") for name in require(names or None)]
    return rewrite.candidate("Print copies of values, after the graph", changes, assumes, _SETTINGS)


def _of_item(value: ast.expr) -> ast.expr | None:
    """`x` for `x.item()`."""
    number = number_of(value)
    return number[0] if number is not None and number[1] == "item" else None


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


def _moved(statement: ast.stmt, problem: Problem) -> Candidate:
    """The messages of a function's own block, from this one on, at its end.

    Values that must be computed are still computed in the old place of their message, except in an `if` on values.
    """
    rewrite = Rewrite(problem, statement)
    source, block = rewrite.source, rewrite.scope.body if isinstance(rewrite.scope, FUNCTIONS) else []
    around = {statement, *source.ancestors(statement)}
    rest = list(itertools.dropwhile(lambda s: s not in around, block))
    messages, others = [s for s in rest if _is_message(s)], [s for s in rest if not _is_message(s)]
    last = others[-1] if others and isinstance(others[-1], ast.Return) else None
    require(others and rest[0] in messages and not uses(*(s for s in others if s is not last)).jumps)
    require(all(map(source.stands_alone, messages)))
    changes, lines, taken = list[Change](), "", list[str]()
    for one in messages:
        rewritten = uses(*(s for s in others if s.lineno > one.lineno)).writes
        saved, names = list[str](), list[Change]()
        for leaf in _values(one):
            if isinstance(leaf, ast.Name) and leaf.id not in rewritten:
                continue
            if isinstance(one, ast.If) and not isinstance(leaf, ast.Name) and not is_python(one.test):
                require(not uses(leaf).reads & rewritten)
                continue
            name = source.unused_name("logged", *taken)
            taken.append(name)
            saved.append(f"{source.indent(one)}{name} = {source.text_of(leaf)}\n")
            names.append((source.start(leaf), source.end(leaf), name))
        start, end = source.whole_lines(one)
        changes.append((start, end, "".join(saved)))
        lines += source.changed(start, end, names).rstrip("\n") + "\n"
    start, end = source.whole_lines(block[-1])
    line_end = "" if source.text[end - 1] == "\n" else "\n"
    if last is None:
        changes.append((end, end, line_end + lines))
    elif not source.stands_alone(last):
        raise NotApplicable
    elif not any(isinstance(n, _COMPUTING) for n in ast.walk(last)):
        changes.append((start, start, lines))
    else:
        name, head = source.unused_name("result"), source.start(last)
        changes.append((head, head + len("return"), f"{name} ="))
        changes.append((end, end, f"{line_end}{lines}{source.indent(last)}return {name}\n"))
    return rewrite.candidate("Write messages after the last tensor operation", changes, _LATER)


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
    is_class = isinstance(value, ast.Name) and value.id[:1].isupper()  # the category of a warning
    if isinstance(value, ast.Constant | ast.Lambda) or is_class or dotted(value).startswith(("sys.", "warnings.")):
        return []
    return _numbers(value) or [value]


def _numbers(value: ast.AST) -> list[ast.expr]:
    number = number_of(value)
    return [number[0]] if number is not None else [n for child in ast.iter_child_nodes(value) for n in _numbers(child)]
