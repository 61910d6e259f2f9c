"""Runs programs with and without their fixes, and compares them by means of its own."""

from __future__ import annotations

import contextlib
import copy
import importlib.util
import io
import logging
import re
import subprocess
import sys
import tempfile
import uuid
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch.utils import _pytree as pytree

import dynascope
from dynascope.compiler.report import Report

DYNAMO = "torch._dynamo.config."
_NUMBER = re.compile(r"-?\d+\.\d+(?:e[-+]?\d+)?")
_PLAIN = (int, float, str, list, dict, torch.Tensor)


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


@contextlib.contextmanager
def own_settings(names: Iterable[str]) -> Iterator[None]:
    """Settings of Dynamo that a fixed program may change when it is imported; they are restored at the end."""
    own = [name.removeprefix(DYNAMO) for name in names if name.startswith(DYNAMO)]
    with torch._dynamo.config.patch(**{name: copy.copy(getattr(torch._dynamo.config, name)) for name in own}):
        yield


def arguments(expression: str) -> list[Any]:
    """The arguments that an expression makes."""
    value = eval(expression, {"torch": torch})
    return list(value) if isinstance(value, tuple) else [value]


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
    #: what the program keeps from call to call
    state: Any
    #: None: the backward raised an error
    gradients: list[Any] | None


def state_of(module: ModuleType) -> Any:
    """Copies of the plain data among a module's globals, and of what its `f` holds."""
    held = {**module.f.state_dict(), **vars(module.f)} if isinstance(module.f, torch.nn.Module) else {}
    named = [*vars(module).items(), *held.items()]
    return {n: copy.deepcopy(v) for n, v in named if not n.startswith("_") and isinstance(v, _PLAIN) and not _has_history(v)}


def _has_history(value: Any) -> bool:
    return any(isinstance(leaf, torch.Tensor) and not leaf.is_leaf for leaf in pytree.tree_leaves(value))


def outcome(text: str, inputs: str, settings: Iterable[str] = (), **compile_options: Any) -> Outcome:
    """Run `f` of a program on fresh arguments, compiled if there are options for that; `settings`: those that the text sets."""
    with own_settings(settings), imported(text) as module:
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
        state = state_of(module)
        outputs = [o for o in pytree.tree_leaves(value) if isinstance(o, torch.Tensor) and o.requires_grad]
        gradients: list[Any] | None = []
        if outputs and leaves:
            try:
                gradients = list(torch.autograd.grad([o.sum() for o in outputs], leaves, allow_unused=True))
            except RuntimeError:
                gradients = None
    return Outcome(value, error, said, given, state, gradients)


def difference(one: Outcome, other: Outcome, raises: str | None = None, *, says: bool = True, **tolerance: float) -> str:
    """How two outcomes differ, "" if they do not; `raises`: the exception of the first, where the second has one.

    `says`: whether what is printed, warned of and logged must be the same.
    """
    if one.error not in ((other.error, raises) if other.error is not None else (None,)):
        return f"raises {one.error} instead of {other.error}"
    if one.error is not None:
        return ""
    for what in ("value", "arguments", "state"):
        if text := unlike(getattr(one, what), getattr(other, what), **tolerance):
            return f"{what}: {text}"
    if other.gradients is not None:
        if one.gradients is None:
            return "its backward raises an error"
        # what a branch does not use has no gradient, and gets one of zero where both sides are part of the graph
        pairs = list(zip(one.gradients, other.gradients, strict=True))
        zeros = [[_zeros(b) if a is None else a for a, b in pairs], [_zeros(a) if b is None else b for a, b in pairs]]
        if text := unlike(*zeros, **tolerance):
            return f"gradients: {text}"
    return "" if not says or _as_said(one.said) == _as_said(other.said) else f"says {one.said} instead of {other.said}"


def _zeros(like: torch.Tensor | None) -> torch.Tensor | None:
    return None if like is None else torch.zeros_like(like)


def unlike(found: Any, wanted: Any, **tolerance: float) -> str:
    """How two nested values differ, but for rounding; "" if they do not."""
    (leaves, spec), (others, wanted_spec) = pytree.tree_flatten(found), pytree.tree_flatten(wanted)
    if spec != wanted_spec:
        return f"{found} instead of {wanted}"
    for one, other in zip(leaves, others, strict=True):
        if type(one) is not type(other):
            return f"{type(one)} instead of {type(other)}"
        if isinstance(one, (torch.Tensor, float)):
            try:
                torch.testing.assert_close(one, other, equal_nan=True, **tolerance)
            except AssertionError as error:
                return str(error)
        elif isinstance(one, _PLAIN) and one != other:
            return f"{one} instead of {other}"
    return ""


def _as_said(lines: list[str]) -> str:
    """What was said, with numbers to three digits; compiled code gives a tensor another gradient function, and longer lines."""
    text = re.sub(r"\s+", " ", re.sub(r"grad_fn=<\w+>", "grad_fn", " ".join(lines)))
    return _NUMBER.sub(lambda m: f"{round(float(m.group()), 6):.2e}", text)


def same(
    text: str,
    original: str,
    inputs: Iterable[str],
    raises: str | None,
    settings: Iterable[str],
    *,
    says: bool = True,
    **options: Any,
) -> str:
    """How a changed program differs from the original one in eager mode, on any of the inputs; "" if it does not."""
    for each in inputs:
        wanted = outcome(original, each)
        for way in ({}, options) if options else ({},):
            text_of = difference(outcome(text, each, settings, **way), wanted, raises, says=says)
            # such as a backward that would raise, which AOTAutograd traces with the forward though it is never run
            if text_of and way and difference(outcome(original, each, **{**way, "fullgraph": False}), wanted, raises):
                continue  # the compiler does not keep to the original program either
            if text_of:
                return f"{each}, {way or 'eager'}: {text_of}"
    return ""


@dataclass
class Fixed:
    """A program, what the report says about its fixes, and its text with those that were chosen."""

    report: Report
    text: str
    #: the chosen fixes' settings: those of Dynamo are in the text, too
    settings: dict[str, Any]
    #: how the program is left otherwise than by one call; "" if it is not
    traces: str


def fixed(text: str, inputs: str, *, seconds: float = 600, gradients: bool = True, **settings: Any) -> Fixed:
    """A program whose `f` is called with the inputs, after `explain(f, fix=True)` and `git apply` of the patch."""
    with torch.set_grad_enabled(gradients), imported(text) as module:
        torch.manual_seed(0)
        with quiet() as said:
            explain = dynascope.explain(module.f, backend="eager", fix=True, fix_seconds=seconds, **settings)
            report = explain(*(given := arguments(inputs)))
        left, drawn = state_of(module), torch.get_rng_state()
        fixes = report.fixes_to_apply(conditional=True)
        assert fixes is not None
        file, patch = Path(str(module.__file__)), report.patch(conditional=True)
        if "--- a/" in patch:
            subprocess.run(["git", "apply", "-"], cwd=file.parent, input=patch.encode(), check=True)
        fixed_text = file.read_bytes().decode()
        once = outcome(text, inputs)
        traces = unlike([left, given], [once.state, once.arguments])
        if _as_said(said) != _as_said(once.said):
            traces += f" says {said} instead of {once.said}"
        if not torch.equal(drawn, torch.get_rng_state()):
            traces += " draws other random numbers"
    return Fixed(report, fixed_text, dict(fixes.settings), traces)
