"""A branch on values becomes a choice between values, and a loop on values a loop in the graph.

`torch.where` computes both sides, `torch.cond` one of them: it takes two functions.  A `while` becomes `torch.while_loop`.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from dynascope.compiler.lab.fix.candidate import Candidate, Problem
from dynascope.compiler.lab.fix.rewrites import reading
from dynascope.compiler.lab.fix.rewrites.source import Rewrite, Source, applicable, dotted, moved, parse, require
from dynascope.compiler.lab.fix.text_edits import NotApplicable

#: title of the candidates with torch.where
WHERE = "Choose with torch.where"
_BOTH = (
    "Both sides are computed, so an infinite derivative in either makes gradients NaN; the result is a new tensor of their "
    "common shape and type."
)
_ONE = (
    "The sides give tensors of the same shape and type and use no float that varies from call to call, the result is a new "
    "tensor, and what is used only on the side not taken gets a gradient of zero instead of none."
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


def candidates(problem: Problem) -> list[Candidate]:
    """`torch.where` first, if both sides are known to have no effects, then `torch.cond`; `torch.while_loop` for a loop."""
    if parse(problem.source).branch_at(problem, ast.IfExp) is not None:
        return applicable(problem, partial(_expression, "where"), partial(_expression, "cond"))
    return reading.apart(problem, _with_where, _with_cond, _while_loop)


def _expression(function: str, problem: Problem) -> Candidate:
    """`a if test else b` with this function."""
    choice = require(parse(problem.source).branch_at(problem, ast.IfExp))
    rewrite, sides = Rewrite(problem, choice), (choice.body, choice.orelse)
    source, asked = rewrite.source, reading.condition(rewrite, choice.test)
    require(not reading.is_python(choice.test) and not any(map(_is_no_tensor, sides)))
    require(reading.is_pure(rewrite, *sides, unknown=function == "cond"))
    require(function == "cond" or not _guards_an_index(rewrite, choice, sides))
    choose, texts = rewrite.torch(function), (source.argument(s) + _clone(s) * (function == "cond") for s in sides)
    made = asked.text(choose, *texts) if function == "where" else f"{choose}({', lambda: '.join([asked.text(), *texts])})"
    change = (source.start(choice), source.end(choice), made)
    return rewrite.candidate(f"Choose with torch.{function}", [change], _BOTH if function == "where" else _ONE)


def _is_no_tensor(value: ast.expr) -> bool:
    """Whether a value is certainly neither a tensor nor a number that can become one."""
    not_tensors = (ast.JoinedStr, ast.Lambda, ast.Dict, ast.List, ast.Set, ast.Tuple, ast.Starred)
    return isinstance(value, not_tensors) or (isinstance(value, ast.Constant) and type(value.value) not in (int, float))


def _clone(value: ast.expr) -> str:
    """`.clone()` for a name, an attribute or an item: it may share memory with an operand, which torch.cond does not allow."""
    return ".clone()" if isinstance(value, ast.Name | ast.Attribute | ast.Subscript) else ""


def _guards_an_index(rewrite: Rewrite, choice: ast.If | ast.IfExp, sides: Iterable[ast.AST]) -> bool:
    """Whether the branch asks about an index in its sides: `if i < len(x)` around `x[i]`, which must not always be computed.

    No trial shows that: an index that is out of range where the branch is not taken is an input of its own.
    """
    assigns = [(_names(*n.targets), n.value) for n in rewrite.source.inside(rewrite.scope, ast.Assign)]

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
    indices -= rewrite.imports.keys()
    asked = origins(_names(*tests))
    about = [*tests, *(value for targets, value in assigns if targets & asked)]
    compared = _names(*(n for one in about for n in ast.walk(one) if isinstance(n, ast.Compare)))
    return bool(indices & asked or origins(indices) & compared - rewrite.imports.keys())


def _names(*nodes: ast.AST) -> set[str]:
    """Names and dotted names in some code, such as `x` and `self.x`; not `self` by itself."""
    return {dotted(inner) for node in nodes for inner in ast.walk(node)} - {"", "self"}


def _targets(one: ast.stmt) -> list[tuple[str, ast.expr, str]]:
    """The names that a statement binds, each with its value, and its operator: `+=` or the like, or "" for `=`.

    A return binds "return 0" and so on.  Raises NotApplicable for anything but `pass`, `return`, an assignment to one name, or
    an unpacking such as `a, b = 1, 2`.
    """
    match one:
        case ast.Pass():
            return []
        case ast.AugAssign(target=ast.Name(id=name), op=op, value=value):
            return [(name, value, _OPERATORS.get(type(op), "?"))]
        case ast.Assign([ast.Name(name)], value) | ast.AnnAssign(ast.Name(name), value=ast.expr() as value):
            return [(name, value, "")]
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)) if len(targets) == len(values):
            names = [dotted(target) for target in targets if isinstance(target, ast.Name)]
        case ast.Return(value=ast.expr() as value):
            values = value.elts if isinstance(value, ast.Tuple) else [value]
            names = [f"return {number}" for number in range(len(values))]
            require(len(values) > 1 or not isinstance(value, ast.Tuple))
        case _:
            raise NotApplicable
    require(len(names) == len(values) and not any(isinstance(value, ast.Starred) for value in values))
    return [(name, value, "") for name, value in zip(names, values, strict=True)]


# torch.where


def _with_where(problem: Problem) -> Candidate:
    try:
        return _chosen(problem, is_stepwise=False)
    except NotApplicable:
        return _chosen(problem, is_stepwise=True)


def _chosen(problem: Problem, is_stepwise: bool) -> Candidate:
    """The branch as choices between values; a side that ends with `return` or `continue` has the rest of the block as other."""
    branch = require(parse(problem.source).branch_at(problem, ast.If))
    rewrite, jumps = Rewrite(problem, branch), reading.uses(branch).jumps
    source = rewrite.source
    rest, returns = source.following(branch) if jumps else [], any(isinstance(jump, ast.Return) for jump in jumps)
    require(not reading.is_python(branch.test) and not _guards_an_index(rewrite, branch, [branch, *rest]))
    require(not is_stepwise or not isinstance(rewrite.scope, ast.Module))
    loop = source.parent(branch)
    require(not jumps or returns or (isinstance(loop, ast.For | ast.While) and branch in loop.body))
    choice = _Choice(rewrite, branch, is_stepwise)
    made = choice.after([branch, *rest], {}, set() if returns else reading.read_later(source, branch, *rest))
    lines, done, is_mixed = choice.lines, set[str](), False
    for name, value in made.items():
        is_mixed |= bool(value.reads & done)
        done.add(name)
    require(made and not (is_mixed and any(value.operator for value in made.values())))
    values = ", ".join(value.text for value in made.values())
    if returns:
        lines.append(f"return {values}")
    elif is_mixed:  # a later value reads an earlier name
        lines.append(f"{', '.join(made)} = {values}")
    else:
        lines += [f"{name} {value.operator or '='} {value.text}" for name, value in made.items()]
    return rewrite.candidate(WHERE, [source.in_place_of(branch, (branch, *rest)[-1], lines)], _BOTH)


@dataclass(frozen=True)
class _Value:
    """The value of a name: its text, and the operator, `+=` or the like ("" for `=`)."""

    text: str
    operator: str = ""

    @property
    def tree(self) -> ast.expr:
        return ast.parse(f"({self.text}\n)", mode="eval").body

    @property
    def reads(self) -> set[str]:
        return reading.uses(self.tree).reads


_Values = dict[str, _Value]


class _Choice:
    """Runs the statements of a branch, both sides of it, on what is known of the values of names.

    The values of names are their whole texts, or, stepwise, each is bound to a name of its own in a line above the choice.
    """

    def __init__(self, rewrite: Rewrite, branch: ast.If, is_stepwise: bool) -> None:
        self._rewrite, self._source, self._branch, self._is_stepwise = rewrite, rewrite.source, branch, is_stepwise
        self._before = reading.bound_before(self._source, branch)
        self._taken: list[str] = []
        self.lines: list[str] = []

    def after(self, block: list[ast.stmt], values: _Values, late: set[str]) -> _Values:
        """The values after a block, with those of the names that it binds; `late`: names that are read after it."""
        for number, one in enumerate(block):
            rest = block[number + 1 :]
            if isinstance(one, ast.If) and reading.uses(one).jumps:
                ends = [isinstance(side[-1], ast.Return | ast.Continue) for side in (one.body, one.orelse or [one])]
                require(any(ends))
                yes, no = (s if end else [*s, *rest] for s, end in zip((one.body, one.orelse), ends, strict=True))
                return self._either(one, yes, no, values, late)
            if isinstance(one, ast.If):
                values = self._either(one, one.body, one.orelse, values, late | reading.uses(*rest).reads)
            elif isinstance(one, ast.Continue):
                return values
            else:
                found = [(name, self._value(one, value, operator, values)) for name, value, operator in _targets(one)]
                values = values | {name: self._kept(name, value, block) for name, value in found}
        return values

    def _value(self, one: ast.stmt, value: ast.expr, operator: str, values: _Values) -> _Value:
        """A value with the new names of those that it reads; refused if it may have effects, or needs names that are not."""
        require(reading.is_pure(self._rewrite, value))
        # stepwise, `+=` would change the tensor of the other side, too
        require(not operator if self._is_stepwise else not reading.uses(one).reads & values.keys())
        source = self._source
        renamed = [n for n in source.inside(value, ast.Name) if n.id in values and values[n.id].text != n.id]
        own = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.JoinedStr)
        require(not renamed or not source.inside(value, *own))
        places = [(source.start(n), source.end(n), values[n.id].text) for n in renamed]
        text = source.changed(source.start(value), source.end(value), places)
        return _Value(f"({text})" if "\n" in text or isinstance(value, ast.Tuple | ast.IfExp | ast.Lambda) else text, operator)

    def _new(self, wish: str) -> str:
        self._taken.append(self._source.unused_name(wish, *self._taken))
        return self._taken[-1]

    def _kept(self, name: str, value: _Value, block: list[ast.stmt]) -> _Value:
        """The value, stepwise under a name of its own: the same one if the rest of the function does not have it."""
        if not self._is_stepwise or " " in name:
            return value
        inside = {node for one in block for node in ast.walk(one)}
        names = {getattr(n, "id", getattr(n, "arg", None)) for n in ast.walk(self._rewrite.scope) if n not in inside}
        if name in names or name in self._taken:
            name = self._new(name)
        self._taken.append(name)
        self.lines.append(f"{name} = {value.text}")
        return _Value(name)

    def _either(self, branch: ast.If, yes: list[ast.stmt], no: list[ast.stmt], values: _Values, late: set[str]) -> _Values:
        """The values after a branch with these sides, with those of the names that are read later."""
        test, at = branch.test, len(self.lines)
        require(reading.is_pure(self._rewrite, test))
        require(all(n not in values or values[n].text == n for n in reading.uses(test).reads))
        asked = None if reading.is_python(test) else reading.condition(self._rewrite, test)
        require(asked is None or not (asked.first and self._is_stepwise))  # the lines above are not guarded
        sides = [self.after(side, values, late) for side in (yes, no)]
        names = [n for n in dict.fromkeys((*sides[0], *sides[1])) if n in late or " " in n]
        names = [n for n in names if any(side.get(n) != values.get(n) for side in sides)]
        is_shared = sum(sides[0].get(n) != sides[1].get(n) for n in names) > 1
        if asked and is_shared and not isinstance(self._rewrite.scope, ast.Module):
            new = self._new("condition")
            text = asked.text()
            self.lines.insert(at, f"{new} = ({text})" if "\n" in text else f"{new} = {text}")
            asked = asked._replace(tensor=new)
        made = {n: self._one_of(n, [side.get(n) for side in sides], test, asked) for n in names}
        if branch is not self._branch:
            made = {n: self._kept(n, value, [branch]) for n, value in made.items()}
        return values | made

    def _one_of(self, name: str, sides: list[_Value | None], test: ast.expr, asked: reading.Asked | None) -> _Value:
        """The value of a name after a branch: `yes if test else no` for a Python condition, else `torch.where`."""
        operator = next(value.operator for value in sides if value is not None)
        require(None not in sides or (name in self._before and operator in ("", *_IDENTITY)))
        unchanged = _Value(_IDENTITY.get(operator, name), operator)
        yes, no = (unchanged if value is None else value for value in sides)
        # the update in place would run even if the branch is not taken, and overwrite what backward needs
        require(yes.operator == no.operator and not (operator and name in yes.reads | no.reads))
        if yes == no:
            return yes
        require(not asked or not any(_is_no_tensor(value.tree) for value in (yes, no)))
        if asked is None:
            return _Value(f"({yes.text} if {self._source.text_of(test)} else {no.text})", operator)
        made = asked.text(self._rewrite.torch("where"), yes.text, no.text)
        return _Value(f"({made})" if asked.first else made, operator)


# torch.cond


def _with_cond(problem: Problem) -> Candidate:
    branch = require(parse(problem.source).branch_at(problem, ast.If))
    rewrite, jumps, after = Rewrite(problem, branch), reading.uses(branch).jumps, list[ast.stmt]()
    source, test, sides = rewrite.source, reading.condition(rewrite, branch.test).text(), [branch.body, branch.orelse]
    require(not reading.is_python(branch.test) and reading.is_pure(rewrite, branch.test, unknown=True))
    require(source.stands_alone(branch) and not any(isinstance(s, ast.If) for s in branch.orelse[:1]))
    if jumps and not branch.orelse:
        after = sides[1] = source.following(branch)
    found, before = reading.uses(*sides[0], *sides[1]), reading.bound_before(source, branch)
    require(not found.stores and all(reading.is_pure_call(rewrite, call, unknown=True) for call in found.calls))
    require(not any(isinstance(s, ast.Expr) and isinstance(s.value, ast.Call) for side in sides for s in side))
    names = [n for n in reading.names_in_order(source, branch, *after) if n in found.writes]
    outputs = [] if jumps else [n for n in names if n in reading.read_later(source, branch)]
    if jumps:
        ends = [side[-1].value for side in sides if side and isinstance(side[-1], ast.Return)]
        require(len(ends) == len(found.jumps) == 2 and all(ends))
        require(not any(_is_no_tensor(part) for value in ends if value is not None for part in _parts(value)))
    else:
        require(outputs and all(n in before or n in reading.certainly_bound(side) for n in outputs for side in sides))
    passed = [n for n in names if n in before]
    functions = [source.unused_name("when_true"), source.unused_name("when_false")]
    text, indent = "", source.indent(branch)
    for function, side in zip(functions, sides, strict=True):
        text += f"{indent}def {function}({', '.join(passed)}):\n{_body(source, branch, side, outputs, side is after)}"
    operands = f", ({', '.join(passed)}{',' * (len(passed) == 1)})" if passed else ""
    call = f"{rewrite.torch('cond')}({test}, {', '.join(functions)}{operands})"
    text += f"{indent}{', '.join(outputs)} = {call}\n" if outputs else f"{indent}return {call}\n"
    until = branch.lineno - (branch.body[0].lineno == branch.lineno)  # comments below stay in the sides
    change = source.in_place_of(branch, (branch, *after)[-1], [], text, until)
    return rewrite.candidate("Choose with torch.cond", [change], _ONE)


def _parts(value: ast.expr) -> list[ast.expr]:
    return value.elts if isinstance(value, ast.Tuple) else [value]


def _body(source: Source, branch: ast.If | ast.While, side: list[ast.stmt], outputs: list[str], is_after: bool = False) -> str:
    """The lines of a side of the branch, or of the loop's body, as those of a function; `is_after`: they follow the branch."""
    unit, changes, body = source.indent_unit, reading.not_in_place(source, side), ""
    inner, last = source.indent(branch) + unit, dict[str, ast.expr]()
    for one in side:
        with contextlib.suppress(NotApplicable):
            last |= {name: value for name, value, operator in _targets(one) if not operator}
        if isinstance(one, ast.Return) and one.value is not None:
            changes += [(source.end(part), source.end(part), _clone(part)) for part in _parts(one.value)]
    if side and source.stands_alone(side[0]):
        inner = source.indent(side[0]) + unit * is_after
        body = source.lines_text(side, changes)
        body = moved(body, unit) if is_after else body
    elif side:
        body = f"{inner}{source.changed(source.start(side[0]), source.end(side[-1]), changes)}\n"
    written = reading.uses(*side).writes
    values = [n + (_clone(last[n]) if n in last else "" if n in written else ".clone()") for n in outputs]
    comma = "," * (isinstance(branch, ast.While) and len(values) == 1)
    return f"{body}{inner}return {', '.join(values)}{comma}\n" if outputs else body


