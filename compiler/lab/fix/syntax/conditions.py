"""Conditions in source text: which of them depend on the values of tensors, and how these are written as boolean tensors."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import libcst as cst

from dynascope.compiler.lab.fix.candidate import Condition
from dynascope.compiler.lab.fix.syntax.names import dotted
from dynascope.compiler.lab.fix.syntax.source_text import Source
from dynascope.compiler.lab.fix.syntax.torch_names import Torch

#: attributes and methods, of tensors and other objects, that do not depend on the values of a tensor
_PYTHON_ATTRIBUTES = frozenset({
    "shape", "ndim", "dtype", "device", "training", "requires_grad", "is_cuda", "size", "dim", "numel", "element_size",
    "stride", "is_contiguous", "is_floating_point", "is_complex", "get", "keys", "startswith", "endswith", "is_sparse",
    "grad_fn", "layout",
})  # fmt: skip
_PYTHON_FUNCTIONS = {"len", "isinstance", "hasattr", "callable", "type", "issubclass", "id"}
#: function that gives a Python truth value -> the elementwise function; `is_nonzero` becomes `!= 0`
_ELEMENTWISE = {"equal": "eq", "allclose": "isclose", "is_nonzero": ""}
_NUMBER_FUNCTIONS = {"bool", "float", "int"}
_BOOLEAN_METHODS = frozenset({
    "any", "all", "isnan", "isinf", "isfinite", "eq", "ne", "lt", "le", "gt", "ge", "logical_not", "logical_and",
    "logical_or", "bool", "isclose",
})  # fmt: skip


def is_python(test: cst.BaseExpression) -> bool:
    """Whether the text of a condition shows that no tensor's values decide it; with `in` or `is`, this is assumed."""
    if isinstance(test, cst.UnaryOperation):
        return is_python(test.expression)
    if isinstance(test, cst.BooleanOperation | cst.BinaryOperation):
        return is_python(test.left) and is_python(test.right)
    if isinstance(test, cst.Comparison):
        operators = [c.operator for c in test.comparisons]
        if any(isinstance(o, cst.Is | cst.IsNot | cst.In | cst.NotIn) for o in operators):
            return True
        sides = [test.left, *(c.comparator for c in test.comparisons)]
        return all(is_python(s) for s in sides) or any(isinstance(s, cst.SimpleString) for s in sides)
    if isinstance(test, cst.Subscript):
        return is_python(test.value)
    if isinstance(test, cst.Call):
        if isinstance(test.func, cst.Name):
            return test.func.value in _PYTHON_FUNCTIONS
        method = test.func.attr.value if isinstance(test.func, cst.Attribute) else ""
        return method in _PYTHON_ATTRIBUTES or (method.startswith("is_") and method != "is_nonzero")
    if isinstance(test, cst.Attribute):
        return test.attr.value in _PYTHON_ATTRIBUTES or dotted(test).startswith("self.config.")
    return isinstance(test, cst.Integer | cst.Float | cst.SimpleString) or (
        isinstance(test, cst.Name) and test.value in ("True", "False", "None")
    )


def number_of(expression: cst.BaseExpression) -> tuple[cst.BaseExpression, str] | None:
    """`(x, "item")` for `x.item()`, `(x, "float")` for `float(x)` or `float(x.item())`, likewise int and bool; else None."""
    if not isinstance(expression, cst.Call):
        return None
    function = expression.func
    if isinstance(function, cst.Attribute) and function.attr.value == "item" and not expression.args:
        return function.value, "item"
    if isinstance(function, cst.Name) and function.value in _NUMBER_FUNCTIONS and len(expression.args) == 1:
        argument = expression.args[0]
        if (
            argument.keyword is None
            and not argument.star
            and not isinstance(argument.value, cst.BaseString | cst.Integer | cst.Float)
        ):
            inner = number_of(argument.value)
            if inner is not None and inner[1] == "item":
                return inner[0], function.value
            return argument.value, function.value
    return None


def is_boolean(test: cst.BaseExpression) -> bool:
    """Whether a condition on a tensor is a boolean tensor as it is written."""
    if isinstance(test, cst.Comparison):
        return True
    if isinstance(test, cst.UnaryOperation):
        return isinstance(test.operator, cst.BitInvert) and is_boolean(test.expression)
    if isinstance(test, cst.BinaryOperation):
        return isinstance(test.operator, cst.BitAnd | cst.BitOr) and is_boolean(test.left) and is_boolean(test.right)
    if isinstance(test, cst.Call) and isinstance(test.func, cst.Attribute | cst.Name):
        name = test.func.attr.value if isinstance(test.func, cst.Attribute) else test.func.value
        return name in _BOOLEAN_METHODS
    return False


