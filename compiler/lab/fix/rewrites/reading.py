"""What code reads, binds and does, and which names are bound before a statement or read after it."""

from __future__ import annotations

import ast
import contextlib
import functools
import itertools
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import NamedTuple

from dynascope.compiler.lab.fix.candidate import Candidate, Condition, Problem
from dynascope.compiler.lab.fix.rewrites.source import Change, Rewrite, Source, applicable, moved, parse, require
from dynascope.compiler.lab.fix.text_edits import NotApplicable, edits_between, with_edits
from dynascope.compiler.parsing import parsed
from dynascope.compiler.source.syntax import FUNCTIONS, dotted, names_bound_by

#: builtins that change nothing
_PURE_BUILTINS = frozenset({
    "abs", "all", "any", "bool", "dict", "float", "getattr", "hasattr", "int", "isinstance", "len", "list", "max", "min",
    "pow", "range", "round", "str", "sum", "tuple", "zip", "enumerate",
})  # fmt: skip
#: methods that are taken to change something, whatever their object is
_CHANGING_METHODS = frozenset({
    "append", "extend", "update", "pop", "popitem", "insert", "remove", "discard", "clear", "setdefault", "write",
    "writelines", "flush", "put", "send", "close", "backward", "step", "zero_grad", "register_hook",
})  # fmt: skip
_RANDOM = ("rand", "dropout", "bernoulli", "multinomial", "normal", "poisson", "seed", "exponential", "uniform", "rrelu")
_CHANGING_TORCH = ("set_", "save", "manual_", "seed", "compile", "_assert", "_check", "load")
_NESTED = (*FUNCTIONS, ast.ClassDef, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_STORES = (ast.Delete, ast.Global, ast.Nonlocal, ast.Import, ast.ImportFrom, ast.ClassDef, ast.NamedExpr)
_LEAVING = (ast.Return, ast.Raise)
_JUMPS = (*_LEAVING, ast.Break, ast.Continue, ast.Yield, ast.YieldFrom, ast.Await)


class Uses(ast.NodeVisitor):
    """Names and effects of some code.

    Nested functions and classes are included, except for the names that they bind and their jumps.
    """

    def __init__(self) -> None:
        self.reads: set[str] = set()
        self.writes: set[str] = set()
        #: stores to attributes and items, deletions, `global` and `nonlocal`, imports, class definitions, `:=`
        self.stores: list[ast.AST] = []
        #: return, raise, break, continue, yield, await
        self.jumps: list[ast.AST] = []
        self.calls: list[ast.Call] = []
        self._depth = 0

    def visit(self, node: ast.AST) -> None:
        is_stored = isinstance(getattr(node, "ctx", None), ast.Store)
        if not self._depth:
            self.writes.update(names_bound_by(node))
        if isinstance(node, ast.Name) and not is_stored:
            self.reads.add(node.id)
        elif isinstance(node, ast.Call):
            self.calls.append(node)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            self.reads.add(node.target.id)
        if isinstance(node, _STORES) or (is_stored and isinstance(node, ast.Attribute | ast.Subscript)):
            self.stores.append(node)
        if isinstance(node, _JUMPS) and not self._depth:
            self.jumps.append(node)
        self._depth += isinstance(node, _NESTED)
        for name, value in ast.iter_fields(node):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST) and name not in ("annotation", "returns"):
                    self.visit(child)
        self._depth -= isinstance(node, _NESTED)


def uses(*nodes: ast.AST | None) -> Uses:
    """What some code reads, binds and does."""
    result = Uses()
    for node in nodes:
        if node is not None:
            result.visit(node)
    return result


def names_in_order(source: Source, *nodes: ast.AST) -> list[str]:
    """Each name in some code once, in the order of the text."""
    return list(dict.fromkeys(name.id for one in nodes for name in source.inside(one, ast.Name)))


# what code does besides computing values


def is_pure(rewrite: Rewrite, *nodes: ast.AST | None, unknown: bool = False) -> bool:
    """Whether code only computes values and binds names (also by `x += 1`), without random numbers.

    `unknown`: as for `is_pure_call`.
    """
    found = uses(*nodes)
    return not found.stores and not found.jumps and all(is_pure_call(rewrite, c, unknown) for c in found.calls)


