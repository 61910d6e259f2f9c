"""Messages (prints, warnings, logs) move after the graph, or after the last tensor operation of the function, in order."""

from __future__ import annotations

from dataclasses import dataclass, field

import libcst as cst

from dynascope.compiler.lab.fix.candidate import Candidate, Problem
from dynascope.compiler.lab.fix.syntax.conditions import is_python, number_of
from dynascope.compiler.lab.fix.syntax.effects import changed_in_place, computes
from dynascope.compiler.lab.fix.syntax.flow import small, statements
from dynascope.compiler.lab.fix.syntax.names import dotted, unused_name, uses
from dynascope.compiler.lab.fix.syntax.source_text import STATEMENTS, Change, Source, candidate, parse

_LATER = "Messages are written after the last tensor operation of the function: not at all if one in between raises."
_BEHIND = "Messages are written after the graph that they stand in: not at all if one of its operations raises."
_LEVELS = {"debug", "info", "warning", "warn", "error", "exception", "critical", "log"}


def candidates(problem: Problem) -> list[Candidate]:
    """First a `print` that the compiler itself can move, then this and all later messages moved to the end of the function."""
    source = parse(problem.source)
    if source is None:
        return []
    statement = observer_at(source, problem)
    if statement is None:
        return []
    line = source.innermost(problem, cst.SimpleStatementLine) or statement
    return [*_reorderable(problem, source, line), *_moved(problem, source, statement)]


def observer_at(source: Source, problem: Problem) -> cst.CSTNode | None:
    """The message statement at a problem, or the outermost `if` around it that contains only messages; else None."""
    found: cst.CSTNode | None = source.branch_at(problem) or source.innermost(problem, cst.SimpleStatementLine)
    if found is None or not is_observer(source, found):
        return None
    return _outermost(source, found)


def _outermost(source: Source, observer: cst.CSTNode) -> cst.CSTNode:
    """A message statement, or the outermost `if` around it that contains only messages."""
    above = source.parent(observer)
    above = source.parent(above) if isinstance(above, cst.IndentedBlock | cst.SimpleStatementSuite) else above
    above = source.parent(above) if isinstance(above, cst.Else) else above
    return _outermost(source, above) if isinstance(above, cst.If) and is_observer(source, above) else observer


def is_observer(source: Source, node: cst.CSTNode) -> bool:
    """Whether a statement only prints, warns or logs."""
    if isinstance(node, cst.If):
        sides = [*statements(node.body), *([node.orelse] if isinstance(node.orelse, cst.If) else statements(node.orelse))]
        return bool(sides) and all(is_observer(source, s) for s in sides) and not uses(node.test).stores
    if isinstance(node, cst.SimpleStatementLine):
        return bool(node.body) and all(is_observer(source, s) for s in node.body)
    return isinstance(node, cst.Expr) and isinstance(node.value, cst.Call) and _writes(source, node.value)


def _writes(source: Source, call: cst.Call) -> bool:
    name = dotted(call.func)
    if name == "print" or name in ("warnings.warn", "warn", "sys.stdout.write", "sys.stderr.write", "sys.stdout.flush"):
        return True
    if not isinstance(call.func, cst.Attribute) or call.func.attr.value not in _LEVELS:
        return False
    base = call.func.value
    base = base.func if isinstance(base, cst.Call) else base
    words = dotted(base).lower().split(".")
    return bool(words[-1]) and any(w.strip("_") in ("logging", "logger", "log", "getlogger") for w in words)


# messages that the compiler moves


def _reorderable(problem: Problem, source: Source, statement: cst.CSTNode) -> list[Candidate]:
    """`print(x.item())` as `print(f"{x}")`, which the compiler moves after the graph, together with the setting for it.

    If a tensor is changed in place after the message, a copy of it is printed, because the print now runs after the change.
    """
    if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
        return []
    expression = statement.body[0]
    call = expression.value if isinstance(expression, cst.Expr) else None
    if not isinstance(call, cst.Call) or dotted(call.func) != "print":
        return []
    copies = _copies(source, statement, call)
    changes = [*_as_text(source, call), *copies]
    if not changes:
        return []
    title = "Print copies of values, after the graph" if copies else "Print values and sizes as text, after the graph"
    settings: dict[str, object] = {"torch._dynamo.config.reorderable_logging_functions": ["builtins.print"]}
    return candidate(problem, source, title, changes, _BEHIND, (), settings)


