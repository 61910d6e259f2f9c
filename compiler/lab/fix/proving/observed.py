"""What one run of a recorded call did, as data: result, effects, output, logs, warnings, exception; and how two runs differ."""

from __future__ import annotations

import contextlib
import io
import logging
import math
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from dynascope.compiler.capture.torch_private.tensors import Precisions
from dynascope.compiler.lab import experiment
from dynascope.compiler.lab.comparison import Rounding, difference, parts_of
from dynascope.compiler.lab.experiment import Outcome
from dynascope.compiler.lab.fix.calls import KeptCall, Vary
from dynascope.compiler.lab.fix.proving.side_state import SideState, state_difference
from dynascope.compiler.lab.fix.proving.time_limit import TookTooLong, time_limit
from dynascope.compiler.lab.objects import digest
from dynascope.compiler.lab.recorded_call import Arguments, Prepare
from dynascope.compiler.lab.snapshot import random_states
from dynascope.compiler.report import first_line, message_of

#: tolerance for gradients, relative to their largest element
_ROUNDING = 2e-6
#: tolerance for printed numbers
_PRINTED = 1e-4
_NUMBER = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?")
#: `grad_fn=` in a printed tensor: compiled code has other names there
_HISTORY = re.compile(r",?\s*grad_fn=<[^>]*>")


@dataclass
class Observed:
    """What one run did."""

    outcome: Outcome | None = None
    error: BaseException | None = None
    printed: str = ""
    #: log records, and warnings, as text
    logged: list[str] = field(default_factory=list)
    warned: list[str] = field(default_factory=list)
    #: digests of the states of Python's, NumPy's and torch's generators
    random: list[str] = field(default_factory=list)
    #: whether `backward()` from the values raises; not tried if there are gradients
    backward_fails: bool = False
    #: what `SideState` reads after the run
    state: dict[str, Any] = field(default_factory=dict)

    @property
    def error_type(self) -> str | None:
        """Name of the exception's class; None if there was none."""
        return None if self.error is None else type(self.error).__name__


def observe_call(
    call: KeptCall,
    entry: Callable[..., Any],
    prepare: Prepare,
    vary: Vary,
    state: SideState | None = None,
    seconds: float = math.inf,
    precisions: Precisions | None = None,
) -> Observed:
    """Run `entry`, which was made from the call's target, once on arguments that `vary` has changed; exceptions are recorded.

    Raises TookTooLong if the call takes longer than `seconds`.
    """
    observed = Observed()

    def prepared(*, only_changed: bool = False) -> Arguments:
        return call.varied(vary, *prepare(only_changed=only_changed))

    values: list[Any] = []
    given: list[Any] = []

    def kept(*args: Any, **kwargs: Any) -> Any:
        given[:] = [*args, kwargs]
        with time_limit(seconds):
            result = entry(*args, **kwargs)
        values.append(result)
        return result

    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out), _messages(observed):
        try:
            observed.outcome = experiment.replay(call.target, kept, prepared, call.namespace, call.names, precisions)
            observed.backward_fails = not observed.outcome.parts["gradients"] and _backward_fails(values)
        except (KeyboardInterrupt, TookTooLong):
            raise
        except BaseException as error:  # sys.exit(), too, is what the program does with these inputs
            observed.error = error.with_traceback(None)
        if state is not None:
            observed.state = state.read() if observed.error is None else state.read_after_error(given)
        observed.random = [digest(state.read()) for state in random_states()]
    observed.printed = _HISTORY.sub("", out.getvalue())
    observed.logged = [_HISTORY.sub("", text) for text in observed.logged]
    observed.warned = [_HISTORY.sub("", text) for text in observed.warned]
    return observed


def _backward_fails(values: list[Any]) -> bool:
    """Whether `backward()` from the tensors among these values raises."""
    import torch

    tensors = [t for _, t in parts_of("", values) if isinstance(t, torch.Tensor) and t.requires_grad and t.grad_fn is not None]
    if not tensors:
        return False
    try:
        torch.stack(
            [t.abs().float().sum() for t in tensors]
        ).sum().backward()  # what it leaves in `grad` is undone by the replay
    except RuntimeError:
        return True
    return False


