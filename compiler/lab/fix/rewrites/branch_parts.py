"""What `branches` and `branch_functions` share: reading the assignments of a branch's sides, and which values are refused."""

from __future__ import annotations

import libcst as cst


def is_no_tensor(value: cst.BaseExpression) -> bool:
    """Whether a value is certainly neither a tensor nor a number that can become one."""
    return isinstance(value, cst.BaseString | cst.Lambda | cst.Dict | cst.List | cst.Set | cst.Tuple) or (
        isinstance(value, cst.Name) and value.value in ("None", "True", "False", "Ellipsis")
    )


def is_starred(value: cst.CSTNode) -> bool:
    """Whether a value or a target is a tuple with `*a` in it."""
    return isinstance(value, cst.Tuple) and any(isinstance(e, cst.StarredElement) for e in value.elements)


def without_alias(value: cst.BaseExpression, text: str) -> str:
    """The text of a value, with `.clone()` if it is a name, an attribute or an item.

    Such a value may share memory with an operand, which torch.cond does not allow.
    """
    return f"{text}.clone()" if isinstance(value, cst.Name | cst.Attribute | cst.Subscript) else text


class Refused(Exception):
    """Raised if a branch cannot be written in the wanted form."""


def targets(one: cst.CSTNode) -> list[tuple[str, tuple[cst.BaseExpression, str]]]:
    """The names that a simple statement assigns, each with its value and its operator.

    The operator is `+=`, `-=`, `*=` or `/=`, "?" for any other that changes a name, and "" for `=`.

    Raises `Refused` for anything but `pass`, an assignment to one name, or an unpacking such as `a, b = 1, 2`.
    """
    if isinstance(one, cst.Pass):
        return []
    if isinstance(one, cst.AugAssign) and isinstance(one.target, cst.Name):
        operator = {"AddAssign": "+=", "SubtractAssign": "-=", "MultiplyAssign": "*=", "DivideAssign": "/="}
        return [(one.target.value, (one.value, operator.get(type(one.operator).__name__, "?")))]
    if isinstance(one, cst.AnnAssign) and isinstance(one.target, cst.Name) and one.value is not None:
        return [(one.target.value, (one.value, ""))]
    if isinstance(one, cst.Assign) and len(one.targets) == 1:
        target = one.targets[0].target
        if isinstance(target, cst.Name):
            return [(target.value, (one.value, ""))]
        if (
            isinstance(target, cst.Tuple)
            and isinstance(one.value, cst.Tuple)
            and not is_starred(target)
            and not is_starred(one.value)
            and len(target.elements) == len(one.value.elements)
        ):
            pairs = list(zip(target.elements, one.value.elements, strict=True))
            if all(isinstance(t.value, cst.Name) for t, _ in pairs):
                return [(t.value.value, (v.value, "")) for t, v in pairs if isinstance(t.value, cst.Name)]
    raise Refused