def _copies(source: Source, statement: cst.CSTNode, call: cst.Call) -> list[Change]:
    """Adds `.clone()` to names whose values may be changed in place after the message, under this or another name."""
    scope = source.scope_of(statement)
    after = _after(source, scope, statement, [])
    if isinstance(scope, cst.FunctionDef) and (loop := _loop_of(source, scope, statement)) is not None:
        after = [*after, loop]
    names = [v for a in call.args if a.keyword is None for v in _leaves(a.value) if isinstance(v, cst.Name)]
    changed = [name for name in names if changed_in_place({name.value}, *after)]
    if not changed and changed_in_place(uses(*after).reads, *after):
        changed = names
    return [(source.end(name), source.end(name), ".clone()") for name in changed]


def _as_text(source: Source, call: cst.Call) -> list[Change]:
    """Turns `x.item()`, sizes and types that a message prints into fields of f-strings, and drops `.item()` in f-strings."""
    changes: list[Change] = []

    def replace(whole: cst.BaseExpression, kept: cst.BaseExpression, before: str, after: str) -> None:
        """Replace what is around the kept part, so that the part itself can have changes of its own."""
        changes.append((source.start(whole), source.start(kept), before))
        changes.append((source.end(kept), source.end(whole), after))

    for argument in call.args:
        value, number = argument.value, number_of(argument.value)
        kept = number[0] if number is not None and number[1] == "item" else None
        if isinstance(value, cst.Attribute) and is_python(value):
            kept = value  # the compiler moves formatted strings, but not sizes and types
        if kept is not None and argument.keyword is None and not argument.star and not set('"\n') & set(source.text_of(kept)):
            replace(value, kept, 'f"{', '}"')
        elif isinstance(value, cst.FormattedString):
            for part in value.parts:
                field = number_of(part.expression) if isinstance(part, cst.FormattedStringExpression) else None
                if field is None or not isinstance(part, cst.FormattedStringExpression):
                    continue
                if field[1] == "item" and part.conversion is None:
                    replace(part.expression, field[0], "", "")
    return changes


# messages that the rewrite moves


@dataclass
class Moved:
    """Messages that move to the end of a function."""

    #: what remains in the old places of the messages
    changes: list[Change] = field(default_factory=list)
    #: lines that run at the end, without the indentation of the function's body
    lines: list[str] = field(default_factory=list)


def _moved(problem: Problem, source: Source, statement: cst.CSTNode) -> list[Candidate]:
    scope = source.scope_of(statement)
    if not isinstance(scope, cst.FunctionDef) or not isinstance(scope.body, cst.IndentedBlock):
        return []
    outermost = at_top(source, scope, statement)
    if outermost is None:
        return []
    block: list[cst.CSTNode] = list(scope.body.body)
    rest = block[block.index(outermost) :]
    lines: list[cst.CSTNode] = [*source.inside(scope, cst.SimpleStatementLine), *source.inside(scope, cst.If)]
    later = [s for s in lines if is_observer(source, s) and source.scope_of(s) is scope]
    later = [s for s in later if source.start(s) >= source.start(rest[0])]
    tops = sorted({_outermost(source, s) for s in later}, key=source.start)
    if not tops or any(at_top(source, scope, t) is None for t in tops) or not _something_follows(source, rest, tops):
        return []
    looped = any(_loop_of(source, scope, t) is not None for t in tops)
    moved = _in_functions(source, scope, tops) if looped else _one_by_one(source, scope, tops)
    if moved is None:
        return []
    end = at_the_end(source, scope, moved.lines)
    if end is None:
        return []
    changes = [*moved.changes, *end]
    return candidate(problem, source, "Write messages after the last tensor operation", changes, _LATER)


def at_top(source: Source, scope: cst.FunctionDef, statement: cst.CSTNode) -> cst.CSTNode | None:
    """The statement of the function's own block that contains `statement`; None unless only `with` and loops lie between."""
    found = statement
    while source.parent(found) is not scope.body:
        above = source.parent(found)
        outer = source.parent(above) if isinstance(above, cst.IndentedBlock) else None
        if not isinstance(outer, cst.With | cst.For | cst.While):
            return None
        found = outer
    return found


def _loop_of(source: Source, scope: cst.FunctionDef, statement: cst.CSTNode) -> cst.For | cst.While | None:
    loops = [a for a in source.ancestors(statement) if isinstance(a, cst.For | cst.While) and source.scope_of(a) is scope]
    return loops[-1] if loops else None


