"""`--check`: does compiled code do what eager code does?

The last call of what was compiled is replayed twice: compiled, and with torch's stance "force_eager", from the same state and
with the same random numbers.  The outcomes are compared with the tolerances of `torch.testing.assert_close` for their dtypes.

A backend may draw random numbers of its own (Inductor does).  Where any were drawn, a difference is no verdict.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dynascope.compiler.accuracy import outcome
from dynascope.compiler.accuracy.compare import difference
from dynascope.compiler.accuracy.outcome import Outcome
from dynascope.compiler.replay.replay import RecordedCall, watching
from dynascope.compiler.report import Check, plural
from dynascope.compiler.torch_private import hooks

#: differences that are reported
MOST_DIFFERENCES = 5


def words(checked: Check) -> str:
    """One sentence for the report's notes."""
    if checked.agrees is None and checked.differences:
        return f"check: unknown whether compiled and eager agree: {checked.why_not}."
    if checked.agrees is None:
        return f"check: nothing was compared: {checked.why_not}."
    if not checked.agrees:
        return f"check: compiled and eager differ: {'; '.join(checked.differences)}."
    compared = ", ".join(plural(many, what.removesuffix("s")) for what, many in checked.compared.items() if many)
    if checked.not_compared:
        compared += f"; not compared: {', '.join(checked.not_compared[:3])}"
    return f"check: compiled and eager agree ({compared})."


class LastCall:
    """Keeps the last call of a run's entry points, and compares."""

    def __init__(self) -> None:
        self._last: tuple[Any, Callable[..., Any], RecordedCall, dict[str, Any] | None] | None = None

    def watch(self, target: Any, entry: Callable[..., Any], namespace: dict[str, Any] | None = None) -> Callable[..., Any]:
        """`entry`, the compiled `target`, with its calls remembered."""

        def call(*args: Any, **kwargs: Any) -> Any:
            self._last = None  # a call that raises is not compared
            recorded = RecordedCall(target, args, kwargs, namespace)
            result = entry(*args, **kwargs)
            self._last = (target, entry, recorded, namespace)
            return result

        return watching(call, entry)

    def compare(self) -> Check:
        """Run the last call again, compiled and eagerly, and release its arguments."""
        last, self._last = self._last, None
        if last is None:
            return Check(why_not="nothing that this run compiles was called, or the call raised")
        if last[2].refusal is not None:
            return Check(why_not=last[2].refusal)
        try:
            return _compare(*last)
        except Exception as error:
            return Check(why_not=f"run again it raised {type(error).__name__}: {error}")


def _compare(target: Any, entry: Callable[..., Any], recorded: RecordedCall, namespace: dict[str, Any] | None) -> Check:
    import torch

    with hooks.HOOKS.paused(), recorded.replaying() as prepare:
        compiled = outcome.replay(target, entry, prepare, namespace)
        with torch.compiler.set_stance("force_eager"):
            eager = outcome.replay(target, entry, prepare, namespace)
    return _checked(compiled, eager)


def _checked(compiled: Outcome, eager: Outcome) -> Check:
    checked = Check(not_compared=eager.opaque)
    for what, expected in eager.parts.items():
        actual = compiled.parts[what]
        checked.compared[what] = sum(name not in eager.unchanged for name, _ in expected)
        names, wanted = [name for name, _ in actual], [name for name, _ in expected]
        only = [f"{n} is there only compiled" for n in names if n not in wanted]
        only += [f"{n} is there only eager" for n in wanted if n not in names]
        if only or len(names) != len(wanted):
            checked.differences += only or [f"{len(names)} parts among the {what}, eager {len(wanted)}"]
            continue
        compared = [(name, difference(a, b)) for (name, a), (_, b) in zip(actual, expected, strict=True)]
        checked.differences += [f"{name} ({what}): {text}" for name, text in compared if text is not None]
    if checked.differences and (compiled.drew or eager.drew):
        checked.why_not = (
            f"they differ ({checked.differences[0]}), but the call draws random numbers, and a backend may draw others than "
            "eager code does; with Inductor, torch._inductor.config.fallback_random = True makes them the same"
        )
    elif not checked.differences and not any(checked.compared.values()):
        checked.why_not = "the call gives and leaves nothing that can be compared" + (
            f" ({', '.join(checked.not_compared[:3])})" if checked.not_compared else ""
        )
    else:
        checked.agrees = not checked.differences
    del checked.differences[MOST_DIFFERENCES:]
    return checked
