"""Compares what compiled and eager code compute with the same computation in float64, and says which of them is right.

Digits are those of the lowest precision that the call computes with.  A result is wrong if it has lost a quarter of them, and
its error is several times as large as that of the other one, and as what moving the inputs by one unit in the last place
changes.  If both have lost more than half of their digits, or one has and the other one is not much better, neither is right.
Which is right is unknown if an operation such as `argmax` decides otherwise in float64, or is near to that: what follows in
float64 has the choice of eager code.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch

from dynascope.compiler.lab.comparison import difference, largest
from dynascope.compiler.lab.experiment import Observation
from dynascope.compiler.report import NumberError, Numbers, NumbersOf, NumbersVerdict, error_words, listed

#: an error is worse than another one if it is this many times as large
WORSE = 8.0
#: why the verdict on a call that draws random numbers is unknown
DRAWS = "the call draws random numbers, and a backend may draw other numbers than eager code"
#: repeats the run that is followed in float64, with its inputs moved by this relative amount
Again = Callable[[float], Observation]


def error_of(actual: Any, exact: Any, scale: float | None = None) -> NumberError:
    """How far a tensor or number is from its value in float64; `scale`: what counts as large (None: its largest value)."""
    actual, exact = torch.as_tensor(actual).detach(), torch.as_tensor(exact).detach()
    if actual.is_complex():
        actual, exact = torch.view_as_real(actual.resolve_conj()), torch.view_as_real(exact.to(torch.complex128).resolve_conj())
    actual, exact = actual.double().flatten(), exact.double().flatten().to(actual.device)
    is_same = (actual == exact) | (actual.isnan() & exact.isnan())
    is_known = actual.isfinite() & exact.isfinite() | is_same
    off = torch.where(is_same, 0.0, (actual - exact).abs())[is_known]
    found = NumberError(not_finite=int((~is_known).sum()))
    if not off.numel():
        found.relative = None if actual.numel() else 0.0
        return found
    scale = scale or largest(exact[is_known])
    found.relative = float(off.max()) / scale if scale else None if off.any() else 0.0
    return found


def share_of(error: NumberError | None) -> float:
    """The error as a share of the largest value; 1: no digit is right."""
    if error is None:
        return 0.0
    return 1.0 if error.not_finite else min(1.0, 1.0 if error.relative is None else error.relative)


def compare(compiled: Observation, eager: Observation, exact: Observation, again: Again, differences: int) -> Numbers:
    """Judge two observations, which have so many differences, by a third, of a run that was followed in float64."""
    try:
        found = _compared(compiled, eager, exact, again, differences)
    except Exception as error:  # tensors of other libraries, for example: the check itself must not depend on it
        found = Numbers(why_not=f"comparing with float64 raised {error_words(error)}")
    found.sentence = sentence(found)
    return found


def _compared(compiled: Observation, eager: Observation, exact: Observation, again: Again, differences: int) -> Numbers:
    found = Numbers(precision=str(exact.lowest or "").removeprefix("torch."))
    if exact.error is not None:
        found.why_not = f"followed in float64, the call raised {error_words(exact.error)}"
    elif exact.lowest is None or torch.finfo(exact.lowest).eps <= torch.finfo(torch.float64).eps:
        found.why_not = f"the call computes {'in float64 itself' if exact.lowest else 'no floating-point numbers with torch'}"
    if found.why_not:
        return found
    unit = float(torch.finfo(exact.lowest).eps)
    scales = {"gradients": max((largest(v) for (what, _), v in exact.exact.items() if what == "gradients"), default=None)}
    moved = again(unit)
    for key, name, mine, other in _pairs(eager, compiled):
        reference = exact.exact.get(key)
        if reference is None or getattr(mine, "shape", None) != getattr(reference, "shape", None):
            continue
        errors = [error_of(value, reference, scales.get(key[0])) for value in (mine, other)]
        part = NumbersOf(what=key[0], name=name, eager=errors[0], compiled=errors[1], verdict="rounding")
        if isinstance(mine, torch.Tensor):
            part.dtype, part.elements = str(mine.dtype).removeprefix("torch."), mine.numel()
            reference = reference.to(mine.dtype)
        if key[0] == "effects" and share_of(part.eager) == share_of(part.compiled) == 0:
            continue  # most arguments are not changed
        found.parts.append(part)
        rounding = exact.rounding(key[0], name)
        differs = difference(other, mine, rounding) is not None
        differences -= differs
        if not differs and all(difference(value, reference, rounding) is None for value in (mine, other)):
            continue
        if moved.error is None and key in moved.exact:
            part.noise = error_of(moved.exact[key], exact.exact[key], scales.get(key[0]))
        part.verdict = judged(part.compiled, part.eager, part.noise, unit, differs=differs)
    verdicts = {part.verdict for part in found.parts}
    found.verdict = next((v for v in ("compiled", "eager", "both") if v in verdicts), "rounding")
    if not found.parts:
        found.verdict, found.why_not = "unknown", "no floating-point result of both can be compared with float64"
    elif found.verdict == "rounding" and differences > 0:
        found.verdict, found.why_not = "unknown", "not all that differs can be compared with float64"
    elif (found.verdict != "rounding" or compiled.random != eager.random) and (compiled.drew or eager.drew):
        found.parts, found.verdict, found.why_not = [], "unknown", DRAWS
    elif found.verdict != "rounding" and exact.limits:
        found.verdict, found.why_not = "unknown", f"it cannot be followed in float64: {listed(exact.limits, 2)}"
    elif (decided := [*exact.decided, *moved.decided]) and not _is_known(found, unit):
        found.why_not = "in float64, or with inputs moved by one unit in the last place, "
        found.why_not += f"{listed(dict.fromkeys(decided), 2)} would decide otherwise"
        found.verdict = "unknown"
    return found


def _is_known(found: Numbers, unit: float) -> bool:
    """Whether decisions, of which float64 has those of eager code, do not explain it: both have lost their digits alike."""
    pairs = (sorted(map(share_of, (part.eager, part.compiled))) for part in found.parts)
    is_lost = found.verdict == "both" and any(high > math.sqrt(unit) and WORSE * low > high for low, high in pairs)
    return is_lost or found.verdict == "rounding"


def _pairs(eager: Observation, compiled: Observation) -> Iterator[tuple[tuple[str, int], str, Any, Any]]:
    """(group, index), name, eager and compiled value of the parts that both have, of the same class, shape and dtype."""
    for what, parts in eager.parts.items():
        others = compiled.parts[what]
        for i, (name, mine) in enumerate(parts):
            if len(others) == len(parts) and others[i][0] == name:
                other = others[i][1]
                if type(mine) is type(other) and all(getattr(mine, a, 0) == getattr(other, a, 0) for a in ("shape", "dtype")):
                    yield (what, i), name, mine, other


def judged(
    compiled: NumberError, eager: NumberError, noise: NumberError | None, unit: float, *, differs: bool = True
) -> NumbersVerdict:
    """Which one is wrong; `unit`: the relative rounding error; `differs`: whether they differ by more than a check allows."""
    lost, floor = math.sqrt(unit), max(unit**0.75, WORSE * share_of(noise))
    mine, other = share_of(eager), share_of(compiled)
    differs = differs and min(mine, other) <= lost  # which of two lost values is nearer is chance
    if differs and (other > max(WORSE * mine, floor) or (compiled.not_finite and not eager.not_finite)):
        return "compiled"
    if differs and (mine > max(WORSE * other, floor) or (eager.not_finite and not compiled.not_finite)):
        return "eager"
    return "both" if max(mine, other) > lost else "rounding"


def sentence(found: Numbers) -> str:
    """The verdict in words."""
    if found.verdict == "unknown":
        return f"Unknown which is right: {found.why_not}"
    worst = max(
        (part for part in found.parts if part.verdict == found.verdict),
        key=lambda part: max(share_of(part.eager), share_of(part.compiled)),
        default=found.parts[0],
    )
    name, whole = worst.name, "the largest gradient" if worst.what == "gradients" else "its largest value"
    mine, other = (size_text(error, worst.elements, whole) for error in (worst.eager, worst.compiled))
    low, high = sorted((share_of(worst.eager), share_of(worst.compiled)))
    by = "" if worst.noise is None else f"by {size_text(worst.noise, worst.elements, whole)}"
    moving = f"moving the inputs by one unit in the last place of {found.precision} changes"
    if found.verdict == "rounding":
        words = f"both are right to rounding: {name} is off by {mine} in eager and {other} compiled"
        words += f"; {moving} it {by}" if by else ""
    elif found.verdict == "compiled":
        words = f"compiled is wrong: {name} is off by {other} (eager: {mine})"
    elif found.verdict == "eager":
        words = f"eager is wrong: {name} is off by {mine} (compiled: {other})"
    elif WORSE * low < high <= WORSE * share_of(worst.noise):
        words = f"the computation loses its digits, compiled or not: {moving} {name} {by}; it is off by {mine} in eager"
        words += f" and by {other} compiled"
    else:
        words = f"neither is right: {name} is off by {mine} in eager and by {other} compiled"
    return f"Against float64, {words}"


def size_text(error: NumberError, elements: int = 0, whole: str = "its largest value") -> str:
    """An error in words, relative to what is large: `35 % of its largest value`, `1,000 times its largest value`, `nothing`."""
    share = error.relative
    if error.not_finite:
        return f"NaN or infinity in {error.not_finite:,} of {elements:,} elements" if elements else "NaN or infinity"
    if share is None:
        return "all of it: it should be 0"
    if share >= 2:
        times = f"{float(f'{share:.2g}'):,.0f}" if share < 1e6 else f"{share:.1e}"
        return f"{times} times {whole}"
    if share >= 0.001:
        return f"{float(f'{100 * share:.2g}'):g} % of {whole}"
    return f"{share:.1e} of {whole}" if share else "nothing"
