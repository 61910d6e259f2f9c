"""Conditions in source text: which of them depend on the values of tensors, and how these are written as boolean tensors."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from dynascope.compiler.lab.fix.candidate import Condition
from dynascope.compiler.lab.fix.rewrites.source import Change, Source, Torch, dotted

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
_IDENTITIES = (ast.Is, ast.IsNot, ast.In, ast.NotIn)


def _last(call: ast.Call) -> str:
    """The name of the called function or method."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else dotted(call.func)


def is_python(test: ast.expr) -> bool:
    """Whether the text of a condition shows that no tensor's values decide it; with `in` or `is`, this is assumed."""
    if isinstance(test, ast.UnaryOp):
        return is_python(test.operand)
    if isinstance(test, ast.BoolOp):
        return all(map(is_python, test.values))
    if isinstance(test, ast.BinOp):
        return is_python(test.left) and is_python(test.right)
    if isinstance(test, ast.Compare):
        sides = [test.left, *test.comparators]
        of_texts = any(isinstance(s, ast.Constant) and isinstance(s.value, str) for s in sides)
        return of_texts or any(isinstance(o, _IDENTITIES) for o in test.ops) or all(map(is_python, sides))
    if isinstance(test, ast.Subscript):
        return is_python(test.value)
    if isinstance(test, ast.Call):
        name = _last(test)
        if isinstance(test.func, ast.Name):
            return name in _PYTHON_FUNCTIONS
        return name in _PYTHON_ATTRIBUTES or (name.startswith("is_") and name != "is_nonzero")
    if isinstance(test, ast.Attribute):
        return test.attr in _PYTHON_ATTRIBUTES or dotted(test).startswith("self.config.")
    return isinstance(test, ast.Constant)


def number_of(expression: ast.AST) -> tuple[ast.expr, str] | None:
    """`(x, "item")` for `x.item()`, `(x, "float")` for `float(x)` or `float(x.item())`, likewise int and bool; else None."""
    if not isinstance(expression, ast.Call) or expression.keywords:
        return None
    function = expression.func
    if isinstance(function, ast.Attribute) and function.attr == "item" and not expression.args:
        return function.value, "item"
    if dotted(function) in ("bool", "float", "int") and len(expression.args) == 1:
        argument = expression.args[0]
        if not isinstance(argument, ast.Constant | ast.JoinedStr | ast.Starred):
            inner = number_of(argument)
            return inner[0] if inner is not None and inner[1] == "item" else argument, dotted(function)
    return None


def is_boolean(test: ast.expr) -> bool:
    """Whether a condition on a tensor is a boolean tensor as it is written."""
    if isinstance(test, ast.UnaryOp):
        return isinstance(test.op, ast.Invert) and is_boolean(test.operand)
    if isinstance(test, ast.BinOp):
        return isinstance(test.op, ast.BitAnd | ast.BitOr) and is_boolean(test.left) and is_boolean(test.right)
    return isinstance(test, ast.Compare) or (isinstance(test, ast.Call) and _last(test) in _BOOLEAN_METHODS)


def as_tensor(source: Source, torch: Torch, test: ast.expr) -> str | None:
    """The text of a condition on values as one boolean tensor; None if it cannot be written as one."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return negated(source, torch, test.operand)
    if isinstance(test, ast.BoolOp):
        parts = [as_tensor(source, torch, value) for value in test.values]
        if any(part is None for part in parts) or any(map(is_python, test.values)):
            return None
        return _joined(torch, "logical_and" if isinstance(test.op, ast.And) else "logical_or", list(filter(None, parts)))
    if isinstance(test, ast.Compare):
        if any(isinstance(o, _IDENTITIES) for o in test.ops):
            return None
        sides = [test.left, *test.comparators]
        if len(sides) == 2:
            return without_numbers(source, test)
        texts = [_operand(source, side) for side in sides]
        signs = [source.text[source.end(a) : source.start(b)].strip("() \n") for a, b in itertools.pairwise(sides)]
        links = [f"{a} {sign} {b}" for a, sign, b in zip(texts, signs, texts[1:], strict=False)]
        return _joined(torch, "logical_and", links)
    number = number_of(test)
    if number is not None and number[1] == "int" and not is_boolean(number[0]):  # `int(0.5)` is false
        return f"{without_numbers(source, test)} != 0"
    if number is not None:
        return as_tensor(source, torch, number[0])
    loose = (ast.NamedExpr, ast.IfExp, ast.Lambda, ast.Tuple, ast.List, ast.Dict, ast.Constant, ast.JoinedStr)
    if isinstance(test, loose):
        return None
    text = source.text_of(test)
    if (elementwise := _elementwise(source, torch, test)) is not None:
        return elementwise
    return text if is_boolean(test) else f"{grouped(test, text)} != 0"


def _joined(torch: Torch, function: str, parts: list[str]) -> str:
    joined = parts[0]
    for part in parts[1:]:
        joined = f"{torch(function)}({joined}, {part})"
    return joined


def negated(source: Source, torch: Torch, test: ast.expr) -> str | None:
    """The opposite of a condition on values as one boolean tensor; None if it cannot be written as one."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return as_tensor(source, torch, test.operand)
    number = number_of(test)
    if number is not None and number[1] != "int":
        return negated(source, torch, number[0])
    condition = as_tensor(source, torch, test)
    if condition is None:
        return None
    if isinstance(test, ast.Call) and is_boolean(test):
        return f"~{condition}"
    is_single = isinstance(test, ast.Compare) and len(test.ops) == 1
    return f"~({condition})" if is_single else f"{torch('logical_not')}({condition})"