def is_pure_call(rewrite: Rewrite, call: ast.Call, unknown: bool = False) -> bool:
    """Whether a call only computes a value; methods are judged by their names.

    `unknown`: whether to assume the same of unknown functions, and of methods of `self`, `cls` and imported modules.
    """
    if any(k.arg in ("out", "inplace") for k in call.keywords):
        return False
    full, base = rewrite.full(call.func), call.func
    while isinstance(base, ast.Attribute | ast.Subscript):
        base = base.value
    root, last = dotted(base), call.func.attr if isinstance(call.func, ast.Attribute) else full.rpartition(".")[2]
    if any(word in last for word in _RANDOM) or (last.endswith("_") and not last.endswith("__")):
        return False
    if full.startswith("torch."):
        others = ("torch._dynamo", "torch.compiler", "torch.distributed", "torch.utils")
        return not last.startswith(_CHANGING_TORCH) and not full.startswith(others)
    if isinstance(call.func, ast.Attribute):
        if last in _CHANGING_METHODS or root in ("logging", "logger", "warnings", "sys", "os", "time", "random"):
            return False
        return unknown or (root not in ("self", "cls", "super") and root not in rewrite.imports)
    return last in _PURE_BUILTINS or (unknown and last not in ("print", "setattr", "exec", "eval", "next"))


# which names are bound before, and read after


def certainly_bound(block: Iterable[ast.stmt]) -> set[str]:
    """Names that are certainly bound when a block has run to its end; loops, `try` and `match` bind none for certain."""
    bound: set[str] = set()
    for one in block:
        bound -= {n.id for n in ast.walk(one) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Del)}
        if isinstance(one, ast.If):
            sides = [certainly_bound(s) for s in (one.body, one.orelse) if not isinstance((s or [one])[-1], _LEAVING)]
            bound |= set.intersection(*sides) if sides else set()
        elif isinstance(one, ast.With):
            bound |= uses(*one.items).writes
            # torch's context managers suppress no exception; others may
            called = [getattr(item.context_expr, "func", item.context_expr) for item in one.items]
            bound |= certainly_bound(one.body) if all(dotted(f).startswith("torch.") for f in called) else set()
        elif not isinstance(one, ast.For | ast.AsyncFor | ast.While | ast.Match | ast.Try):
            # `:=` perhaps does not bind in every case, as in `a and (b := c)`
            bound |= uses(one).writes - {dotted(n.target) for n in ast.walk(one) if isinstance(n, ast.NamedExpr)}
    return bound


def bound_before(source: Source, statement: ast.stmt) -> set[str]:
    """Local names that are bound whenever control reaches a statement.

    Outside of functions, these include the names that no statement above binds: an earlier cell may have bound them, and if
    none has, the fixed program fails in the first trial.
    """
    scope = source.scope_of(statement)
    if isinstance(scope, ast.Module):
        bound = set(source.names) - uses(*(s for s in scope.body if s.lineno < statement.lineno)).writes
    else:
        bound = {a.arg for a in ast.walk(scope.args) if isinstance(a, ast.arg)}
    for at in reversed([*itertools.takewhile(lambda above: above is not scope, (statement, *source.ancestors(statement)))]):
        block = source.block_of(at)
        earlier = block[: block.index(at)] if block else []  # type: ignore[arg-type]
        bound -= {n.id for s in earlier for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Del)}
        bound |= certainly_bound(earlier)
        if isinstance(at, ast.For) and at is not statement:
            bound |= uses(at.target).writes
    return bound


def read_first(block: Iterable[ast.stmt], bound: set[str]) -> set[str]:
    """Names that a block may read before it binds them."""
    read: set[str] = set()
    for one in block:
        if isinstance(one, ast.If):
            read |= (uses(one.test).reads - bound) | read_first(one.body, set(bound)) | read_first(one.orelse, set(bound))
        else:
            read |= uses(one).reads - bound
        bound |= certainly_bound([one])
    return read


