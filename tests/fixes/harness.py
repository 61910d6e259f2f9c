"""Runs programs with and without a rewrite, by means of their own: no part of the runner that the fixes use."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import itertools
import logging
import re
import sys
import tempfile
import uuid
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch.utils import _pytree as pytree

import dynascope
from dynascope.compiler.fixes.candidate import Candidate, Problem
from dynascope.compiler.fixes.plan import DYNAMO, resolved
from dynascope.compiler.fixes.problem import problems_of
from dynascope.compiler.fixes.proving.improvement import operations
from dynascope.compiler.fixes.registry import CANDIDATE_SOURCES
from dynascope.compiler.report import FixEdit, Report

#: the sources of candidates that are rewrites, in the order in which they are tried
REWRITES = tuple(source for source in CANDIDATE_SOURCES if source.__module__.startswith("dynascope.compiler.fixes.rewrites."))
_NUMBER = re.compile(r"-?\d+\.\d+(?:e[-+]?\d+)?")
_LINE_END = re.compile(r"\r\n?|\n")


@contextlib.contextmanager
def imported(text: str) -> Iterator[ModuleType]:
    """The text as a module, for as long as the block lasts."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"fix_program_{uuid.uuid4().hex[:12]}.py"
        path.write_text(text, encoding="utf-8", newline="")
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = module
        try:
            spec.loader.exec_module(module)
            yield module
        finally:
            del sys.modules[path.stem]
            torch._dynamo.reset()


def lines_of(text: str) -> list[str]:
    """The lines of a text with their ends, as Python counts lines."""
    starts = [0, *(m.end() for m in _LINE_END.finditer(text)), len(text)]
    return [text[a:b] for a, b in itertools.pairwise(starts) if a < b]


def edited(text: str, edits: tuple[FixEdit, ...]) -> str:
    """The text with the edits; each must fit."""
    lines = lines_of(text)
    for edit in sorted(edits, key=lambda e: -e.first_line):
        place = slice(edit.first_line - 1, edit.last_line)
        assert "".join(lines[place]) == edit.before
        lines[place] = [edit.after]
    return "".join(lines)


@contextlib.contextmanager
def in_force(settings: dict[str, object]) -> Iterator[None]:
    """Settings of Dynamo, named as candidates name them."""
    values = {
        name.removeprefix(DYNAMO): set(map(resolved, value)) if isinstance(value, list) else value
        for name, value in settings.items()
    }
    with torch._dynamo.config.patch(**values) if values else contextlib.nullcontext():
        yield


def arguments(expression: str) -> list[Any]:
    """The arguments that an expression makes."""
    value = eval(expression, {"torch": torch})
    return list(value) if isinstance(value, tuple) else [value]


def report_of(text: str, inputs: str, settings: dict[str, object] | None = None) -> tuple[Report, list[Problem]]:
    """What the compiler does with a program, and its problems."""
    with imported(text) as module, in_force(settings or {}), quiet():
        torch._dynamo.reset()
        report = dynascope.explain(module.f, backend="eager")(*arguments(inputs))
        problems = [p for b in report.breaks for p in problems_of(b, lambda file: text if file == module.__file__ else "")]
    return report, problems


@contextlib.contextmanager
def quiet() -> Iterator[list[str]]:
    """Yields what is printed, warned of and logged inside."""
    said: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("corpus")
    logger.addHandler(handler)
    propagated, logger.propagate = logger.propagate, False
    try:
        with contextlib.redirect_stdout(io.StringIO()) as out, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield said
        said += [str(w.message) for w in caught if "fix_program" in w.filename]
        said += out.getvalue().splitlines()
    finally:
        logger.propagate = propagated
        logger.removeHandler(handler)


@dataclass
class Outcome:
    """What a call did."""

    value: Any
    error: str | None
    said: list[str]
    arguments: list[Any]
    #: None: the backward raised an error
    gradients: list[Any] | None


def outcome(text: str, inputs: str, settings: dict[str, object] | None = None, **compile_options: Any) -> Outcome:
    """Run `f` of a program on fresh arguments, compiled if there are options for that."""
    with imported(text) as module, in_force(settings or {}):
        torch._dynamo.reset()
        torch.manual_seed(0)
        given = arguments(inputs)
        leaves = [a for a in given if isinstance(a, torch.Tensor) and a.requires_grad]
        if isinstance(module.f, torch.nn.Module):
            leaves += list(module.f.parameters())
        function = torch.compile(module.f, **compile_options) if compile_options else module.f
        value, error = None, None
        with quiet() as said:
            try:
                value = function(*given)
            except Exception as raised:
                error = type(raised).__name__
        outputs = [o for o in pytree.tree_leaves(value) if isinstance(o, torch.Tensor) and o.requires_grad]
        gradients: list[Any] | None = []
        if outputs and leaves:
            try:
                gradients = list(torch.autograd.grad([o.sum() for o in outputs], leaves, allow_unused=True))
            except RuntimeError:
                gradients = None
    return Outcome(value, error, said, given, gradients)


