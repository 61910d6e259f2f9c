"""How two observed runs differ, in words, and whether a fix may differ so under a condition."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import torch

from dynascope.compiler.lab.comparison import Rounding, difference, largest
from dynascope.compiler.lab.experiment import Observation
from dynascope.compiler.report import first_line, message_of, plural

OTHER_ORDER = "Its output comes in a different order"
LOST_CHANGES = "What a call has changed before it raises an exception can be lost"
#: tolerance for gradients, relative to their largest element
_ROUNDING = 2e-6
#: the relative and the absolute tolerance of torch.testing in float32; a call's own rounding may be so many times as large
_USUAL, _OWN_TIMES = (1.3e-6, 1e-5), 100
#: tolerance for printed numbers
_PRINTED = 1e-4
_NUMBER = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?")


class Difference(NamedTuple):
    """How a run differs from eager's: the end of a sentence about the run."""

    text: str
    #: whether nothing but a message or an exception differs, or a check is lost
    is_condition: bool = False
    is_lost_check: bool = False


#: whether a part, (group, index), differs only by what the call's own rounding explains
IsOwn = Callable[[str, int], bool]


def differences(
    actual: Observation, expected: Observation, *, made: bool = False, is_own: IsOwn = lambda what, index: False
) -> Difference | None:
    """How a run differs from eager's, in words; None if it does not.

    `made`: whether the inputs are not those of a recorded call; the program may depend on the exceptions of recorded calls.
    """
    if expected.error is not None and actual.error is None:
        return Difference(f"raises nothing where eager raises {expected.error_type}", made, made)
    if actual.error is not None:
        text = _other_error(actual, expected)
        return None if text is None else Difference(text, made and expected.error is not None)
    wrong = _other_parts(actual, expected, is_own)
    return Difference(wrong) if wrong is not None else _other_output(actual, expected)


def without_zero_gradients(actual: Observation, expected: Observation, *, parameters: bool = False) -> Observation:
    """The run without those gradients that are zero and belong to arguments for which eager has no gradient.

    Those of parameters stay, unless `parameters`: an optimizer skips a parameter without a gradient, and decays one whose
    gradient is zero.
    """
    if actual.error is not None or expected.error is not None:
        return actual
    parts, names = actual.parts, {name for name, _ in expected.parts["gradients"]}
    kept = [
        (name, value)
        for name, value in parts["gradients"]
        if name in names or not (parameters or name.startswith("gradient of argument")) or bool(value.any())
    ]
    if len(kept) == len(parts["gradients"]):
        return actual
    return replace(actual, parts={**parts, "gradients": kept})


def remarks(actual: Observation, expected: Observation, *, is_same: bool) -> Iterator[str]:
    """How a run differs in what a condition allows; `is_same`: whether `differences` has found no difference."""
    if expected.error is not None and actual.error is not None:
        if _other_parts(actual, expected):
            yield LOST_CHANGES
    elif is_same:
        rounding = _printed_rounding(expected)
        printed = _same_lines(actual.printed.splitlines(), expected.printed.splitlines(), rounding)
        if not (printed and _same_lines(actual.logged, expected.logged, rounding)):
            yield OTHER_ORDER


def _other_error(actual: Observation, expected: Observation) -> str | None:
    if expected.error is None:
        return f"raises {actual.error_type}: {first_line(message_of(actual.error))[:160]}"
    if actual.error_type != expected.error_type:
        return f"raises {actual.error_type} where eager raises {expected.error_type}"
    printed = actual.printed.splitlines()  # with the compiler's own lines about the exception
    lost = next((line for line in expected.printed.splitlines() if not any(_same_line(p, line) for p in printed)), None)
    return None if lost is None else f"does not print {lost!r:.60} before it raises {actual.error_type}"


def _other_parts(actual: Observation, expected: Observation, is_own: IsOwn = lambda what, index: False) -> str | None:
    for what in expected.parts:
        found, parts = actual.beside(expected, what)
        names, wanted = [name for name, _ in found], [name for name, _ in parts]
        if names != wanted:
            missing = [name for name in wanted if name not in names]
            added = [name for name in names if name not in wanted]
            order = "in another order" if len(names) == len(wanted) else f"{len(names)} parts where eager has {len(wanted)}"
            which = f"no {missing[0]}" if missing else f"{added[0]} where eager has none" if added else order
            return f"{what} differ: {which}"
        for index, ((name, one), (_, other)) in enumerate(zip(found, parts, strict=True)):
            text = difference(one, other, expected.rounding(what, name))
            if text is not None and not (what == "gradients" and _is_rounding(one, other)) and not is_own(what, index):
                return f"{what} differ: {name}: {text}"
    return None