# torch.while_loop


def _while_loop(problem: Problem) -> Candidate:
    """For `while x.sum() < 100:` and the like, if each assigned name whose value outlives a turn is bound before the loop."""
    loop = require(parse(problem.source).innermost(problem, ast.While, lambda n: n.test))
    rewrite, body = Rewrite(problem, loop), loop.body
    source, (test, first, *_) = rewrite.source, reading.condition(rewrite, loop.test)
    is_plain = all(isinstance(s, ast.Assign | ast.AnnAssign | ast.AugAssign) for s in body) and not loop.orelse
    require(is_plain and not first and source.stands_alone(loop) and source.stands_alone(body[0]))
    require(reading.is_pure(rewrite, *body, unknown=True) and reading.is_pure(rewrite, loop.test))
    before, later = reading.bound_before(source, loop), reading.read_later(source, loop)
    needed = reading.uses(*body).writes & (later | reading.uses(loop.test).reads | reading.read_first(body, set()))
    carried = [n for n in reading.names_in_order(source, loop) if n in needed]
    require(carried and before.issuperset(carried))
    more, turn, names = source.unused_name("another_turn"), source.unused_name("turn"), ", ".join(carried)
    values = f"{names}," if len(carried) == 1 else names
    asked = f"({test})" if "\n" in test else test
    lines = [f"def {more}({names}):", f"{source.indent_unit}return {asked}", f"def {turn}({names}):"]
    call = f"{values} = {rewrite.torch('while_loop')}({more}, {turn}, ({values}))"
    kept = f"{_body(source, loop, body, carried)}{source.indent(loop)}{call}\n"
    return rewrite.candidate("Loop with torch.while_loop", [source.in_place_of(loop, loop, lines, kept, loop.lineno)], _TURNS)
