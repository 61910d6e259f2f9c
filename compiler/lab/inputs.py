"""`--inputs`: finds out which of a list of inputs recompile, and what that costs.

The compiled function is called with each input.  The first call is eager, so that Dynamo never sees an input with which the
program itself fails (it would skip the code from then on).  The second call is recorded, which shows what is compiled and why.
Then come the timed calls, compiled and eager, as many as `--profile` says (`profile.measure`).  All calls work on copies, and
their effects are undone.  `annotate_inputs()` adds the results to the report.
"""

from __future__ import annotations

import reprlib
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

import torch
from msgspec.structs import replace

from dynascope.compiler.builder.report_builder import summary
from dynascope.compiler.capture.recording import observe
from dynascope.compiler.capture.torch_private import config, hook_installer
from dynascope.compiler.lab.experiment import Experiment
from dynascope.compiler.lab.objects import is_array
from dynascope.compiler.lab.profile import INTERRUPTED, Measurement, measure, payback
from dynascope.compiler.lab.recorded_call import RecordedCall
from dynascope.compiler.lab.slices import graphs_in, quartiles
from dynascope.compiler.report import InputRun, Report, error_words

#: an input's description has at most this many characters
_LONGEST = 160
#: of a container with more items, only their number is told
_MANY = 8


@dataclass
class InputResult:
    """The result of one input: plain data, none of the user's tensors."""

    #: for the report; its error says why the call failed or was not made
    run: InputRun
    #: the report of what the recorded call compiled; an empty one: no call was made, or the user interrupted it
    seen: Report = field(default_factory=Report)
    measured: Measurement | None = None
    #: whether the recorded call may have run compiled graphs, in any thread
    ran_graphs: bool = True


def try_inputs(like: RecordedCall, inputs: Sequence[Any], calls: int) -> list[InputResult]:
    """Call the compiled function as that call did, with each input; after an interrupt, the remaining inputs are left out."""
    tried, counted = [], dict(hook_installer.HOOKS.calls)
    is_method = isinstance(like.target, FunctionType) and like.target.__code__.co_varnames[:1] == ("self",)
    try:
        for value in inputs:
            args, kwargs = arguments_of(value)
            tried.append(InputResult(run := InputRun(arguments=described(args, kwargs))))
            # a method of a class gets the recorded object, unless one is given
            own = like.arguments[0][:1] if is_method else ()
            args = args if [*map(type, args[:1])] == [*map(type, own)] else (*own, *args)
            with like.modes():
                _try(tried[-1], RecordedCall(like.target, args, kwargs, entry=like.entry), calls)
            if run.error == INTERRUPTED:
                break
    except KeyboardInterrupt:
        if tried and tried[-1].measured is None:
            tried[-1].run.error = INTERRUPTED
    finally:
        hook_installer.HOOKS.calls = counted  # these calls are not the program's
    return tried


