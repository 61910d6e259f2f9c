"""Calls `torch.compile` as the settings say, and sets `error_on_graph_break` for regions.

`environment` puts the settings of a run in force, `entry_point` compiles one target, and `is_refusal` tells the compiler's
errors from the program's.  `region()` sets `error_on_graph_break` for a block or a function; `parse_regions` parses `--region
TARGET=error|allow`.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import re
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from dynascope.compiler.capture.torch_private import config, marks, translators
from dynascope.compiler.report import Report
from dynascope.compiler.settings import Settings
from dynascope.compiler.source.origin import in_torch

_LINES = re.compile(r"^(\d+)(?:-(\d+))?$")
_SET = {"error": True, "allow": False}


def region(*, error_on_graph_break: bool) -> Any:
    """A context manager and decorator: in the block or function, graph breaks are errors (True) or allowed (False).

        with dynascope.region(error_on_graph_break=False):
            print("half way")

    `fullgraph=True` takes precedence.  Returns the object that `torch._dynamo.error_on_graph_break` makes, because Dynamo
    recognizes it in traced code.

    Raises:
        TypeError: if the flag is not a bool.
        RuntimeError: if this torch has no `error_on_graph_break` (before 2.9).
    """
    if not isinstance(error_on_graph_break, bool):
        raise TypeError(f"region(error_on_graph_break=...) takes True or False, not {error_on_graph_break!r}")
    return config.error_on_graph_break()(error_on_graph_break)


class RegionsInForce(Protocol):
    """The interface of a `Run` to the `--region` options; `dynascope.cell.regions` implements it for notebooks."""

    def installed(self) -> AbstractContextManager[None]:
        """Set the regions for the duration, and restore every object exactly."""

    def annotate(self, report: Report, traced: Collection[tuple[str, str]]) -> None:
        """Name the regions in the report, and add notes on those that had no effect.

        `traced`: (file, name) of the functions that Dynamo traced.
        """


@dataclass(frozen=True)
class Region:
    """One parsed `--region` option, such as `9-12=allow`."""

    #: the target as written: lines, the name of a function, or a dotted path
    target: str
    #: error_on_graph_break inside the target
    flag: bool
    #: first and last line; None: the target is a function
    lines: tuple[int, int] | None = None

    def __str__(self) -> str:
        return f"--region {self.target}={'error' if self.flag else 'allow'}"

    def contradicts(self, other: Region) -> bool:
        """Whether the two cannot both hold: different flags for the same target, or for lines that overlap without nesting."""
        if self.flag == other.flag or self.lines is None or other.lines is None:
            return self.flag != other.flag and self.target == other.target
        (start, end), (first, last) = sorted([self.lines, other.lines])
        return (start, end) == (first, last) or start < first <= end < last


def parse_region(text: str) -> Region:
    """Parse `9=error`, `9-12=allow`, `block=allow` or `pkg.mod.Class.method=error`.

    Raises ValueError, with a one-line message, for anything else.
    """
    target, _, word = (part.strip() for part in text.rpartition("="))
    if word not in _SET or not target:
        raise ValueError(f"--region {text}: write it as TARGET=error or TARGET=allow")
    if (lines := _LINES.match(target)) is not None:
        first, last = int(lines[1]), int(lines[2] or lines[1])
        if first < 1 or last < first:
            raise ValueError(f"--region {text}: lines are numbered from 1 and written as 9 or 9-12, the first line first")
        return Region(target, _SET[word], (first, last))
    if not all(part.isidentifier() for part in target.split(".")):
        raise ValueError(f"--region {text}: {target} is neither a name, nor a dotted path, nor lines such as 9 or 9-12")
    return Region(target, _SET[word])


def parse_regions(texts: list[str]) -> list[Region]:
    """Parse all `--region` options; in the result, outer lines come before inner ones.

    Raises ValueError, with a one-line message, if an option cannot be read or two options contradict each other.
    """
    regions = list(dict.fromkeys(parse_region(text) for text in texts))
    for other, one in itertools.combinations(regions, 2):
        if one.contradicts(other):
            raise ValueError(f"{other} and {one} contradict each other: regions may nest, but not overlap")
    return sorted(regions, key=lambda r: (r.lines is not None, -(r.lines[1] - r.lines[0]) if r.lines else 0))


def compile(model: Any = None, *, error_on_graph_break: bool | None = None, **arguments: Any) -> Any:
    """`torch.compile` with one more argument: `error_on_graph_break`.

        compiled = dynascope.compile(f, error_on_graph_break=True)
        compiled(x)

    Args:
        model: a function or `nn.Module`; if it is not given, a decorator is returned.
        error_on_graph_break: whether a graph break in a call of the result is an error; None: the flag in force at the call.
        arguments: all other arguments of `torch.compile`.
    """
    import torch

    if model is None:
        return functools.partial(compile, error_on_graph_break=error_on_graph_break, **arguments)
    compiled = torch.compile(model, **arguments)
    if error_on_graph_break is None:
        return compiled
    if config.set_flag_of(compiled, error_on_graph_break):
        return compiled  # a module has the flag as an attribute and needs no wrapper
    return region(error_on_graph_break=error_on_graph_break)(compiled)


def entry_point(target: Any, settings: Settings) -> Callable[..., Any]:
    """A callable that runs `target` (function, bound method, nn.Module) compiled as the settings say.

    The target is not changed.  If the user has compiled it already, the original function is compiled again.
    """
    import torch

    target = marks.inner_function(target)
    if marks.is_compiled_in_place(target) and not is_torchs_own(target):
        target = marks.plain_call(target)  # else the settings of its compiled call would win
    restore_mark = marks.mark_of(target)
    compiled: Callable[..., Any] = torch.compile(
        target, fullgraph=settings.fullgraph, dynamic=settings.dynamic, backend=settings.backend, mode=settings.mode,
        options=dict(settings.options) or None,
    )  # fmt: skip
    restore_mark()  # torch.compile marks a module as compiled, and the target must not change
    flag = settings.error_on_graph_break
    if flag is None or settings.fullgraph:
        return compiled

    @functools.wraps(compiled)
    def run(*args: Any, **kwargs: Any) -> Any:
        with region(error_on_graph_break=flag):
            return compiled(*args, **kwargs)

    return run


def is_torchs_own(module: Any) -> bool:
    """Whether a module's `forward` is torch's own: then Dynamo leaves its plain call alone, and compiles what that calls."""
    code = getattr(getattr(module, "forward", None), "__code__", None)
    return code is None or in_torch(code.co_filename)


@contextlib.contextmanager
def environment(settings: Settings) -> Iterator[None]:
    """Set device, nested graph breaks, caches and error suppression as the settings say, for the duration of the block."""
    import torch

    with contextlib.ExitStack() as stack:
        if settings.device is not None:
            stack.enter_context(torch.device(settings.device))
        if settings.nested_graph_breaks is not None and config.nested_graph_breaks() is not None:
            stack.enter_context(config.dynamo_config(nested_graph_breaks=settings.nested_graph_breaks))
        if not settings.cache:
            stack.enter_context(config.no_caches())
        if not settings.fullgraph:
            # without this, exceptions and side effects of the user's code would differ from those of eager code
            stack.enter_context(config.suppressed_errors())
        stack.enter_context(config.flag_kept())
        yield


def is_refusal(error: BaseException) -> bool:
    """Whether the error is the compiler's refusal of the code (fullgraph, error_on_graph_break, a failing backend)."""
    if isinstance(error, config.refusals()):
        return True
    # fullgraph=True on code that Dynamo skips raises a plain RuntimeError from torch 2.11 on
    return type(error) is RuntimeError and str(error).startswith("torch.compile with fullgraph=True found no compiled frames")


def target_name(target: Any) -> str:
    """The name of a compile target in reports: `f`, `Net.generate` for a bound method, `Net` for a module."""
    name, _ = translators.named(marks.undecorated(marks.inner_function(target)))
    return name