@contextlib.contextmanager
def _messages(observed: Observed) -> Iterator[None]:
    """Collect log records, except torch's, and warnings; the program's own handlers get none of them."""

    class Collect(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if not record.name.startswith("torch."):
                try:
                    message = record.getMessage()
                except Exception:  # the arguments do not fit: the program's own handlers would say so, and go on
                    message = f"{record.msg!r} {record.args!r}"
                observed.logged.append(f"{record.name} {record.levelname}: {message}")

    others = [v for v in list(logging.root.manager.loggerDict.values()) if isinstance(v, logging.Logger)]
    kept = [
        (log, log.handlers)
        for log in [logging.root, *others]
        if log is logging.root or (log.handlers and not _is_torch_logger(log))
    ]
    collect = Collect()
    try:
        for logger, _ in kept:
            # a propagating logger's records reach the root's handler; with one of its own, they would be collected twice
            logger.handlers = [] if logger is not logging.root and logger.propagate else [collect]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
        observed.warned += [f"{w.category.__name__}: {w.message}" for w in caught if not _is_torch_warning(w)]
    finally:
        for logger, handlers in kept:
            logger.handlers = handlers


def _is_torch_logger(logger: logging.Logger) -> bool:
    return logger.name.partition(".")[0] == "torch"


#: texts in torch's warnings about compiling, and about taking numbers out of tensors: a change may avoid these warnings
_TORCH_WARNINGS = ("torch.compile", "Converting a tensor with requires_grad=True to a scalar")


def _is_torch_warning(warning: warnings.WarningMessage) -> bool:
    """Whether torch warned about how it runs the program, not about what the program does."""
    return any(part in warning.filename for part in ("_dynamo", "_inductor", "_functorch", "_subclasses")) or any(
        words in str(warning.message) for words in _TORCH_WARNINGS
    )


def differences(actual: Observed, expected: Observed, assumption: str = "") -> str | None:
    """How a run differs from eager's, in words; None if it does not.

    `assumption`: what the change takes for granted; where it names two exceptions, one may be raised instead of the other.
    """
    if expected.error is not None or actual.error is not None:
        return _other_error(actual, expected, assumption)
    assert actual.outcome is not None
    assert expected.outcome is not None
    return (
        _other_outcome(actual.outcome, expected.outcome)
        or state_difference(actual.state, expected.state, Rounding(expected.outcome.lowest))
        or _other_output(actual, expected)
    )


def without_zero_gradients(actual: Observed, expected: Observed) -> Observed:
    """The run without those gradients that are zero and belong to arguments for which eager has no gradient.

    Those of parameters stay: an optimizer skips a parameter without a gradient, and decays one whose gradient is zero.
    """
    if actual.outcome is None or expected.outcome is None:
        return actual
    parts, names = actual.outcome.parts, {name for name, _ in expected.outcome.parts["gradients"]}
    kept = [
        (name, value)
        for name, value in parts["gradients"]
        if name in names or not name.startswith("gradient of argument") or bool(value.any())
    ]
    if len(kept) == len(parts["gradients"]):
        return actual
    return replace(actual, outcome=replace(actual.outcome, parts={**parts, "gradients": kept}))


def order_changed(actual: Observed, expected: Observed) -> bool:
    """Whether lines are printed or logged in another order; to be asked only after `differences` has found none."""
    if actual.error is not None or expected.error is not None:
        return False
    rounding = _printed_rounding(expected)
    printed = _same_lines(actual.printed.splitlines(), expected.printed.splitlines(), rounding)
    return not (printed and _same_lines(actual.logged, expected.logged, rounding))


def loses_changes(actual: Observed, expected: Observed) -> bool:
    """Whether both runs raise an exception, but differ in what they changed before it."""
    return expected.error is not None and actual.error is not None and bool(state_difference(actual.state, expected.state))


def _other_error(actual: Observed, expected: Observed, assumption: str) -> str | None:
    if expected.error is None:
        return f"raises {actual.error_type}: {_first_line(actual.error)}"
    if actual.error is None:
        return f"raises nothing where eager raises {expected.error_type}"
    names = (str(actual.error_type), str(expected.error_type))
    if actual.error_type != expected.error_type and not all(name in assumption for name in names):
        return f"raises {names[0]} where eager raises {names[1]}"
    printed = actual.printed.splitlines()  # with the compiler's own lines about the exception
    lost = next((line for line in expected.printed.splitlines() if not any(_same_line(p, line) for p in printed)), None)
    return None if lost is None else f"does not print {lost!r:.60} before it raises {names[0]}"


def _first_line(error: BaseException | None) -> str:
    return first_line(message_of(error))[:160]


def _other_outcome(actual: Outcome, expected: Outcome) -> str | None:
    for what, parts in expected.parts.items():
        found = actual.parts[what]
        names, wanted = [name for name, _ in found], [name for name, _ in parts]
        if names != wanted:
            missing = [name for name in wanted if name not in names]
            added = [name for name in names if name not in wanted]
            order = "in another order" if len(names) == len(wanted) else f"{len(names)} parts where eager has {len(wanted)}"
            which = f"no {missing[0]}" if missing else f"{added[0]} only with the change" if added else order
            return f"{what} differ: {which}"
        for (name, one), (_, other) in zip(found, parts, strict=True):
            text = difference(one, other, expected.rounding(what, name))
            if text is not None and not (what == "gradients" and _is_rounding(one, other)):
                return f"{what} differ: {name}: {text}"
    return None


def _is_rounding(one: Any, other: Any) -> bool:
    """Whether gradients differ only by rounding, as after summation in another order."""
    if one.shape != other.shape or one.dtype != other.dtype or not one.is_floating_point() or not one.numel():
        return False
    return bool((one - other).abs().max() <= _ROUNDING * other.abs().max())  # False if one has a NaN


def _other_output(actual: Observed, expected: Observed) -> str | None:
    rounding = _printed_rounding(expected)
    # compiling may add warnings
    warned = [text for text in actual.warned if any(_same_line(text, other, rounding) for other in expected.warned)]
    for verb, found, wanted in (
        ("prints", actual.printed.splitlines(), expected.printed.splitlines()),
        ("logs", actual.logged, expected.logged),
        ("warns", warned, expected.warned),
    ):
        if not _same_in_some_order(found, wanted, rounding):
            return f"{verb} {_summary(sorted(found, key=_template), sorted(wanted, key=_template), rounding)}"
    if actual.random != expected.random:
        return "draws other random numbers"
    return None


def _printed_rounding(expected: Observed) -> float:
    """How much printed numbers may differ, relative to their value."""
    return max(_PRINTED, Rounding(expected.outcome.lowest if expected.outcome else None).tolerances(1.0)[0] or 0.0)


def _summary(actual: list[str], expected: list[str], rounding: float) -> str:
    if len(actual) != len(expected):
        shown = next((line for line in [*actual, *expected] if (line in actual) != (line in expected)), "")
        return f"{len(actual)} lines where eager has {len(expected)} ({shown!r:.80})"
    one, other = next((a, b) for a, b in zip(actual, expected, strict=True) if not _same_line(a, b, rounding))
    return f"{one!r:.60} where eager has {other!r:.60}"


def _same_in_some_order(actual: list[str], expected: list[str], rounding: float) -> bool:
    """Whether the texts are the same in some order, except for rounding of the numbers in them.

    Rounding may change how texts are sorted, so those that differ only in numbers are also compared in the order they came in.
    """
    orders: tuple[Callable[[str], str], ...] = (str, _template)
    return any(_same_lines(sorted(actual, key=order), sorted(expected, key=order), rounding) for order in orders)


def _template(text: str) -> str:
    """The text without the values of its numbers."""
    return _NUMBER.sub("#", text)


def _same_lines(actual: list[str], expected: list[str], rounding: float) -> bool:
    """Whether the texts are the same, except for rounding of the numbers in them."""
    return len(actual) == len(expected) and all(map(partial(_same_line, rounding=rounding), actual, expected))


def _same_line(one: str, other: str, rounding: float = _PRINTED) -> bool:
    if one == other:
        return True
    if _template(one) != _template(other):
        return False
    return all(map(partial(_same_number, rounding=rounding), _NUMBER.findall(one), _NUMBER.findall(other)))


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