def arguments_of(value: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """(args, kwargs) from one of the inputs: a tuple of arguments, a dict of named arguments, or else the only argument."""
    if type(value) is dict and all(isinstance(key, str) for key in value):
        return (), value
    return (value if type(value) is tuple else (value,)), {}


def _try(tried: InputResult, recorded: RecordedCall, calls: int) -> None:
    run, recording = tried.run, observe()
    if recorded.refusal is not None:
        run.error = f"not called: {recorded.refusal}"
        return
    # with suppress_errors, an input that fails would run eagerly, and so would all inputs after it
    with config.dynamo_config(suppress_errors=False):
        try:
            with Experiment(recorded) as experiment:
                again = experiment.calls(recorded.entry, fully=True)
                with torch.compiler.set_stance("force_eager"):
                    next(again)()
                call = next(again)
                with recording:
                    call()
                    tried.ran_graphs = recorded.may_have_run_graphs
                del call, again
            recorded.returned = True
        except Exception as error:
            run.error = error_words(error)
        tried.seen = recording.report
        if run.error is None:
            tried.measured = measure(recorded, calls)
            run.error = tried.measured.failed


def described(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """A description of arguments: `float32[7, 3], scale=2`; a tensor's dtype, shape and what is unusual (strides, say)."""
    words = _Words().repr
    text = ", ".join([*map(words, args), *(f"{name}={words(value)}" for name, value in kwargs.items())])
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


class _Words(reprlib.Repr):
    """Describes single arguments; of other objects than tensors, arrays, numbers, texts and containers, only the class."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel, self.maxstring = 4, 52
        self.maxlist = self.maxtuple = self.maxdict = self.maxset = self.maxfrozenset = _MANY

    def repr1(self, x: Any, level: int) -> str:
        kind = type(x).__name__
        try:
            if isinstance(x, (list, tuple, dict, set, frozenset)) and len(x) > _MANY:
                return f"{kind} of {len(x)}"
            return super().repr1(x, level)
        except Exception:  # a nested tensor has no sizes, and the `repr` of a key may fail
            return kind

    def repr_instance(self, x: Any, level: int) -> str:
        if isinstance(x, (bool, int, float, complex, bytes, type(None))):
            return f"{x!r:.52}"
        kind = type(x).__name__
        if not isinstance(x, torch.Tensor):
            return f"{kind} {x.dtype}{list(x.shape)}" if is_array(x) else kind
        words = [kind] * (type(x) is not torch.Tensor) + [f"{str(x.dtype).removeprefix('torch.')}{list(x.shape)}"]
        if x.layout is not torch.strided:
            words.append(str(x.layout).removeprefix("torch."))
        elif not x.is_contiguous():
            words.append(f"strides {list(x.stride())}")
        words += [str(x.device)] * (x.device.type != "cpu") + ["requires_grad"] * x.requires_grad
        return " ".join(words)


# -- the report ------------------------------------------------------------------------------------------------


def annotate_inputs(report: Report, tried: Sequence[InputResult]) -> None:
    """Set the inputs of `report`, the report of the whole run; frames and graphs are named by its ids."""
    error = report.error
    if error is not None and error.caught and any(t.run.error and t.run.error.startswith(error.type) for t in tried):
        report.error = None  # it was caught here, and is shown with its input
    report.notes[:] = dict.fromkeys([*report.notes, *(n for t in tried if t.measured is not None for n in t.measured.notes)])
    for one in tried:
        _complete(one, report)
    report.inputs = [one.run for one in tried]
    took = report.summary.compile_seconds - sum(run.compile_seconds or 0.0 for run in report.inputs)
    report.summary = replace(summary(report), compile_seconds=round(max(0.0, took), 6))


def _complete(tried: InputResult, report: Report) -> None:
    """Set what the recorded call compiled, and the times of later calls."""
    ids = {f.compile_id: f.id for f in report.frames if f.compile_id is not None}
    run, seen, measured = tried.run, tried.seen, tried.measured
    considered = [f for f in seen.frames if f.status != "cached" and f.compile_id in ids]  # wrappers, too: they may recompile
    run.frames = [ids[f.compile_id] for f in considered if f.compile_id is not None]
    # one that a limit refused compiles nothing; `seen` lacks the earlier versions, whose guards these are
    again = [r for r in report.recompiles if r.frame in run.frames and r.refused_by is None]
    run.recompiles, run.compile_seconds = len(again), seen.summary.compile_seconds
    run.failed_guards = [guard for r in again for guard in r.failed_guards]
    if measured is not None and measured.failed is None:
        run.seconds, run.spread = statistics.median(measured.compiled), quartiles(measured.compiled)
        run.eager_seconds = statistics.median(measured.eager) if measured.eager else None
        run.graphs = [graph for graph in graphs_in(measured.events, report) if graph is not None]
    if run.error is not None:
        run.outcome = "failed"
    elif any(f.status == "compiled" for f in considered):
        run.outcome = "recompiled" if again else "compiled"
        if run.eager_seconds is not None and measured is not None:
            run.payback, run.payback_calls = payback(measured, run.compile_seconds or None)
    else:
        run.outcome = "reused" if tried.ran_graphs else "eager"
        known = {f.compile_id for f in seen.frames}
        compiled = [f for f in report.frames if f.status != "skipped" and f.compile_id in known]
        # what comes after their breaks ran eagerly, in silence if it was refused for an earlier input, or skipped in another
        # version, with which they share the code of the rest
        code = {f.id: f.code for f in report.frames}
        left = {(code[h.frame], b.id) for b in report.breaks for h in b.hits if h.frame in {f.id for f in compiled}}
        left -= {(code[f.continues], f.break_) for f in compiled if f.continues}
        rest = {f.id for f in report.frames if f.continues and (code[f.continues], f.break_) in left}
        eager = [f for f in report.frames if f.status == "skipped" and f.id in {*run.frames, *rest}]
        run.reasons = list(dict.fromkeys(f.reason.partition(":")[0] for f in eager if f.reason))