def as_tensor(source: Source, torch: Torch, test: cst.BaseExpression) -> str | None:
    """The text of a condition on values as one boolean tensor; None if it cannot be written as one."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return negated(source, torch, test.expression)
    if isinstance(test, cst.BooleanOperation):
        if is_python(test.left) or is_python(test.right):
            return None
        left, right = as_tensor(source, torch, test.left), as_tensor(source, torch, test.right)
        if left is None or right is None:
            return None
        both = "logical_and" if isinstance(test.operator, cst.And) else "logical_or"
        return f"{torch(both)}({left}, {right})"
    if isinstance(test, cst.Comparison):
        return _comparison(source, torch, test)
    number = number_of(test)
    if number is not None and number[1] == "int" and not is_boolean(number[0]):  # `int(0.5)` is false
        return f"{without_numbers(source, test)} != 0"
    if number is not None:
        return as_tensor(source, torch, number[0])
    if isinstance(test, cst.NamedExpr | cst.IfExp | cst.Lambda | cst.Tuple | cst.List | cst.Dict | cst.BaseString):
        return None
    text = source.text_of(test)
    if isinstance(test, cst.Call) and (elementwise := _elementwise(source, torch, test)) is not None:
        return elementwise
    if is_boolean(test):
        return text
    return f"{grouped(test, text)} != 0"


def _elementwise(source: Source, torch: Torch, call: cst.Call) -> str | None:
    """A call that gives a Python truth value, as a tensor: `torch.eq(a, b).all()` for `torch.equal(a, b)`; None for others."""
    method = call.func.attr.value if isinstance(call.func, cst.Attribute) else ""
    given = ", ".join(source.text_of(a).rstrip(" ,") for a in call.args)
    if isinstance(call.func, cst.Name) and call.func.value in ("any", "all") and len(call.args) == 1:
        return None if isinstance(call.args[0].value, cst.GeneratorExp) else f"{torch(call.func.value)}({given})"
    if method not in _ELEMENTWISE or not isinstance(call.func, cst.Attribute):
        return None
    whole = torch.is_torch(call.func) is not None
    first = "" if whole else source.text_of(call.func.value) + (", " if given else "")
    if method == "is_nonzero":
        return f"({first}{given}) != 0"
    return f"{torch(_ELEMENTWISE[method])}({first}{given}).all()"


def _comparison(source: Source, torch: Torch, test: cst.Comparison) -> str | None:
    links = [c.operator for c in test.comparisons]
    if any(isinstance(o, cst.Is | cst.IsNot | cst.In | cst.NotIn) for o in links):
        return None
    text = without_numbers(source, test)
    if len(links) == 1:
        return text
    parts, left = [], test.left
    for link in test.comparisons:
        operator = source.text_of(link.operator).strip()
        parts.append(f"{_operand(source, left)} {operator} {_operand(source, link.comparator)}")
        left = link.comparator
    joined = parts[0]
    for part in parts[1:]:
        joined = f"{torch('logical_and')}({joined}, {part})"
    return joined


def _operand(source: Source, expression: cst.BaseExpression) -> str:
    """The text of an operand of a comparison."""
    text = without_numbers(source, expression)
    is_loose = isinstance(expression, cst.IfExp | cst.Lambda | cst.NamedExpr | cst.BooleanOperation | cst.Comparison)
    is_not = isinstance(expression, cst.UnaryOperation) and isinstance(expression.operator, cst.Not)
    return f"({text})" if is_loose or is_not else text


def without_numbers(source: Source, expression: cst.BaseExpression) -> str:
    """The text of an expression with `x` for `x.item()`, `float(x)` and `bool(x)`, and `x.long()` for `int(x)`."""
    start, text = source.start(expression), source.text[source.start(expression) : source.end(expression)]
    for low, high, new in sorted(number_changes(source, expression), reverse=True):
        text = text[: low - start] + new + text[high - start :]
    return text.replace("\r\n", "\n")


def number_changes(source: Source, expression: cst.CSTNode) -> list[tuple[int, int, str]]:
    """The changes that `without_numbers` makes."""
    found: list[tuple[int, int, str]] = []
    pending: list[cst.CSTNode] = [expression]
    while pending:
        node = pending.pop()
        number = number_of(node) if isinstance(node, cst.BaseExpression) else None
        if number is not None:
            inner = grouped(number[0], source.text_of(number[0]))
            whole = ".long()" if number[1] == "int" else ""
            found.append((source.start(node), source.end(node), f"{inner}{whole}"))
        else:
            pending.extend(node.children)
    return found


def parts(source: Source, torch: Torch, test: cst.BaseExpression) -> tuple[Condition, ...]:
    """The operands of `and`, `or` and `not` in a condition, or the condition itself, without those that no values decide.

    Each with its text now, and its text in the changed code.
    """
    found = []
    for operand in _operands(test):
        before = after = source.text_of(operand)
        elementwise = isinstance(operand, cst.Call) and _elementwise(source, torch, operand) is not None
        if elementwise or isinstance(operand, cst.Comparison):
            after = as_tensor(source, torch, operand) or ""
        if after and not is_python(operand):
            found.append(Condition(_one_line(before), _one_line(after)))
    return tuple(found)


def _operands(test: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """The operands of `and`, `or` and `not` in a condition, or the condition itself; `x` for `x.item()` and `bool(x)`."""
    number = number_of(test)
    if number is not None:
        yield from _operands(number[0])
    elif isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        yield from _operands(test.expression)
    elif isinstance(test, cst.BooleanOperation):
        yield from _operands(test.left)
        yield from _operands(test.right)
    else:
        yield test


def precision(source: Source, *tests: cst.BaseExpression) -> str:
    """What is taken for granted about these conditions: sentences, each with a space before it; "" for nothing."""
    words = ""
    # a number by itself needs no assumption: in every precision, it is false for 0 alone
    if any(number_changes(source, operand) for test in tests for operand in _operands(test)):
        words += " The condition has the precision and the range of the tensor's dtype instead of Python's."
    if any(_is_equal(call) for test in tests for call in (test, *source.inside(test, cst.Call))):
        words += " The tensors that torch.equal compares have the same shape."
    return words


def in_one_statement(text: str) -> str:
    """The text of an expression as a statement's value: in parentheses if it has several lines."""
    return f"({text})" if "\n" in text else text


