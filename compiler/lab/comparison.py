"""Splits a value into comparable parts (tensors, arrays, Python numbers and strings), and compares two parts.

Containers, and objects with attributes or slots, are split without running any of the user's code.
"""

from __future__ import annotations

import dataclasses
import functools
import re
import sys
import types
from collections import deque
from collections.abc import Iterator
from typing import Any

import torch

from dynascope.compiler.lab.objects import PLAIN, attributes_of, places_of, slots_of
from dynascope.compiler.source.origin import module_of

#: at most this many levels of nesting are compared
DEEPEST = 8
#: how `difference` begins for tensors that torch.testing cannot compare
NOT_COMPARABLE = "not comparable"
#: types of numbers that `torch.testing` compares; others, such as members of an IntEnum, are equal or not, as texts are
_NUMBERS = (int, float, complex)
#: types of values that are not compared
_IGNORED = (type(None), type, types.FunctionType, types.MethodType, types.BuiltinFunctionType, types.ModuleType,
            types.CodeType, functools.partial)  # fmt: skip

Part = tuple[str, Any]
Ids = tuple[int, ...]


def parts_of(
    name: str, value: Any, opaque: dict[str, None] | None = None, around: Ids = (), visited: set[int] | None = None
) -> Iterator[Part]:
    """The parts of a value that can be compared, each with a name.

    Names of classes of objects that cannot be split, or that are nested too deeply, go into `opaque`, and ids of the objects
    that were split into `visited`.  `around`: ids of the objects that hold the value.
    """
    if isinstance(value, (torch.Tensor, *PLAIN)) or is_array(value):
        yield name, value
        return
    if isinstance(value, (*_IGNORED, torch.nn.Module, torch.dtype, torch.device)) or id(value) in around:
        return
    inside = _inside(value) if len(around) < DEEPEST else None
    if inside is None and opaque is not None:
        opaque[type(value).__name__] = None
    if inside is not None and visited is not None:
        visited.add(id(value))
    for place, inner in inside or ():
        yield from parts_of(f"{name}{place}", inner, opaque, (*around, id(value)), visited)


def is_array(value: Any) -> bool:
    """Whether this is a NumPy array or scalar, not of Python objects; does not import NumPy."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic)) and not value.dtype.hasobject


def _inside(value: Any) -> list[Part] | None:
    """The contents of a container or object and their places; None if unknown, unordered, or internal to torch or dynascope."""
    if isinstance(value, (dict, list, tuple, deque)):
        return places_of(value)
    if any(module_of(base) == "builtins" for base in type(value).__mro__[:-1]):
        return None  # a set, an exception: what is in it is no attribute
    is_known = dataclasses.is_dataclass(value) or attributes_of(value) is not None or slots_of(type(value))
    is_internal = module_of(type(value)).partition(".")[0] in ("torch", "dynascope", "builtins")
    return places_of(value) if is_known and not is_internal else None


@dataclasses.dataclass(frozen=True)
class Rounding:
    """The rounding that a value may show: that of the lowest precision on the way to it."""

    #: a dtype, or None: that of the value
    precision: Any = None
    #: what is near zero may differ as much as a value of this size may; None: as the largest value of a tensor
    scale: float | None = None

    def tolerances(self, expected: Any) -> tuple[float | None, float | None]:
        """The relative and the absolute tolerance; (None, None): those of `torch.testing` for the value's own dtype.

        In half precision or less, they are two units in the last place, of the value and of the largest one; both are allowed.
        Integers and truth values are counts, indices or choices, which are not rounded.
        A Python number that may come out of float32 has the tolerances of that.
        """
        precision: Any = self.precision or getattr(expected, "dtype", None)
        if precision is torch.float32 and isinstance(expected, float):
            return 1.3e-6, 1e-5
        if not is_low(precision) or not ((value := torch.as_tensor(expected)).is_floating_point() or value.is_complex()):
            return None, None
        relative = 2 * torch.finfo(precision).eps
        return relative, relative * (largest(expected) if self.scale is None else self.scale)


def is_low(precision: Any) -> bool:
    """Whether this is a floating-point dtype of half precision or less."""
    known = isinstance(precision, torch.dtype) and precision.is_floating_point
    return known and torch.finfo(precision).eps >= torch.finfo(torch.float16).eps


OWN = Rounding()


def largest(value: Any) -> float:
    """The largest finite magnitude in a tensor or number; 0 if there is none."""
    values = torch.as_tensor(value).detach().abs().double()
    values = values[values.isfinite()]
    return float(values.max()) if values.numel() else 0.0


def difference(actual: Any, expected: Any, rounding: Rounding = OWN) -> str | None:
    """How two parts differ, mostly in the words of `torch.testing`; None if they are equal, or close enough."""
    if isinstance(actual, PLAIN) and type(actual) is type(expected) and actual == expected:
        return None
    if any(isinstance(v, PLAIN) and type(v) not in _NUMBERS and not is_array(v) for v in (actual, expected)):
        return f"{actual!r:.60}, eager {expected!r:.60}"
    if isinstance(actual, torch.Tensor) is not isinstance(expected, torch.Tensor):
        return f"a {type(actual).__name__}, eager a {type(expected).__name__}"
    try:
        relative, absolute = rounding.tolerances(expected)
        actual, expected = (v[...] if is_array(v) else v for v in (actual, expected))  # a scalar of NumPy's becomes an array
        torch.testing.assert_close(actual, expected, equal_nan=True, rtol=relative, atol=absolute)
    except AssertionError as error:
        if isinstance(actual, _NUMBERS) and isinstance(expected, _NUMBERS):
            return f"{actual!r}, eager {expected!r}"
        more = "" if relative is None else f"by more than the rounding of {rounding.precision or expected.dtype}: "
        return more.replace("torch.", "") + re.sub(r"^[\w-]+ are not (close|equal)! ", "", " ".join(str(error).split()))[:240]
    except Exception as error:  # arrays of dtypes that torch does not have: texts, dates, records
        if not (is_array(actual) and is_array(expected)):
            return f"{NOT_COMPARABLE}: {type(error).__name__}"
        is_same = (actual.dtype, actual.shape) == (expected.dtype, expected.shape) and actual.tobytes() == expected.tobytes()
        return None if is_same else f"{actual!r:.60}, eager {expected!r:.60}"
    return None