def read_later(source: Source, *statements: ast.stmt) -> set[str]:
    """Names that may be read after some statements: below them, in the next turn of a loop, or by another function.

    Outside of functions, these are all names that the statements bind: a later cell may read them.
    """
    scope, last = source.scope_of(statements[0]), statements[-1]
    if isinstance(scope, ast.Module):
        return uses(*statements).writes
    loops = [a for a in source.ancestors(last) if isinstance(a, ast.For | ast.While) and source.scope_of(a) is scope]
    first = source.start(loops[-1]) if loops else source.end(last)
    read = read_first(statements, set()) if loops else set()
    inside = {node for one in statements for node in ast.walk(one)}
    for node in ast.walk(scope):
        if isinstance(node, ast.Global | ast.Nonlocal):
            read |= set(node.names)
        nested = isinstance(node, (*FUNCTIONS, ast.Lambda)) and node is not scope
        if nested or (isinstance(node, ast.Name | ast.AugAssign) and node not in inside and source.end(node) > first):
            read |= uses(node).reads
    return read


#: attributes and methods, of tensors and other objects, that do not depend on the values of a tensor
_PYTHON_ATTRIBUTES = frozenset({
    "shape", "ndim", "dtype", "device", "training", "requires_grad", "is_cuda", "size", "dim", "numel", "element_size",
    "stride", "is_contiguous", "is_floating_point", "is_complex", "get", "keys", "startswith", "endswith", "is_sparse",
    "grad_fn", "layout",
})  # fmt: skip
_PYTHON_FUNCTIONS = {"len", "isinstance", "hasattr", "callable", "type", "issubclass", "id"}
#: function that gives a Python truth value -> the elementwise function
_ELEMENTWISE = {"equal": "eq", "allclose": "isclose"}
_BOOLEAN_METHODS = frozenset({
    "any", "all", "isnan", "isinf", "isfinite", "eq", "ne", "lt", "le", "gt", "ge", "logical_not", "logical_and",
    "logical_or", "bool", "isclose",
})  # fmt: skip
_LOOSE = (ast.NamedExpr, ast.IfExp, ast.Lambda, ast.Tuple, ast.List, ast.Dict, ast.Constant, ast.JoinedStr)
_IDENTITIES = (ast.Is, ast.IsNot, ast.In, ast.NotIn)