def _is_rounding(one: Any, other: Any) -> bool:
    """Whether gradients differ only by rounding, as after summation in another order."""
    if one.shape != other.shape or one.dtype != other.dtype or not one.is_floating_point() or not one.numel():
        return False
    return bool((one - other).abs().max() <= _ROUNDING * other.abs().max())  # False if one has a NaN


def own_rounding(actual: Any, expected: Any, exact: Any, moved: Any, rounding: Rounding) -> tuple[float, float] | None:
    """The errors of a value and of eager's against float64, if the call's own rounding explains how the two differ.

    That is: the error is at most twice eager's, and they are no further apart than eager's value is from `moved` (with inputs
    moved by one unit in the last place), and than 100 times the usual tolerance.  `exact` and `moved` are in float64.  Errors
    are relative to the largest number.
    """
    values = (exact, actual, expected, moved)
    if not all(isinstance(v, torch.Tensor) and v.is_floating_point() and v.shape == exact.shape for v in values):
        return None
    if actual.dtype != expected.dtype or expected.dtype is torch.float64 or not exact.isfinite().all():
        return None
    relative, absolute = rounding.tolerances(expected)
    relative, absolute = _USUAL if relative is None or absolute is None else (relative, absolute)
    if not torch.allclose(actual, expected, rtol=_OWN_TIMES * relative, atol=_OWN_TIMES * absolute):
        return None
    ours, eager, apart, own = (
        float((one.double() - other.double()).abs().max())
        for one, other in ((actual, exact), (expected, exact), (actual, expected), (moved.to(expected.dtype), expected))
    )
    scale = largest(exact) or 1.0
    return (ours / scale, eager / scale) if ours <= 2 * eager and apart <= own else None


def _other_output(actual: Observation, expected: Observation) -> Difference | None:
    if actual.random != expected.random:
        return Difference("draws other random numbers")
    rounding = _printed_rounding(expected)
    # compiling may add warnings
    warned = [text for text in actual.warned if any(_same_line(text, other, rounding) for other in expected.warned)]
    for verb, found, wanted in (
        ("prints", actual.printed.splitlines(), expected.printed.splitlines()),
        ("logs", actual.logged, expected.logged),
        ("warns", warned, expected.warned),
    ):
        added, missing = _unmatched(found, wanted, rounding)
        if len(found) != len(wanted):
            text = f"{plural(len(found), 'line')} where eager has {len(wanted)} ({[*added, *missing][0]!r:.80})"
            return Difference(f"{verb} {text}", is_condition=verb != "prints" and not added)
        if added:
            return Difference(f"{verb} {added[0]!r:.60} where eager has {missing[0]!r:.60}")
    return None


def _printed_rounding(expected: Observation) -> float:
    """How much printed numbers may differ, relative to their value."""
    return max(_PRINTED, Rounding(expected.lowest).tolerances(1.0)[0] or 0.0)


def _unmatched(actual: list[str], expected: list[str], rounding: float) -> tuple[list[str], list[str]]:
    """The lines of each that the other does not have, in whatever order, except for rounding of the numbers in them."""
    added, missing = list[str](), list(expected)
    for line in actual:
        same = next((number for number, other in enumerate(missing) if _same_line(line, other, rounding)), None)
        if same is None:
            added.append(line)
        else:
            del missing[same]
    return added, missing


def _same_lines(actual: list[str], expected: list[str], rounding: float) -> bool:
    """Whether the texts are the same, except for rounding of the numbers in them."""
    return len(actual) == len(expected) and all(map(partial(_same_line, rounding=rounding), actual, expected))


def _same_line(one: str, other: str, rounding: float = _PRINTED) -> bool:
    numbers = map(partial(_same_number, rounding=rounding), _NUMBER.findall(one), _NUMBER.findall(other))
    return one == other or (_NUMBER.sub("#", one) == _NUMBER.sub("#", other) and all(numbers))


def _same_number(one: str, other: str, rounding: float) -> bool:
    """Whether two printed numbers differ at most by rounding; integers must be equal.

    They may differ by `rounding` of their value, or by one in the last digit if there are four or more decimals (torch prints
    four).  They may also differ by 1e-6, because in float32 about 1e-7 is left when terms around 1 cancel.
    """
    if any(text.strip("+-").isdigit() for text in (one, other)):
        return one == other
    digits, _, exponent = other.lower().partition("e")
    decimals = len(digits.partition(".")[2])
    last = float(f"1e{int(exponent or 0) - decimals}") if decimals >= 4 else 0.0
    a, b = float(one), float(other)
    return abs(a - b) <= max(rounding * abs(b), 1e-6, 1.01 * last)