def difference(one: Outcome, other: Outcome, raises: str | None = None, **tolerance: float) -> str:
    """How two outcomes differ, "" if they do not; `raises`: the exception of the first, where the second has one."""
    if one.error not in ((other.error, raises) if other.error is not None else (None,)):
        return f"raises {one.error} instead of {other.error}"
    if one.error is not None:
        return ""
    for what in ("value", "arguments", "gradients"):
        found, wanted = getattr(one, what), getattr(other, what)
        if what == "gradients":
            if wanted is None:
                continue
            if found is None:
                return "its backward raises an error"
            found, wanted = _no_gradient_is_zero(found, wanted)
        kinds = [[type(leaf) for leaf in pytree.tree_leaves(v)] for v in (found, wanted)]
        if kinds[0] != kinds[1]:
            return f"{what}: {kinds[0]} instead of {kinds[1]}"
        try:
            torch.testing.assert_close(found, wanted, equal_nan=True, **tolerance)
        except AssertionError as error:
            return f"{what}: {error}"
    return "" if _as_said(one.said) == _as_said(other.said) else f"says {one.said} instead of {other.said}"


def _as_said(lines: list[str]) -> str:
    """What was said, with numbers to four digits; compiled code gives a tensor another gradient function, and longer lines."""
    text = re.sub(r"\s+", " ", re.sub(r"grad_fn=<\w+>", "grad_fn", " ".join(lines)))
    return _NUMBER.sub(lambda m: f"{float(m.group()):.3e}", text)


def _no_gradient_is_zero(found: list[Any], wanted: list[Any]) -> tuple[list[Any], list[Any]]:
    """What a branch does not use has no gradient, and gets one of zero where both sides are part of the graph."""
    pairs = list(itertools.zip_longest(found, wanted))
    zeros = [(torch.zeros_like(b) if a is None and b is not None else a) for a, b in pairs]
    return zeros, [(torch.zeros_like(a) if b is None and a is not None else b) for a, b in pairs]


@dataclass
class Step:
    """A rewrite that was accepted."""

    candidate: Candidate
    before: str
    after: str


def same(
    text: str, original: str, inputs: tuple[str, ...], raises: str | None, settings: dict[str, object], **options: Any
) -> str:
    """How a changed program differs from the original one in eager mode, on any of the inputs; "" if it does not."""
    for each in inputs:
        wanted = outcome(original, each)
        for way in ({}, options) if options else ({},):
            found = outcome(text, each, settings, **way)
            text_of = difference(found, wanted, raises)
            # such as a backward that would raise, which AOTAutograd traces with the forward though it is never run
            if text_of and way and difference(outcome(original, each, **{**way, "fullgraph": False}), wanted, raises):
                continue  # the compiler does not keep to the original program either
            if text_of:
                return f"{each}, {way or 'eager'}: {text_of}"
    return ""


def badness(report: Report) -> tuple[int, ...]:
    """Fewer breaks, then more operations in graphs (copies aside), then fewer graphs."""
    summary = report.summary
    return (summary.breaks, -operations(report), summary.graphs)


def rewritten(
    text: str, inputs: tuple[str, ...], raises: str | None = None, limit: int = 6
) -> tuple[str, list[Step], list[str]]:
    """The program after all rewrites that make it better and change no result, these, and why others were not taken."""
    steps: list[Step] = []
    refused: list[str] = []
    original, settings = text, {}
    for _ in range(limit):
        report, problems = report_of(text, inputs[0], settings)
        if not problems:
            break
        step = _next(original, text, report, problems, inputs, raises, settings, refused)
        if step is None:
            break
        steps.append(step)
        text = step.after
        settings = {**settings, **step.candidate.settings}
    return text, steps, refused


def _next(
    original: str,
    text: str,
    report: Report,
    problems: list[Problem],
    inputs: tuple[str, ...],
    raises: str | None,
    settings: dict[str, object],
    refused: list[str],
) -> Step | None:
    for problem in problems:
        for rewrite in REWRITES:
            for candidate in rewrite(problem):
                new = edited(text, candidate.edits)
                values = {**settings, **candidate.settings}
                try:
                    after, _ = report_of(new, inputs[0], values)
                    worse = after.error is not None or badness(after) >= badness(report) or _failed(after)
                    why = "no better" if worse else same(new, original, inputs, raises, values, backend="aot_eager")
                except Exception as error:
                    why = f"{type(error).__name__}: {str(error)[:200]}"
                if not why:
                    return Step(candidate, text, new)
                refused.append(f"{candidate.title}: {why}")
    return None


def _failed(report: Report) -> bool:
    return any(f.status == "failed" for f in report.frames)