def _is_equal(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value == "equal"


def _one_line(text: str) -> str:
    return ast.unparse(ast.parse(f"({text}\n)", mode="eval")) if "\n" in text else text


def not_in_place(source: Source, *nodes: cst.CSTNode) -> list[tuple[int, int, str]]:
    """The changes that turn `x += 1` into `x = x + 1`: torch.cond and while_loop do not let their functions change operands."""
    found: list[tuple[int, int, str]] = []
    pending = list(nodes)
    while pending:
        node = pending.pop()
        if isinstance(node, cst.AugAssign) and isinstance(node.target, cst.Name):
            name, operator = node.target.value, source.text_of(node.operator).strip().removesuffix("=")
            value = source.text_of(node.value)
            value = value if _is_simple(node.value) else grouped(node.value, value)
            found.append((source.start(node), source.end(node), f"{name} = {name} {operator} {value}"))
        pending.extend(node.children)
    return found


def _is_simple(value: cst.BaseExpression) -> bool:
    return isinstance(value, cst.Integer | cst.Float | cst.Name | cst.Call | cst.Attribute)


def grouped(expression: cst.BaseExpression, text: str) -> str:
    """Text that can be followed by `.method()`: in parentheses unless the expression is a name, a call or the like.

    `text` is the expression's own text, which never has parentheses around it.
    """
    return text if isinstance(expression, cst.Name | cst.Attribute | cst.Call | cst.Subscript) else f"({text})"


def negated(source: Source, torch: Torch, test: cst.BaseExpression) -> str | None:
    """The opposite of a condition on values as one boolean tensor; None if it cannot be written as one."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return as_tensor(source, torch, test.expression)
    number = number_of(test)
    if number is not None and number[1] != "int":
        return negated(source, torch, number[0])
    condition = as_tensor(source, torch, test)
    if condition is None:
        return None
    if isinstance(test, cst.Call) and is_boolean(test):
        return f"~{condition}"
    if isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
        return f"~({condition})"
    return f"{torch('logical_not')}({condition})"
