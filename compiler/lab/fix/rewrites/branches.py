"""A branch on values becomes a choice between values, and a loop on values a loop in the graph.

`torch.where` computes both sides, `torch.cond` one of them: it takes two functions.  A `while` becomes `torch.while_loop`.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterable
from dataclasses import dataclass

from dynascope.compiler.lab.fix.candidate import Candidate, Problem
from dynascope.compiler.lab.fix.rewrites.reading import (
    apart,
    as_tensor,
    bound_before,
    certainly_bound,
    conditions_of,
    is_pure,
    is_pure_call,
    is_python,
    leaves,
    names_in_order,
    not_in_place,
    precision_of,
    read_first,
    read_later,
    uses,
)
from dynascope.compiler.lab.fix.rewrites.source import Change, Source, Torch, candidate, dotted, moved, parse

#: title of the candidates with torch.where
WHERE = "Choose with torch.where"
_BOTH = "Both sides are computed, and the result is a new tensor of their common shape and type."
_ONE = (
    "The sides give tensors of the same shape and type, the result is a new tensor, "
    "and what is used only on the side not taken gets a gradient of zero instead of none."
)
_TURNS = "Each iteration keeps the shapes and types of what it changes, and the results are new tensors."
_IDENTITY = {"+=": "0", "-=": "0", "*=": "1", "/=": "1"}
_OPERATORS = {ast.Add: "+=", ast.Sub: "-=", ast.Mult: "*=", ast.Div: "/="}
#: functions and methods that take indices, or class labels that are used as indices
_PICKING = {
    "cross_entropy", "embedding", "embedding_bag", "gather", "index_add", "index_copy", "index_fill", "index_put",
    "index_select", "multi_margin_loss", "narrow", "nll_loss", "one_hot", "scatter", "scatter_add", "scatter_reduce", "select",
    "take", "take_along_dim",
}  # fmt: skip


class _Refused(Exception):
    """A branch cannot be written in the wanted form."""


@apart
def candidates(problem: Problem) -> list[Candidate]:
    """`torch.where` first, if both sides are known to have no effects, then `torch.cond`; `torch.while_loop` for a loop."""
    source = parse(problem.source)
    if source is None:
        return []
    choice = source.branch_at(problem, ast.IfExp)
    if choice is not None:
        return _expression(problem, source, choice)
    branch, loop = source.branch_at(problem, ast.If), source.innermost(problem, ast.While, lambda n: n.test)
    if branch is not None and not is_python(branch.test):
        return [*_with_where(problem, source, branch), *_with_cond(problem, source, branch)]
    return _while_loop(problem, source, loop) if branch is None and loop is not None else []


def _expression(problem: Problem, source: Source, choice: ast.IfExp) -> list[Candidate]:
    """The candidates for `a if test else b`."""
    torch = Torch(source, source.scope_of(choice))
    condition = as_tensor(source, torch, choice.test)
    sides = (choice.body, choice.orelse)
    if condition is None or is_python(choice.test) or any(map(_is_no_tensor, sides)):
        return []
    tests, precision = conditions_of(source, torch, choice.test), precision_of(source, choice.test)
    place, found = (source.start(choice), source.end(choice)), list[Candidate]()
    if is_pure(torch, *sides) and not _guards_an_index(source, torch, choice, sides):
        yes, no = map(source.argument, sides)
        changes: list[Change] = [(*place, f"{torch('where')}({condition}, {yes}, {no})"), *torch.changes()]
        found += candidate(problem, source, WHERE, changes, _BOTH + precision, tests)
    if is_pure(torch, *sides, unknown=True):
        yes, no = (source.argument(side) + _clone(side) for side in sides)
        changes = [(*place, f"{torch('cond')}({condition}, lambda: {yes}, lambda: {no})"), *torch.changes()]
        found += candidate(problem, source, "Choose with torch.cond", changes, _ONE + precision, tests)
    return found


def _is_no_tensor(value: ast.expr) -> bool:
    """Whether a value is certainly neither a tensor nor a number that can become one."""
    not_tensors = (ast.JoinedStr, ast.Lambda, ast.Dict, ast.List, ast.Set, ast.Tuple, ast.Starred)
    return isinstance(value, not_tensors) or (isinstance(value, ast.Constant) and type(value.value) not in (int, float))


def _clone(value: ast.expr) -> str:
    """`.clone()` for a name, an attribute or an item: it may share memory with an operand, which torch.cond does not allow."""
    return ".clone()" if isinstance(value, ast.Name | ast.Attribute | ast.Subscript) else ""


def _guards_an_index(source: Source, torch: Torch, choice: ast.If | ast.IfExp, sides: Iterable[ast.AST]) -> bool:
    """Whether the branch asks about an index in its sides: `if i < len(x)` around `x[i]`, which must not always be computed.

    No trial shows that: an index that is out of range where the branch is not taken is an input of its own.
    """
    assigns = [(_names(*n.targets), n.value) for n in source.inside(source.scope_of(choice), ast.Assign)]

    def origins(names: set[str]) -> set[str]:
        """These names, and those that the values assigned to them are made of."""
        more = names.union(*(_names(value) for targets, value in assigns if targets & names))
        return more if more == names else origins(more)

    tests = [choice.test, *(n.test for side in sides for n in ast.walk(side) if isinstance(n, ast.If | ast.IfExp))]
    indices: set[str] = set()
    for node in (inner for side in sides for inner in ast.walk(side)):
        if isinstance(node, ast.Subscript):
            indices |= _names(node.slice)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _PICKING:
            indices |= _names(*node.args, *node.keywords)
    indices -= torch.imports.keys()
    asked = origins(_names(*tests))
    about = [*tests, *(value for targets, value in assigns if targets & asked)]
    compared = _names(*(n for one in about for n in ast.walk(one) if isinstance(n, ast.Compare)))
    return bool(indices & asked or origins(indices) & compared - torch.imports.keys())


def _names(*nodes: ast.AST) -> set[str]:
    """Names and dotted names in some code, such as `x` and `self.x`; not `self` by itself."""
    return {dotted(inner) for node in nodes for inner in ast.walk(node)} - {"", "self"}


def _targets(one: ast.stmt) -> list[tuple[str, ast.expr, str]]:
    """The names that a statement assigns, each with its value, and its operator: `+=` or the like, or "" for `=`.

    Raises `_Refused` for anything but `pass`, an assignment to one name, or an unpacking such as `a, b = 1, 2`.
    """
    if isinstance(one, ast.Pass):
        return []
    if isinstance(one, ast.AugAssign) and isinstance(one.target, ast.Name):
        return [(one.target.id, one.value, _OPERATORS.get(type(one.op), "?"))]
    target = one.target if isinstance(one, ast.AnnAssign) else one.targets[0] if isinstance(one, ast.Assign) else None
    if target is None or one.value is None or len(getattr(one, "targets", [target])) != 1:  # type: ignore[attr-defined]
        raise _Refused
    value: ast.expr = one.value  # type: ignore[attr-defined]
    if isinstance(target, ast.Name):
        return [(target.id, value, "")]
    pairs = list(zip(getattr(target, "elts", ()), getattr(value, "elts", ()), strict=False))
    is_one_for_one = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts)
    if not is_one_for_one or not all(isinstance(t, ast.Name) and not isinstance(v, ast.Starred) for t, v in pairs):
        raise _Refused
    return [(t.id, v, "") for t, v in pairs]


# torch.where


@dataclass
class _Value:
    """The value that a side assigns to a name: its text, its nodes, and the operator, `+=` or the like ("" for `=`)."""

    text: str
    nodes: tuple[ast.expr, ...]
    operator: str = ""


def _with_where(problem: Problem, source: Source, branch: ast.If) -> list[Candidate]:
    torch = Torch(source, source.scope_of(branch))
    sides = [branch, *(source.following(branch) if uses(branch).jumps else [])]
    chosen = [n for s in sides for n in source.inside(s, ast.If)]
    if _guards_an_index(source, torch, branch, sides):
        return []
    for make in (_returning if uses(branch).jumps else _assigning, _stepwise):
        with contextlib.suppress(_Refused):
            changes = [*make(source, torch, branch), *torch.changes()]
            break
    else:
        return []
    tests = tuple(part for n in chosen for part in conditions_of(source, torch, n.test))
    assumption = _BOTH + precision_of(source, *(n.test for n in chosen))
    return candidate(problem, source, WHERE, changes, assumption, tests)


def _lines(source: Source, first: ast.stmt, last: ast.stmt, lines: list[str]) -> list[Change]:
    """The change that puts these lines, below the comments that stand there, in place of whole statements."""
    indent = source.indent(first)
    lines = [*source.comments(first.lineno, last.end_lineno or 0), *lines]
    if source.is_elif(first):
        lines = ["else:", *(source.indent_unit + line for line in lines)]
    return [(*source.whole_lines(first, last), "".join(f"{indent}{line}\n" for line in lines))]


def _assigning(source: Source, torch: Torch, branch: ast.If) -> list[Change]:
    """The branch as assignments of chosen values."""
    late, before = read_later(source, branch), bound_before(source, branch)
    sides = [s for n in source.inside(branch, ast.If) for s in (*n.body, *n.orelse) if not isinstance(s, ast.If)]
    names = [name for name in dict.fromkeys(name for one in sides for name, _, _ in _targets(one)) if name in late]
    lines: list[str] = []
    condition = as_tensor(source, torch, branch.test)
    if condition is not None and len(names) > 1 and not isinstance(source.scope_of(branch), ast.Module):
        name = source.unused_name("condition")
        lines, condition = [f"{name} = ({condition})" if "\n" in condition else f"{name} = {condition}"], name
    else:
        condition = None
    made = [(n, _value_of(source, torch, branch, n, before, condition)) for n in names]
    done: set[str] = set()
    is_mixed = False
    for n, value in made:
        is_mixed |= bool(uses(*value.nodes).reads & done)
        done.add(n)
    if not made or (is_mixed and any(value.operator for _, value in made)):
        raise _Refused
    if is_mixed:  # a later value reads an earlier name
        lines.append(f"{', '.join(n for n, _ in made)} = {', '.join(v.text for _, v in made)}")
    else:
        lines += [f"{n} {value.operator or '='} {value.text}" for n, value in made]
    return _lines(source, branch, branch, lines)


def _stepwise(source: Source, torch: Torch, branch: ast.If) -> list[Change]:
    """The statements of both sides, each value under a name of its own, and then a choice for each name that is read later.

    A side that ends with `continue` skips the rest of the loop's body: the rest is the other side.
    """
    rest, scope = list[ast.stmt](), source.scope_of(branch)
    if isinstance(branch.body[-1], ast.Continue):
        rest = source.following(branch)
        if source.block_of(branch) is not getattr(source.parent(branch), "body", None) or not isinstance(
            source.parent(branch), ast.For | ast.While
        ):
            raise _Refused
    if isinstance(scope, ast.Module) or not source.stands_alone(branch) or len(uses(branch, *rest).jumps) != bool(rest):
        raise _Refused
    inside = {node for one in (branch, *rest) for node in ast.walk(one)}
    late = read_later(source, branch)
    if rest:
        others = [n for n in ast.walk(scope) if isinstance(n, ast.Name | ast.AugAssign) and n not in inside]
        late = uses(*others).reads | read_first([branch, *rest], set())
    steps = _Steps(source, torch, branch, late)
    made = steps.chosen(branch, rest, {})
    if not made.keys() & late:
        raise _Refused
    return _lines(source, branch, (branch, *rest)[-1], steps.lines)


class _Steps:
    """The lines of a branch without its `if`s, as they are made.  An environment has the new name of each name bound so far."""

    def __init__(self, source: Source, torch: Torch, branch: ast.If, late: set[str]) -> None:
        self._source, self._torch, self._branch, self._late = source, torch, branch, late
        self._before = bound_before(source, branch)
        self._taken: list[str] = []
        self.lines: list[str] = []

    def _named(self, name: str, block: list[ast.stmt]) -> str:
        """A name for a value that one side gives to `name`: the same one if the rest of the function does not have it."""
        inside = {node for one in block for node in ast.walk(one)}
        scope = ast.walk(self._source.scope_of(block[0]))
        is_own = name not in self._taken and not any(
            name == getattr(n, "id", getattr(n, "arg", None)) for n in scope if n not in inside
        )
        new = name if is_own else self._source.unused_name(name, *self._taken)
        self._taken.append(new)
        return new

    def _text(self, value: ast.expr, names: dict[str, str]) -> str:
        """A value with the new names; raises `_Refused` if it may have effects, or binds names itself."""
        own = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.JoinedStr)
        if not is_pure(self._torch, value) or any(isinstance(n, own) for n in ast.walk(value)):
            raise _Refused
        read = [n for n in self._source.inside(value, ast.Name) if names.get(n.id, n.id) != n.id]
        places = [(self._source.start(n), self._source.end(n), names[n.id]) for n in read]
        text = self._source.changed(self._source.start(value), self._source.end(value), places)
        return f"({text})" if "\n" in text or isinstance(value, ast.Tuple) else text

    def _bound(self, block: list[ast.stmt], names: dict[str, str]) -> dict[str, str]:
        """The environment after the statements of a side."""
        for one in block:
            if isinstance(one, ast.If):
                names = self.chosen(one, [], names)
                continue
            pairs = _targets(one)
            if any(operator for _, _, operator in pairs):  # it would change the tensor of the other side, too
                raise _Refused
            texts = [(name, self._text(value, names)) for name, value, _ in pairs]
            names = names | {name: self._named(name, block) for name, _ in texts}
            self.lines += [f"{names[name]} = {text}" for name, text in texts]
        return names

    def chosen(self, branch: ast.If, rest: list[ast.stmt], names: dict[str, str]) -> dict[str, str]:
        """The environment after a branch; `rest`: what its body skips by `continue`."""
        condition, renamed = as_tensor(self._source, self._torch, branch.test), {n for n, new in names.items() if n != new}
        if condition is None or is_python(branch.test) or not is_pure(self._torch, branch.test):
            raise _Refused
        if uses(branch.test).reads & renamed:
            raise _Refused
        at = len(self.lines)
        body = branch.body[:-1] if rest else branch.body
        yes, no = self._bound(body, names), self._bound([*branch.orelse, *rest], names)
        is_outer, end, after = branch is self._branch, self._source.end(branch), dict(names)
        below = [n.id for n in self._source.inside(self._source.scope_of(branch), ast.Name) if self._source.start(n) > end]
        later = self._late if is_outer else self._late.union(below)
        differ = [n for n in dict.fromkeys((*yes, *no)) if n in later and yes.get(n) != no.get(n)]
        if any(n not in self._before and (n not in yes or n not in no) for n in differ):
            raise _Refused
        pairs = [(n, yes.get(n, n), no.get(n, n)) for n in differ]
        if len(pairs) > 1:
            name = self._source.unused_name("condition", *self._taken)
            self._taken.append(name)
            self.lines.insert(at, f"{name} = ({condition})" if "\n" in condition else f"{name} = {condition}")
            condition = name
        for name, one, other in pairs:
            after[name] = name if is_outer else self._named(name, [branch])
            self.lines.append(f"{after[name]} = {self._torch('where')}({condition}, {one}, {other})")
        return after


def _side_value(source: Source, torch: Torch, side: list[ast.stmt], name: str) -> _Value | None:
    """The value that a side assigns to a name; None if it does not assign the name.

    Raises `_Refused` if the side binds a name twice or reads one that it has bound, or if a value may have effects or is
    certainly no tensor.
    """
    value: _Value | None = None
    done: set[str] = set()
    for one in side:
        pairs = _targets(one)
        for target, node, operator in pairs:
            if target in done or uses(node).reads & done or _is_no_tensor(node) or not is_pure(torch, node):
                raise _Refused
            if target == name:
                value = _Value(source.argument(node), (node,), operator)
        done |= {target for target, _, _ in pairs}
    return value


def _value_of(source: Source, torch: Torch, branch: ast.If, name: str, before: set[str], hoisted: str | None = None) -> _Value:
    """The value that an `if` and its `elif`s assign to a name; `hoisted`: the name of the condition, if it has one."""
    yes, other = _side_value(source, torch, branch.body, name), branch.orelse
    if len(other) == 1 and isinstance(other[0], ast.If):
        no: _Value | None = _value_of(source, torch, other[0], name, before)
    else:
        no = _side_value(source, torch, other, name)
    operator = yes.operator if yes is not None else no.operator if no is not None else ""

    def unchanged() -> _Value:
        if name not in before or operator not in ("", *_IDENTITY):
            raise _Refused
        return _Value(_IDENTITY[operator] if operator else name, (), operator)

    yes, no = (v if v is not None and v.text != name else unchanged() for v in (yes, no))
    # the update in place would run even if the branch is not taken, and overwrite what backward needs
    if yes.operator != no.operator or (operator and name in uses(*yes.nodes, *no.nodes).reads):
        raise _Refused
    nodes = (*yes.nodes, *no.nodes, *([branch.test] if hoisted is None else []))
    return _Value(_chosen(source, torch, branch.test, yes.text, no.text, hoisted), nodes, operator)


def _chosen(source: Source, torch: Torch, test: ast.expr, yes: str, no: str, condition: str | None = None) -> str:
    """The expression that chooses one of two values: `yes if test else no` for a Python condition, else `torch.where`."""
    if yes == no:
        return yes
    if is_python(test):
        is_loose = isinstance(ast.parse(f"({yes}\n)", mode="eval").body, ast.IfExp | ast.Lambda)
        return f"({f'({yes})' if is_loose else yes} if {source.text_of(test)} else {no})"
    if condition is None and isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _chosen(source, torch, test.operand, no, yes)
    condition = condition or as_tensor(source, torch, test)
    if condition is None or not is_pure(torch, test):
        raise _Refused
    return f"{torch('where')}({condition}, {yes}, {no})"


def _returning(source: Source, torch: Torch, branch: ast.If) -> list[Change]:
    """The branch as one return.

    Without an `else` at its end, the code after the branch is a side, except the assignments at its start, which stay.
    """
    if not source.stands_alone(branch):
        raise _Refused
    ending = branch.orelse
    while len(ending) == 1 and isinstance(ending[0], ast.If):
        ending = ending[0].orelse
    after, kept = [] if ending else source.following(branch), 0
    while kept < len(after) and isinstance(after[kept], ast.Assign | ast.AnnAssign) and is_pure(torch, after[kept]):
        kept += 1
    between, tail = after[:kept], after[kept:]
    lines = [f"return {', '.join(_returned(source, torch, [branch, *tail]))}"]
    if not between:
        return _lines(source, branch, (branch, *tail)[-1], lines)
    if uses(branch).reads & uses(*between).writes or not tail:
        raise _Refused
    return [*_lines(source, branch, branch, []), *_lines(source, tail[0], tail[-1], lines)]


def _returned(source: Source, torch: Torch, block: list[ast.stmt]) -> list[str]:
    """The texts of the values that a block returns; raises `_Refused` if it does anything else, or they cannot be chosen."""
    first = block[0] if block else None
    if isinstance(first, ast.Return) and first.value is not None:
        parts = first.value.elts if isinstance(first.value, ast.Tuple) else [first.value]
        if isinstance(first.value, ast.Tuple) and (len(parts) == 1 or any(isinstance(p, ast.Starred) for p in parts)):
            raise _Refused
        if not is_pure(torch, *parts):
            raise _Refused
        return [source.argument(p) for p in parts]
    if not isinstance(first, ast.If):
        raise _Refused
    yes, no = _returned(source, torch, first.body), _returned(source, torch, [*first.orelse, *block[1:]])
    pairs = list(zip(yes, no, strict=False))
    texts = [side for pair in pairs if pair[0] != pair[1] for side in pair]
    if len(yes) != len(no) or any(_is_no_tensor(ast.parse(f"({side}\n)", mode="eval").body) for side in texts):
        raise _Refused
    return [_chosen(source, torch, first.test, a, b) for a, b in pairs]


# torch.cond


def _with_cond(problem: Problem, source: Source, branch: ast.If) -> list[Candidate]:
    torch = Torch(source, source.scope_of(branch))
    condition, has_elif = (
        as_tensor(source, torch, branch.test),
        any(isinstance(s, ast.If) for s in branch.orelse[:1]),
    )
    if condition is None or not is_pure(torch, branch.test, unknown=True) or not source.stands_alone(branch) or has_elif:
        return []
    yes, no, after, outputs = branch.body, branch.orelse, list[ast.stmt](), list[str]()
    if uses(*yes, *no).jumps:
        if not no:
            no = after = source.following(branch)
        ends = [side[-1].value if side and isinstance(side[-1], ast.Return) else None for side in (yes, no)]
        if (
            None in ends
            or len(uses(*yes, *no).jumps) != 2
            or any(isinstance(v, ast.expr) and _holds_no_tensor(v) for v in ends)
        ):
            return []
    if not _only_computes(torch, [*yes, *no]):
        return []
    before, bound = bound_before(source, branch), uses(*yes, *no).writes
    names = [n for n in names_in_order(source, branch, *after) if n in bound]
    if not leaves(yes):
        later = read_later(source, branch)
        outputs = [n for n in names if n in later]
        if not outputs or any(n not in before and n not in certainly_bound(side) for n in outputs for side in (yes, no)):
            return []
    passed = [n for n in names if n in before]
    name_true, name_false = source.unused_name("when_true"), source.unused_name("when_false")
    functions = [
        _function(source, branch, name, side, passed, outputs, side is after)
        for name, side in ((name_true, yes), (name_false, no))
    ]
    if None in functions:
        return []
    operands = f", ({', '.join(passed)}{',' * (len(passed) == 1)})" if passed else ""
    call = f"{torch('cond')}({condition}, {name_true}, {name_false}{operands})"
    result = f"{', '.join(outputs)} = {call}" if outputs else f"return {call}"
    indent, is_one_line = source.indent(branch), yes[0].lineno == branch.lineno
    header = "" if is_one_line else "".join(f"{indent}{c}\n" for c in source.comments(branch.lineno, branch.lineno))
    text = f"{header}{''.join(filter(None, functions))}{indent}{result}\n"
    changes = [(*source.whole_lines(branch, after[-1] if after else None), text), *torch.changes()]
    assumption = _ONE + precision_of(source, branch.test)
    tests = conditions_of(source, torch, branch.test)
    return candidate(problem, source, "Choose with torch.cond", changes, assumption, tests)


def _only_computes(torch: Torch, block: list[ast.stmt]) -> bool:
    """Whether statements only compute values, bind names and return; unknown functions may be called for their values."""
    found = uses(*block)
    is_called = any(isinstance(s, ast.Expr) and isinstance(s.value, ast.Call) for s in block)
    jumps = all(isinstance(j, ast.Return) for j in found.jumps)
    return jumps and not is_called and not found.stores and all(is_pure_call(torch, c, unknown=True) for c in found.calls)


def _holds_no_tensor(value: ast.expr) -> bool:
    return any(map(_is_no_tensor, value.elts if isinstance(value, ast.Tuple) else [value]))


def _function(
    source: Source, branch: ast.If, name: str, side: list[ast.stmt], passed: list[str], outputs: list[str], is_after: bool
) -> str | None:
    """A side of the branch as a function; None if its lines cannot be moved."""
    indent, changes = source.indent(branch), not_in_place(source, side)
    inner = indent + source.indent_unit
    ending = side[-1] if side else None
    if isinstance(ending, ast.Return) and ending.value is not None:
        parts = ending.value.elts if isinstance(ending.value, ast.Tuple) else [ending.value]
        changes += [(source.end(p), source.end(p), clone) for p in parts if (clone := _clone(p))]
    body: str | None = ""
    if (side and side[0].lineno == branch.lineno) or (side and not source.stands_alone(side[0])):
        texts = [
            source.changed(source.start(s), source.end(s), [c for c in changes if source.start(s) <= c[0] <= source.end(s)])
            for s in side
        ]
        body = "".join(f"{inner}{text}\n" for text in texts)
    elif side:
        inner = source.indent(side[0]) + source.indent_unit * is_after
        body = source.lines_text(side, changes)
        body = moved(body, source.indent_unit) if is_after else body
    if outputs:
        last = {t: v for s in side for t, v in _last_values(s)}
        written = uses(*side).writes
        values = [n + (_clone(last[n]) if n in last else "" if n in written else ".clone()") for n in outputs]
        body = None if body is None else f"{body}{inner}return {', '.join(values)}\n"
    return None if body is None else f"{indent}def {name}({', '.join(passed)}):\n{body}"


def _last_values(one: ast.stmt) -> list[tuple[str, ast.expr]]:
    try:
        return [(name, value) for name, value, operator in _targets(one) if not operator]
    except _Refused:
        return []


# torch.while_loop


def _while_loop(problem: Problem, source: Source, loop: ast.While) -> list[Candidate]:
    """For `while x.sum() < 100:` and the like, if each assigned name whose value outlives a turn is bound before the loop."""
    torch, body = Torch(source, source.scope_of(loop)), loop.body
    test = as_tensor(source, torch, loop.test)
    is_plain = all(isinstance(s, ast.Assign | ast.AnnAssign | ast.AugAssign) for s in body)
    if test is None or loop.orelse or not source.stands_alone(loop) or body[0].lineno == loop.lineno:
        return []
    if not is_plain or not is_pure(torch, *body, unknown=True) or not is_pure(torch, loop.test):
        return []
    before, later = bound_before(source, loop), read_later(source, loop)
    needed = uses(*body).writes & (later | uses(loop.test).reads | read_first(body, set()))
    carried = [n for n in names_in_order(source, loop) if n in needed]
    if not carried or any(n not in before for n in carried):
        return []
    indent, inner, more, turn = (
        source.indent(loop),
        source.indent(body[0]),
        source.unused_name("another_turn"),
        source.unused_name("turn"),
    )
    names = ", ".join(carried)
    values = f"{names}," if len(carried) == 1 else names
    header = "".join(f"{indent}{c}\n" for c in source.comments(loop.lineno, loop.lineno))
    lines = source.lines_text(body, not_in_place(source, body))
    asked = f"({test})" if "\n" in test else test
    text = f"{header}{indent}def {more}({names}):\n{indent}{source.indent_unit}return {asked}\n"
    text += f"{indent}def {turn}({names}):\n{lines}{inner}return {values}\n"
    text += f"{indent}{values} = {torch('while_loop')}({more}, {turn}, ({values}))\n"
    changes = [(*source.whole_lines(loop), text), *torch.changes()]
    assumption = _TURNS + precision_of(source, loop.test)
    tests = conditions_of(source, torch, loop.test)
    return candidate(problem, source, "Loop with torch.while_loop", changes, assumption, tests)