def _elementwise(source: Source, torch: Torch, call: ast.expr) -> str | None:
    """A call that gives a Python truth value, as a tensor: `torch.eq(a, b).all()` for `torch.equal(a, b)`; None for others."""
    if not isinstance(call, ast.Call):
        return None
    given = ", ".join(source.text_of(a) for a in (*call.args, *call.keywords))
    if dotted(call.func) in ("any", "all") and len(call.args) == 1:
        return None if isinstance(call.args[0], ast.GeneratorExp) else f"{torch(_last(call))}({given})"
    if not isinstance(call.func, ast.Attribute):
        return None
    is_whole = torch.full(call.func).startswith("torch.")
    first = "" if is_whole else source.text_of(call.func.value) + (", " if given else "")
    if call.func.attr == "is_nonzero":
        return f"({first}{given}) != 0"
    name = _ELEMENTWISE.get(call.func.attr)
    return None if name is None else f"{torch(name)}({first}{given}).all()"


def _operand(source: Source, expression: ast.expr) -> str:
    """The text of an operand of a comparison."""
    text = without_numbers(source, expression)
    is_not = isinstance(expression, ast.UnaryOp) and isinstance(expression.op, ast.Not)
    return (
        f"({text})"
        if is_not or isinstance(expression, ast.IfExp | ast.Lambda | ast.NamedExpr | ast.BoolOp | ast.Compare)
        else text
    )


def without_numbers(source: Source, expression: ast.expr) -> str:
    """The text of an expression with `x` for `x.item()`, `float(x)` and `bool(x)`, and `x.long()` for `int(x)`."""
    return source.changed(source.start(expression), source.end(expression), _number_changes(source, expression))


def _number_changes(source: Source, node: ast.AST) -> list[Change]:
    number = number_of(node)
    if number is None:
        return [change for child in ast.iter_child_nodes(node) for change in _number_changes(source, child)]
    inner = grouped(number[0], source.text_of(number[0]))
    return [(source.start(node), source.end(node), inner + ".long()" * (number[1] == "int"))]


def parts(source: Source, torch: Torch, test: ast.expr) -> tuple[Condition, ...]:
    """The operands of `and`, `or` and `not` in a condition, or the condition itself, without those that no values decide.

    Each with its text now, and its text in the changed code.
    """
    found = []
    for operand in _operands(test):
        before = after = source.text_of(operand)
        if isinstance(operand, ast.Compare) or _elementwise(source, torch, operand) is not None:
            after = as_tensor(source, torch, operand) or ""
        if after and not is_python(operand):
            found.append(Condition(*(ast.unparse(ast.parse(f"({text}\n)", mode="eval")) for text in (before, after))))
    return tuple(found)


def _operands(test: ast.expr) -> Iterator[ast.expr]:
    """The operands of `and`, `or` and `not` in a condition, or the condition itself; `x` for `x.item()` and `bool(x)`."""
    number = number_of(test)
    if number is not None:
        yield from _operands(number[0])
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _operands(test.operand)
    elif isinstance(test, ast.BoolOp):
        for value in test.values:
            yield from _operands(value)
    else:
        yield test


def precision(source: Source, *tests: ast.expr) -> str:
    """What is assumed about these conditions: sentences, each with a space before it; "" for nothing."""
    words = ""
    # a number by itself needs no assumption: in every precision, it is false for 0 alone
    if any(_number_changes(source, operand) for test in tests for operand in _operands(test)):
        words += " The condition has the precision and the range of the tensor's dtype instead of Python's."
    if any(
        _last(call) == "equal" and isinstance(call.func, ast.Attribute)
        for test in tests
        for call in source.inside(test, ast.Call)
    ):
        words += " The tensors that torch.equal compares have the same shape."
    return words


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