def _last(call: ast.Call) -> str:
    """The name of the called function or method."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else dotted(call.func)


def is_python(test: ast.expr) -> bool:
    """Whether the text of a condition shows that no tensor's values decide it.

    With `is`, this is assumed, and with `in`, unless a result or an item is looked for among numbers.
    """
    match test:
        case ast.UnaryOp(operand=value) | ast.Subscript(value=value):
            return is_python(value)
        case ast.BoolOp(values=values):
            return all(map(is_python, values))
        case ast.BinOp(left=left, right=right):
            return is_python(left) and is_python(right)
        case ast.Compare(left=left, ops=ops, comparators=others):
            if _numbers_in(test):
                return is_python(left)
            of_texts = any(isinstance(s, ast.Constant) and isinstance(s.value, str) for s in (left, *others))
            return of_texts or any(isinstance(o, _IDENTITIES) for o in ops) or all(map(is_python, (left, *others)))
        case ast.Call(func=ast.Name(id=name)):
            return name in _PYTHON_FUNCTIONS
        case ast.Call():
            name = _last(test)
            return name in _PYTHON_ATTRIBUTES or (name.startswith("is_") and name != "is_nonzero")
        case ast.Attribute(attr=name):
            return name in _PYTHON_ATTRIBUTES or dotted(test).startswith(("self.config.", "torch."))
    return isinstance(test, ast.Constant)


def _numbers_in(test: ast.Compare) -> list[ast.expr]:
    """The numbers among which `x[0] in [1., 2.]` looks for a value; none for other conditions."""
    found = getattr(test.comparators[0], "elts", [])
    is_looked_for = isinstance(test.left, ast.Call | ast.Subscript) and [*map(type, test.ops)] == [ast.In]
    is_number = all(isinstance(one, ast.Constant) and type(one.value) in (int, float) for one in found)
    return found if is_looked_for and is_number else []


def apart(problem: Problem, *makers: Callable[[Problem], Candidate]) -> list[Candidate]:
    """The candidates for `if a and b:` as for `if a: if b:`, if possible, where `a` is evaluated without a graph break."""
    edits, places = functools.partial(edits_between, problem.file, problem.source), [problem]  # of the problem's own text
    with contextlib.suppress(NotApplicable):
        places.insert(0, _apart(problem))
    first = [next(((m, p) for p in places for m in applicable(p, make)), None) for make in makers]
    return [replace(m, edits=tuple(edits(with_edits(p.source, m.edits)))) for m, p in filter(None, first)]


def _apart(problem: Problem) -> Problem:
    """The problem with `if a: if b:` for `if a and b:`, where `a` is known; raises NotApplicable for other problems."""
    source = parse(problem.source)
    branch = require(source.branch_at(problem, ast.If))
    operands, unit, loose = and_operands(branch.test), source.indent_unit, (ast.BoolOp, ast.IfExp, ast.Lambda, ast.NamedExpr)
    first = list(itertools.takewhile(functools.partial(_is_known, problem), operands))
    require(0 < len(first) < len(operands) and not any(isinstance(o, loose) for o in operands))
    require(not branch.orelse and source.stands_alone(branch))
    outer, inner = (" and ".join(map(source.text_of, part)) for part in (first, operands[len(first) :]))
    body, until = moved(source.lines_text(branch.body), unit), branch.test.end_lineno or 0
    change = source.in_place_of(branch, branch, [f"if {outer}:", f"{unit}if {inner}:"], body, until)
    text = source.changed(0, len(source.text), [change])
    require("\n" not in outer + inner and parsed(text) is not None)
    line = branch.lineno + len(source.comments(branch.lineno, until)) + 1
    return replace(problem, source=text, line=line, end_line=line, column=len(source.indent(branch) + unit + "if "))


def _is_known(problem: Problem, operand: ast.expr) -> bool:
    """Whether an operand of a condition is evaluated without a graph break: no values decide it, or it comes before what broke.

    Attributes such as `self.flag` after it are taken for Python values, too.
    """
    source, inner = parse(problem.source), getattr(operand, "operand", operand)
    is_other = source.end(operand) <= source.place(problem) or isinstance(inner, ast.Attribute)
    return is_python(operand) or (is_other and not source.is_at(problem, operand))


def and_operands(test: ast.expr) -> list[ast.expr]:
    """The operands of `and`, or the condition itself."""
    return test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]


def number_of(expression: ast.AST) -> tuple[ast.expr, str] | None:
    """`(x, "item")` for `x.item()`, `(x, "float")` for `float(x)` or `float(x.item())`, likewise int and bool; else None."""
    match expression:
        case ast.Call(func=ast.Attribute(value=tensor, attr="item"), args=[], keywords=[]):
            return tensor, "item"
        case ast.Call(func=ast.Name(id="bool" | "float" | "int" as function), args=[value], keywords=[]):
            inner = number_of(value)
            is_tensor = not isinstance(value, ast.Constant | ast.JoinedStr | ast.Starred)
            return (inner[0] if inner is not None and inner[1] == "item" else value, function) if is_tensor else None
    return None


def _is_boolean(test: ast.expr) -> bool:
    """Whether a condition on a tensor is a boolean tensor as it is written."""
    if isinstance(test, ast.UnaryOp):
        return isinstance(test.op, ast.Invert) and _is_boolean(test.operand)
    if isinstance(test, ast.BinOp):
        return isinstance(test.op, ast.BitAnd | ast.BitOr) and _is_boolean(test.left) and _is_boolean(test.right)
    return isinstance(test, ast.Compare) or (isinstance(test, ast.Call) and _last(test) in _BOOLEAN_METHODS)


class Asked(NamedTuple):
    """A condition: the text of a boolean tensor, and of what is asked first, in Python, as short circuits guard code.

    `first` is "" for nothing.  If its truth is not `goes_on`, the condition is `otherwise`, whatever the tensor is.
    """

    tensor: str
    first: str = ""
    goes_on: bool = True
    otherwise: bool = False

    def text(self, where: str = "", yes: str = "True", no: str = "False") -> str:
        """The text of the condition, or of a choice with torch.where, which is made only if the tensor is asked for."""
        made, other = f"{where}({self.tensor}, {yes}, {no})" if where else self.tensor, yes if self.otherwise else no
        first, second = (made, other) if self.goes_on else (other, made)
        return f"{first} if {self.first} else {second}" if self.first else made


def condition(rewrite: Rewrite, test: ast.expr, is_opposite: bool = False) -> Asked:
    """`asked`, where the change takes the condition over: the rewrite notes it, and what is assumed about it."""
    result = asked(rewrite, test, is_opposite)
    rewrite.tests |= dict.fromkeys(conditions_of(rewrite, test))
    # a number by itself needs no assumption: in every precision, it is false for 0 alone
    if any(_number_changes(rewrite.source, operand) for operand in _operands(test)):
        rewrite.assumptions["The condition has the precision and the range of the tensor's dtype instead of Python's."] = None
    calls = rewrite.source.inside(test, ast.Call)
    if any(_last(call) == "equal" and isinstance(call.func, ast.Attribute) for call in calls):
        rewrite.assumptions["The tensors that torch.equal compares have the same shape."] = None
    return result


def as_tensor(rewrite: Rewrite, test: ast.expr, is_opposite: bool = False) -> str:
    """`asked`, as one tensor."""
    found = asked(rewrite, test, is_opposite)
    return f"{rewrite.torch('as_tensor')}({found.text()})" if found.first else found.tensor


def asked(rewrite: Rewrite, test: ast.expr, is_opposite: bool = False) -> Asked:
    """A condition on values, or its opposite; raises NotApplicable if no boolean tensor can be written for the values."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return asked(rewrite, test.operand, not is_opposite)
    number, function = number_of(test) or (None, "")
    if number is not None and (function != "int" or _is_boolean(number)):
        return asked(rewrite, number, is_opposite)
    source, text = rewrite.source, rewrite.source.text_of(test)
    require(not isinstance(test, _LOOSE))
    if isinstance(test, ast.BoolOp):
        is_and, known = isinstance(test.op, ast.And), [v for v in test.values if _is_known(rewrite.problem, v)]
        parts = [as_tensor(rewrite, value, is_opposite) for value in test.values if value not in known]
        text = _joined(rewrite, "logical_and" if is_and != is_opposite else "logical_or", require(parts))
        first = (" and " if is_and else " or ").join(source.argument(v, ast.BoolOp, ast.IfExp, ast.Lambda) for v in known)
        return Asked(text, first, is_and, is_opposite == is_and)
    if isinstance(test, ast.Compare):
        text = _compared(rewrite, test)
    elif number is not None:  # `int(0.5)` is false
        text = f"{_without_numbers(source, test)} != 0"
    elif (elementwise := _elementwise(rewrite, test)) is not None:
        text = elementwise
    elif not _is_boolean(test):
        text = f"{grouped(test, text)} != 0"
    if is_opposite and isinstance(test, ast.Call) and _is_boolean(test):
        text = f"~{text}"
    elif is_opposite:
        is_single = isinstance(test, ast.Compare) and len(test.ops) == 1
        text = f"~({text})" if is_single else f"{rewrite.torch('logical_not')}({text})"
    return Asked(text)