def _something_follows(source: Source, rest: list[cst.CSTNode], tops: list[cst.CSTNode]) -> bool:
    """Whether it is of use and safe to move these messages.

    Not safe: after the first of them, a `yield`, a `return` that is not the function's last statement, or a store that may
    change what a moved `if` tests.
    """
    last = small(rest)[-1:]
    middle = [s for s in rest if s not in tops]
    if last and isinstance(last[0], cst.Return):
        middle = middle[:-1]
        computed = computes(last[0])
    else:
        computed = False
    if any(isinstance(j, cst.Return | cst.Yield) for s in middle for j in uses(s).jumps):
        return False
    if any(is_python(s.test) for s in tops if isinstance(s, cst.If)) and any(uses(s).stores for s in middle):
        return False
    return computed or bool(middle) or len(tops) > 1


def leaves_of(source: Source, node: cst.CSTNode) -> list[cst.BaseExpression]:
    """The values that a message is made of: arguments, the fields of f-strings, and the tensors of `.item()`."""
    if isinstance(node, cst.If):
        sides = [*statements(node.body), *([node.orelse] if isinstance(node.orelse, cst.If) else statements(node.orelse))]
        return [*_numbers(node.test), *(leaf for s in sides for leaf in leaves_of(source, s))]
    if isinstance(node, cst.SimpleStatementLine):
        return [leaf for s in node.body for leaf in leaves_of(source, s)]
    if isinstance(node, cst.Expr) and isinstance(node.value, cst.Call):
        return [leaf for a in node.value.args for leaf in _leaves(a.value)]
    return []


def _leaves(value: cst.BaseExpression) -> list[cst.BaseExpression]:
    if isinstance(value, cst.FormattedString):
        fields = [p.expression for p in value.parts if isinstance(p, cst.FormattedStringExpression)]
        return [leaf for f in fields for leaf in _leaves(f)]
    if isinstance(value, cst.ConcatenatedString):
        return [*_leaves(value.left), *_leaves(value.right)]
    if isinstance(value, cst.SimpleString | cst.Integer | cst.Float | cst.Lambda) or dotted(value) in ("True", "False", "None"):
        return []
    if isinstance(value, cst.Attribute) and dotted(value).startswith(("sys.", "warnings.")):
        return []
    if isinstance(value, cst.BinaryOperation) and isinstance(value.left, cst.BaseString):
        right = value.right
        parts = [e.value for e in right.elements] if isinstance(right, cst.Tuple) else [right]
        return [leaf for p in parts for leaf in _leaves(p)]
    if isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute) and isinstance(value.func.value, cst.BaseString):
        return [leaf for a in value.args for leaf in _leaves(a.value)]
    if isinstance(value, cst.Name) and value.value[:1].isupper():  # a class: the category of a warning
        return []
    numbers = _numbers(value)
    return numbers or [value]


def _numbers(value: cst.CSTNode) -> list[cst.BaseExpression]:
    number = number_of(value) if isinstance(value, cst.BaseExpression) else None
    if number is not None:
        return [number[0]]
    return [n for child in value.children for n in _numbers(child)]


def _one_by_one(source: Source, scope: cst.FunctionDef, tops: list[cst.CSTNode]) -> Moved | None:
    """The messages in order; None if one of them cannot move.

    Values that must be computed are still computed in the old place of their message, except in an `if` on values.
    """
    moved = Moved()
    taken: list[str] = []
    for top in tops:
        if not source.stands_alone(top) and not isinstance(top, cst.If):
            return None
        after = _after(source, scope, top, tops)
        rewritten = uses(*after).writes
        reads = uses(top).reads
        if changed_in_place(reads, *after):
            return None
        lines, names = [], []
        for leaf in leaves_of(source, top):
            text = source.text_of(leaf)
            if isinstance(leaf, cst.Name) and leaf.value not in rewritten:
                continue
            if isinstance(top, cst.If) and not isinstance(leaf, cst.Name) and not is_python(top.test):
                if uses(leaf).reads & rewritten:
                    return None
                continue
            name = unused_name(source, "logged", *taken)
            taken.append(name)
            lines.append(f"{name} = {text}")
            names.append((source.start(leaf), source.end(leaf), name))
        if not source.can_be_indented(top, source.indent(scope.body.body[0])):
            return None
        indent = source.indent(top)
        kept = [line.removeprefix(indent) for line in (_edited(source, top, names) + _comment(source, top)).split("\n")]
        if uses(cst.parse_statement("\n".join(kept) + "\n")).reads & rewritten:
            return None
        start, end = source.whole_lines(top)
        moved.changes.append((start, end, "".join(f"{indent}{line}\n" for line in lines)))
        moved.lines += kept
    return moved


def _after(source: Source, scope: cst.CSTNode, top: cst.CSTNode, tops: list[cst.CSTNode]) -> list[cst.CSTNode]:
    """The statements of the function below `top`, without those in `tops`."""
    end = source.end(top)
    return [
        s
        for s in source.inside(scope, *STATEMENTS)  # type: ignore[type-abstract]
        if source.scope_of(s) is scope and source.start(s) > end and not any(source.is_inside(s, t) for t in tops)
    ]


