"""`--inputs`: which of a list of inputs make the compiler work again, and what that costs.

Each input is given to what was compiled, one after the other: once while a recording of its own tells what gets compiled
and why, then as often as `--profile` says, compiled and eager (`profile.measure`).  All of it works on copies and is undone.
`told()` makes the report's part of what was measured.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dynascope.compiler import internals
from dynascope.compiler.input_words import words_of
from dynascope.compiler.parts import InputRun
from dynascope.compiler.profile import INTERRUPTED, Measured, measure
from dynascope.compiler.recording import observe
from dynascope.compiler.repeat import Repeat
from dynascope.compiler.report import Report
from dynascope.compiler.segments import graphs_in
from dynascope.compiler.stopwatch import middle_half

#: characters of an input's description
_LONGEST = 160


@dataclass
class Tried:
    """What was measured with one input; plain data, no tensor of the user's."""

    arguments: str
    #: what its first call had compiled; None: there was no first call
    seen: Report | None = None
    first_seconds: float | None = None
    measured: Measured | None = None
    #: why the call with it failed
    error: str | None = None


def try_inputs(target: Any, entry: Callable[..., Any], inputs: Sequence[Any], calls: int) -> list[Tried]:
    """Give each input to `entry`, the compiled `target`; an interrupt ends it."""
    tried = []
    try:
        for value in inputs:
            args, kwargs = arguments_of(value)
            tried.append(Tried(described(args, kwargs)))
            _try(tried[-1], Repeat(target, args, kwargs), entry, calls)
            if tried[-1].error == INTERRUPTED:
                break
    except KeyboardInterrupt:
        if tried and tried[-1].measured is None:
            tried[-1].error = INTERRUPTED
    return tried


def arguments_of(value: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments that an element of the list stands for: a tuple holds them, a dict by their names, all else is one."""
    if type(value) is dict and all(isinstance(key, str) for key in value):
        return (), value
    return (value if type(value) is tuple else (value,)), {}


def wrong_with(inputs: Any) -> str | None:
    """Why this is no list of inputs, as the end of a sentence; None where it is one."""
    if not isinstance(inputs, (list, tuple)):
        return f"a list of inputs is wanted, not {type(inputs).__name__}: write [x1, x2, ...]"
    return None if inputs else "the list of inputs is empty"


def _try(tried: Tried, repeat: Repeat, entry: Callable[..., Any], calls: int) -> None:
    if repeat.why_not is not None:
        tried.error = f"not called: {repeat.why_not}"
        return
    recording = observe()
    try:
        # else one that fails would be run eagerly, and all after it
        with internals.dynamo_config(suppress_errors=False), repeat.without_trace() as prepare:
            args, kwargs = prepare()
            with recording:
                start = time.perf_counter()
                kept = entry(*args, **kwargs)
                tried.first_seconds = time.perf_counter() - start
            del args, kwargs, kept
    except Exception as error:
        tried.error = f"{type(error).__name__}: {error}".partition("\n")[0]
    tried.seen = recording.report
    if tried.error is None:
        with internals.dynamo_config(suppress_errors=False):
            tried.measured = measure(entry, repeat, calls)
        tried.error = tried.measured.failed


def described(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """`float32[7, 3], scale=2`: tensors by dtype, shape, device and, where they are unusual, strides; nothing is kept."""
    words = [_described(value) for value in args] + [f"{name}={_described(value)}" for name, value in kwargs.items()]
    text = ", ".join(words)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _described(value: Any, depth: int = 0) -> str:
    import torch

    if isinstance(value, torch.Tensor):
        text = f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
        if value.layout is not torch.strided:
            text += f" {str(value.layout).removeprefix('torch.')}"
        elif not value.is_contiguous():
            text += f" strides {list(value.stride())}"
        return text if value.device.type == "cpu" else f"{text} {value.device}"
    if isinstance(value, (bool, int, float, str, type(None))):
        return repr(value)[:40]
    if type(value) in (list, tuple) and depth < 2:
        inside = ", ".join(_described(v, depth + 1) for v in value[:8])
        return f"[{inside}]" if type(value) is list else f"({inside})"
    return type(value).__name__


# -- telling --------------------------------------------------------------------------------------------------


def told(tried: Sequence[Tried], report: Report) -> list[InputRun]:
    """The report's part; frames and graphs by the ids of `report`, the one of the whole run."""
    error = report.error
    if error is not None and error.caught and any(t.error and t.error.startswith(error.type) for t in tried):
        report.error = None  # it was caught here, and is told with its input
    notes = [note for t in tried if t.measured is not None for note in t.measured.notes]
    report.notes.extend(note for note in dict.fromkeys(notes) if note not in report.notes)
    return [_told(one, report) for one in tried]


def _told(tried: Tried, report: Report) -> InputRun:
    ids = {f.compile_id: f.id for f in report.frames if f.compile_id is not None}
    seen, measured = tried.seen or Report(), tried.measured
    looked_at = [f for f in seen.frames if f.status in ("compiled", "skipped", "failed") and f.compile_id in ids]
    result = InputRun(
        arguments=tried.arguments,
        frames=[ids[f.compile_id] for f in looked_at if f.compile_id is not None],
        recompiles=len(seen.recompiles),
        reasons=list(dict.fromkeys(next(iter(r.words or r.reasons), "a guard failed") for r in seen.recompiles)),
        compile_seconds=seen.summary.compile_seconds,
        first_seconds=tried.first_seconds,
        error=tried.error,
    )
    ran: list[str | None] = []
    refused = [str(f.reason) for f in looked_at if f.status == "skipped" and f.reason]
    if measured is not None and measured.failed is None:
        result.seconds, result.spread = statistics.median(measured.compiled), middle_half(measured.compiled)
        result.eager_seconds = statistics.median(measured.eager) if measured.eager else None
        ran = graphs_in(measured.events, report)
        result.graphs = [graph for graph in ran if graph is not None]
    if tried.error is not None:
        result.outcome = "failed"
    elif seen.recompiles:
        result.outcome = "recompiled"
    elif any(f.status == "compiled" for f in looked_at):
        result.outcome = "compiled"
    elif not ran:
        result.outcome = "eager"
        result.reasons = list(dict.fromkeys(r.partition(":")[0] for r in refused))
    gain = (result.eager_seconds or 0.0) - (result.seconds or 0.0)
    if result.compile_seconds and result.outcome in ("recompiled", "compiled") and gain > 0:
        result.payback_calls = math.ceil(result.compile_seconds / gain)
    result.words = words_of(result)
    return result
