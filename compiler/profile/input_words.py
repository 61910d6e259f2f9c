"""What is told of the inputs of `--inputs`, in words; needs no torch."""

from __future__ import annotations

from collections.abc import Sequence

from dynascope.compiler.profile.break_costs import time_text
from dynascope.compiler.report import plural, seconds
from dynascope.compiler.report.schema import InputRun


def words_of(run: InputRun) -> str:
    """One sentence: what the compiler had to do for this input, what a call takes, and whether that pays."""
    if run.outcome == "failed":
        return f"not measured: {run.error}"
    why = f": {'; '.join(run.reasons[:2])}" if run.reasons else ""
    if run.outcome == "recompiled":
        words = f"recompiled {plural(run.recompiles, 'frame')} in {seconds(run.compile_seconds)}{why}"
    elif run.outcome == "compiled":
        words = f"compiled more code in {seconds(run.compile_seconds)}"
    else:
        words = f"runs eagerly{why}" if run.outcome == "eager" else "ran from compiled code"
    if run.seconds is None:
        return words
    words += f"; a call takes {time_text(run.seconds)}"
    if run.outcome != "eager" and run.eager_seconds is not None:
        words += f", eager {time_text(run.eager_seconds)}"
    if run.payback_calls is not None:
        words += f": pays back after {run.payback_calls:,} calls"
    elif run.outcome in ("recompiled", "compiled") and run.eager_seconds is not None:
        words += ": never pays back"
    return words


def summed_up(runs: Sequence[InputRun]) -> str:
    """`5 inputs: 2 recompile (1.3 s), 1 runs eagerly`."""
    many = [r for r in runs if r.outcome in ("recompiled", "compiled")]
    parts = []
    if many:
        cost = seconds(sum(r.compile_seconds for r in many))
        parts.append(f"{len(many)} {'makes' if len(many) == 1 else 'make'} the compiler work again ({cost})")
    eager = sum(r.outcome == "eager" for r in runs)
    if eager:
        parts.append(f"{eager} {'runs' if eager == 1 else 'run'} eagerly")
    failed = sum(r.outcome == "failed" for r in runs)
    if failed:
        parts.append(f"{failed} could not be measured")
    return f"{plural(len(runs), 'input')}: {', '.join(parts) or 'none makes the compiler work again'}"