def _edited(source: Source, node: cst.CSTNode, names: list[Change]) -> str:
    """The text of a statement with these changes inside, without a comment at its end."""
    start = source.start(node)
    text = source.text[start : source.end(node)]
    for low, high, new in sorted(names, reverse=True):
        text = text[: low - start] + new + text[high - start :]
    return text.replace("\r\n", "\n")


def _comment(source: Source, node: cst.CSTNode) -> str:
    """The comment at the end of a statement, with two spaces before it; "" if there is none."""
    comment = source.text[source.end(node) : source.line_start(source.lines(node)[1] + 1)].strip()
    return f"  {comment}" if comment.startswith("#") else ""


def _in_functions(source: Source, scope: cst.FunctionDef, tops: list[cst.CSTNode]) -> Moved | None:
    """Messages in a loop: each turn keeps a function that writes the message with the values of this turn."""
    moved = Moved()
    kept = unused_name(source, "messages")
    first = _loop_of(source, scope, tops[0]) or tops[0]
    loops = [loop for t in tops if (loop := _loop_of(source, scope, t)) is not None]
    start = source.whole_lines(first)[0]
    moved.changes.append((start, start, f"{source.indent(first)}{kept} = []\n"))
    for top in tops:
        statement = small([top])
        if len(statement) != 1 or not isinstance(statement[0], cst.Expr) or not source.stands_alone(top):
            return None
        around = _loop_of(source, scope, top)
        after = [*_after(source, scope, top, tops), *([around] if around is not None else [])]
        reads = uses(top).reads
        if changed_in_place(reads, *after):
            return None
        names: list[Change] = []
        given: list[str] = []
        for leaf in leaves_of(source, top):
            text = source.text_of(leaf)
            name = text if isinstance(leaf, cst.Name) else unused_name(source, "logged", *(g.split("=")[0] for g in given))
            if not isinstance(leaf, cst.Name):
                names.append((source.start(leaf), source.end(leaf), name))
            if f"{name}={text}" not in given:
                given.append(f"{name}={text}")
        body = _edited(source, statement[0], names)
        left = uses(cst.parse_expression(body)).reads - {g.split("=")[0] for g in given}
        if left & uses(*after, *loops).writes or "\n" in body:
            return None
        place = (source.start(statement[0]), source.end(statement[0]))
        head = f"lambda {', '.join(given)}: " if given else "lambda: "
        moved.changes.append((*place, f"{kept}.append({head}{body})"))
    write, one = unused_name(source, "write_messages"), unused_name(source, "message")
    unit = source.indent_unit
    moved.lines += [f"def {write}():", f"{unit}for {one} in {kept}:", f"{unit}{unit}{one}()", f"{write}()"]
    return moved


def at_the_end(source: Source, scope: cst.FunctionDef, lines: list[str]) -> list[Change] | None:
    """The changes that run these lines just before a function returns; None if its last statement does not allow it."""
    last = scope.body.body[-1]
    indent = source.indent(last)
    inside = small([last])
    inner = inside[0] if len(inside) == 1 else None
    if isinstance(inner, cst.Return) and source.stands_alone(last):
        value = inner.value
        start, end = source.whole_lines(last)
        text = "".join(f"{indent}{line}\n" for line in lines)
        if value is None or _is_plain(value):
            return [(start, start, text)]
        name = unused_name(source, "result")
        word = source.start(inner), source.start(value)
        opened = source.text[word[0] : word[1]]
        head = f"{name} = " + opened.removeprefix("return").lstrip(" ")
        return [(*word, head), (end, end, _line_end(source, end) + text + f"{indent}return {name}\n")]
    if isinstance(inner, cst.Raise) or not isinstance(last, cst.SimpleStatementLine | cst.With | cst.For | cst.While):
        return None
    if any(isinstance(j, cst.Return) for j in uses(last).jumps):
        return None
    end = source.whole_lines(last)[1]
    return [(end, end, _line_end(source, end) + "".join(f"{indent}{line}\n" for line in lines))]


def _line_end(source: Source, end: int) -> str:
    return "\n" if end and source.text[end - 1] not in "\r\n" else ""


def _is_plain(value: cst.BaseExpression) -> bool:
    if isinstance(value, cst.Tuple):
        return all(_is_plain(e.value) for e in value.elements)
    return isinstance(value, cst.Name | cst.Integer | cst.Float | cst.SimpleString) or bool(dotted(value))