def _compared(rewrite: Rewrite, test: ast.Compare) -> str:
    source, sides = rewrite.source, [test.left, *test.comparators]
    if numbers := _numbers_in(test):
        equal = [f"{_operand(source, test.left)} == {source.text_of(number)}" for number in numbers]
        return _joined(rewrite, "logical_or", equal)
    require(not any(isinstance(o, _IDENTITIES) for o in test.ops))
    if len(sides) == 2:
        return _without_numbers(source, test)
    signs = [source.text[source.end(a) : source.start(b)].strip("() \n") for a, b in itertools.pairwise(sides)]
    pairs = itertools.pairwise(_operand(source, side) for side in sides)
    return _joined(rewrite, "logical_and", [f"{a} {sign} {b}" for sign, (a, b) in zip(signs, pairs, strict=True)])


def _joined(rewrite: Rewrite, function: str, parts: list[str]) -> str:
    return functools.reduce(lambda joined, part: f"{rewrite.torch(function)}({joined}, {part})", parts)


def _elementwise(rewrite: Rewrite, call: ast.expr) -> str | None:
    """A call that gives a Python truth value, as a tensor: `torch.eq(a, b).all()` for `torch.equal(a, b)`; None for others."""
    if not isinstance(call, ast.Call):
        return None
    arguments = [rewrite.source.text_of(a) for a in (*call.args, *call.keywords)]
    match call.func:
        case ast.Name(id="any" | "all" as name) if len(call.args) == 1 and not isinstance(call.args[0], ast.GeneratorExp):
            return f"{rewrite.torch(name)}({', '.join(arguments)})"
        case ast.Attribute(value=value, attr=name) if name == "is_nonzero" or name in _ELEMENTWISE:
            if not rewrite.full(call.func).startswith("torch."):
                arguments.insert(0, rewrite.source.text_of(value))
            joined = f"({', '.join(arguments)})"
            return f"{joined} != 0" if name == "is_nonzero" else f"{rewrite.torch(_ELEMENTWISE[name])}{joined}.all()"
    return None


