"""`--inputs`: which of a list of inputs make the compiler work again, and what that costs.

Each input is given to what was compiled, one after the other: once eagerly, so that an input with which the program itself
fails tells Dynamo nothing (it would skip the code from then on), once while a recording of its own tells what gets compiled
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

from dynascope.compiler.profile.input_words import words_of
from dynascope.compiler.profile.measure import INTERRUPTED, Measured, measure
from dynascope.compiler.profile.segments import graphs_in
from dynascope.compiler.profile.timing import middle_half
from dynascope.compiler.recording.recording import observe
from dynascope.compiler.replay.replay import Repeat
from dynascope.compiler.report import Report
from dynascope.compiler.report.schema import InputRun
from dynascope.compiler.torch_private import config

#: characters of an input's description
_LONGEST = 160
#: items of a container that are described, where there are more than so many
_SHOWN, _MANY = 6, 8


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
    import torch

    recording = observe()
    try:
        # else one that fails would be run eagerly, and all after it
        with config.dynamo_config(suppress_errors=False), repeat.without_trace() as prepare:
            args, kwargs = prepare()
            with torch.compiler.set_stance("force_eager"):
                entry(*args, **kwargs)
            args, kwargs = prepare()
            with recording:
                start = time.perf_counter()
                kept = entry(*args, **kwargs)
                tried.first_seconds = time.perf_counter() - start
            del args, kwargs, kept
    except Exception as error:
        tried.error = _first_lines(error)
    tried.seen = recording.report
    if tried.error is None:
        with config.dynamo_config(suppress_errors=False):
            tried.measured = measure(entry, repeat, calls)
        tried.error = tried.measured.failed


def _first_lines(error: Exception) -> str:
    """The first line of what an error says; one more where that only introduces it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [""]
    more = f" {lines[1]}" if lines[0].endswith(":") and len(lines) > 1 else ""
    return f"{type(error).__name__}: {lines[0]}{more}"


def described(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """`float32[7, 3], scale=2`: tensors by dtype, shape, device and what else is unusual about them; nothing is kept."""
    words = [_described(value) for value in args] + [f"{name}={_described(value)}" for name, value in kwargs.items()]
    return _cut(", ".join(words), _LONGEST)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _described(value: Any, depth: int = 0) -> str:
    import torch

    if isinstance(value, torch.Tensor):
        return _tensor_described(value)
    if isinstance(value, (bool, int, float, complex, bytes, type(None))):
        return _cut(repr(value), 40)
    if isinstance(value, str):
        return repr(value) if len(value) <= 40 else f"{value[:39] + '…'!r} of {len(value)} characters"
    if type(value) in (list, tuple, dict) and depth < 2:
        of_dict = type(value) is dict
        words = [f"{k!r:.40}: {_described(v, depth + 1)}" for k, v in value.items()] if of_dict else [
            _described(v, depth + 1) for v in value
        ]  # fmt: skip
        if len(words) > _MANY:
            words = [*words[:_SHOWN], f"… {len(words)} items"]
        inside = ", ".join(words)
        return f"[{inside}]" if type(value) is list else f"({inside})" if type(value) is tuple else f"{{{inside}}}"
    shape = getattr(value, "shape", None) if type(value).__module__ == "numpy" else None
    if isinstance(shape, tuple) and shape:
        return f"{type(value).__name__} {value.dtype}{list(shape)}"
    many = f" of {len(value)}" if type(value) in (list, tuple, dict, set, frozenset) else ""
    return f"{type(value).__name__}{many}"


def _tensor_described(value: Any) -> str:
    import torch

    text = f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
    if type(value) is not torch.Tensor:
        text = f"{type(value).__name__} {text}"
    if value.layout is not torch.strided:
        text += f" {str(value.layout).removeprefix('torch.')}"
    elif not value.is_contiguous():
        text += f" strides {list(value.stride())}"
    if value.device.type != "cpu":
        text += f" {value.device}"
    return f"{text} requires_grad" if value.requires_grad else text


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