def _operand(source: Source, expression: ast.expr) -> str:
    """The text of an operand of a comparison."""
    text = _without_numbers(source, expression)
    is_not = isinstance(expression, ast.UnaryOp) and isinstance(expression.op, ast.Not)
    is_loose = isinstance(expression, ast.IfExp | ast.Lambda | ast.NamedExpr | ast.BoolOp | ast.Compare)
    return f"({text})" if is_not or is_loose else text


def _without_numbers(source: Source, expression: ast.expr) -> str:
    """The text of an expression with `x` for `x.item()`, `float(x)` and `bool(x)`, and `x.long()` for `int(x)`."""
    return source.changed(source.start(expression), source.end(expression), _number_changes(source, expression))


def _number_changes(source: Source, node: ast.AST) -> list[Change]:
    number = number_of(node)
    if number is None:
        return [change for child in ast.iter_child_nodes(node) for change in _number_changes(source, child)]
    inner = grouped(number[0], source.text_of(number[0]))
    return [(source.start(node), source.end(node), inner + ".long()" * (number[1] == "int"))]


def conditions_of(rewrite: Rewrite, test: ast.expr) -> list[Condition]:
    """The operands of `and`, `or` and `not` in a condition, or the condition itself, without those that no values decide.

    Each with its text now, and its text in the changed code.
    """
    found = []
    for operand in _operands(test):
        before = after = rewrite.source.text_of(operand)
        with contextlib.suppress(NotApplicable):
            if isinstance(operand, ast.Compare) or _elementwise(rewrite, operand) is not None:
                after = as_tensor(rewrite, operand)
            if not is_python(operand):
                found.append(Condition(*(ast.unparse(ast.parse(f"({text}\n)", mode="eval")) for text in (before, after))))
    return found


def _operands(test: ast.expr) -> list[ast.expr]:
    """The operands of `and`, `or` and `not` in a condition, or the condition itself; `x` for `x.item()` and `bool(x)`."""
    number, inner = number_of(test), [test]
    if number is not None:
        inner = [number[0]]
    elif isinstance(test, ast.BoolOp):
        inner = test.values
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = [test.operand]
    return inner if inner == [test] else [operand for one in inner for operand in _operands(one)]


def not_in_place(source: Source, block: list[ast.stmt]) -> list[Change]:
    """The changes that turn `x += 1` into `x = x + 1`: torch.cond and while_loop do not let their functions change operands."""
    found: list[Change] = []
    for node in (node for one in block for node in source.inside(one, ast.AugAssign)):
        if isinstance(node.target, ast.Name):
            name, value = node.target.id, grouped(node.value, source.text_of(node.value))
            operator = source.text[source.end(node.target) : source.start(node.value)].strip("( \n\\").removesuffix("=")
            found.append((source.start(node), source.end(node), f"{name} = {name} {operator} {value}"))
    return found


def grouped(expression: ast.expr, text: str) -> str:
    """Text that can be followed by `.method()`: in parentheses unless the expression is a name, a call or the like.

    `text` is the expression's own text, which never has parentheses around it.
    """
    is_number = isinstance(expression, ast.Constant) and not isinstance(expression.value, str)
    return text if is_number or isinstance(expression, ast.Name | ast.Attribute | ast.Call | ast.Subscript) else f"({text})"
