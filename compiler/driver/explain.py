"""Compiling and running under the real `torch.compile`, as the settings say.

`compile()` and `explain()` are the Python API; `entry()`, `environment()` and `check_settings()` are what
they and the magics are made of.
"""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import functools
import inspect
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from dynascope.compiler.accuracy import check
from dynascope.compiler.driver.regions import region
from dynascope.compiler.driver.retrace import fresh
from dynascope.compiler.profile import inputs, measure
from dynascope.compiler.recording.recording import Progress, observe
from dynascope.compiler.report import Report
from dynascope.compiler.settings import MODES, Settings
from dynascope.compiler.source.lines import CellResolver
from dynascope.compiler.torch_private import config, exceptions, marks, region_flag


def check_settings(settings: Settings) -> None:
    """Raise ValueError, in one line that says what to do, where the settings cannot work here."""
    import torch

    conflict = settings.conflicts()
    if conflict:
        raise ValueError(conflict)
    if isinstance(settings.backend, str):
        known = config.backends()
        if settings.backend not in known:
            close = difflib.get_close_matches(settings.backend, known, n=1)
            cure = f"did you mean {close[0]}?" if close else "use eager, aot_eager, or one of torch.compiler.list_backends()"
            raise ValueError(f"unknown backend {settings.backend!r}: {cure}")
    elif not callable(settings.backend):
        raise ValueError(f"backend is a name or a callable, not {settings.backend!r}")
    if (settings.mode is not None or settings.options) and settings.backend != "inductor":
        raise ValueError(f"mode and options are Inductor's: leave them out with backend {settings.to_dict()['backend']!r}")
    modes = config.modes() or list(MODES)
    if settings.mode is not None and settings.mode not in modes:
        raise ValueError(f"unknown mode {settings.mode!r}: use one of {', '.join(modes)}")
    refused = config.refused_option(settings.options)
    if refused is not None:
        raise ValueError(refused)
    if settings.device is not None:
        _check_device(torch, settings.device)
    if settings.nested_graph_breaks and not config.has_nested_graph_breaks():
        raise ValueError(f"torch {torch.__version__} has no nested graph breaks: leave --nested-graph-breaks out")
    if settings.profile is not None and settings.profile < 1:
        raise ValueError(f"--profile takes a number of calls of at least 1, not {settings.profile}")


def _check_device(torch: Any, name: str) -> None:
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ValueError(f"unknown device {name!r}: write it as torch does, for example cpu, cuda, cuda:1, mps") from None
    if device.type in ("cpu", "meta"):
        return
    module = getattr(torch, device.type, None)
    if module is None or not getattr(module, "is_available", lambda: False)():
        raise ValueError(f"device {name!r} is not available here: leave --device out, or use cpu")
    count = getattr(module, "device_count", lambda: 1)()
    if device.index is not None and device.index >= count:
        raise ValueError(f"device {name!r} is not available here: there {'is' if count == 1 else 'are'} {count} of them")


@contextlib.contextmanager
def environment(settings: Settings) -> Iterator[None]:
    """Everything around a run that is not an argument of torch.compile; restored exactly."""
    import torch

    with contextlib.ExitStack() as stack:
        if settings.device is not None:
            stack.enter_context(torch.device(settings.device))
        if settings.nested_graph_breaks is not None and config.has_nested_graph_breaks():
            stack.enter_context(config.dynamo_config(nested_graph_breaks=settings.nested_graph_breaks))
        if not settings.cache:
            stack.enter_context(config.no_caches())
        if not settings.fullgraph:
            # an exception of the user's own must look, and leave things, as it does without the compiler
            stack.enter_context(exceptions.suppressed_errors())
        yield


def compile(
    model: Any = None,
    *,
    error_on_graph_break: bool | None = None,
    **arguments: Any,
) -> Any:
    """What `torch.compile` returns, with the argument that it lacks: `error_on_graph_break`.

    Takes everything that `torch.compile` takes; without `model` it is a decorator, too.
    """
    import torch

    if model is None:
        return functools.partial(compile, error_on_graph_break=error_on_graph_break, **arguments)
    compiled = torch.compile(model, **arguments)
    if error_on_graph_break is None:
        return compiled
    if region_flag.set_flag_of(compiled, error_on_graph_break):
        return compiled  # a module: no call of ours in its way
    return region(error_on_graph_break=error_on_graph_break)(compiled)


def entry(target: Any, settings: Settings) -> Callable[..., Any]:
    """A callable that runs `target` (function, bound method, nn.Module) compiled as the settings say.

    The target stays as it is.  What the user compiled already is compiled anew from the function inside.
    """
    import torch

    target = marks.inner_function(target)
    arguments: dict[str, Any] = {
        "fullgraph": settings.fullgraph,
        "dynamic": settings.dynamic,
        "backend": settings.backend,
        "mode": settings.mode,
        "options": dict(settings.options) or None,
    }
    marked = marks.mark_of(target)
    compiled: Callable[..., Any] = torch.compile(target, **arguments)
    marked()
    flag = settings.error_on_graph_break
    if flag is None or settings.fullgraph:
        return compiled

    @functools.wraps(compiled)
    def run(*args: Any, **kwargs: Any) -> Any:
        with region(error_on_graph_break=flag):
            return compiled(*args, **kwargs)

    return run


def settings_notes(settings: Settings) -> list[str]:
    """What the user should be told about these settings."""
    notes = []
    if settings.fullgraph and settings.error_on_graph_break is not None:
        notes.append("error_on_graph_break has no effect here: fullgraph=True wins over it.")
    return notes


def explain(
    function: Callable[..., Any],
    /,
    *,
    cells: CellResolver | None = None,
    on_progress: Progress | None = None,
    **settings: Any,
) -> Callable[..., Report]:
    """Compile and call `function`, and report: `report = explain(f, backend="eager")(x)`.

    Takes every setting of `%%compile` that is not about a cell (function, region, keep, output and view are).  What the
    compiler refuses (fullgraph, error_on_graph_break) is in `report.error`; an error of the user's own code propagates.
    """
    chosen = chosen_settings(settings)
    check_settings(chosen)
    wrong = None if chosen.inputs is None else inputs.wrong_with(chosen.inputs)
    if wrong is not None:
        raise ValueError(f"inputs: {wrong}")
    if not callable(function):
        raise TypeError(f"explain() takes a function, a method or a module, not {type(function).__name__}")

    def call(*args: Any, **kwargs: Any) -> Report:
        recording = observe(chosen, [target_name(function)], cells, on_progress)
        recording.notes.extend(settings_notes(chosen))
        last, measured, tried = measure.LastCall(_warn), None, None
        watched, checked = check.LastCall(), None
        try:
            with recording, environment(chosen), fresh() as freshen:
                freshen(function)
                compiled = entry(function, chosen)
                if chosen.check:
                    compiled = watched.watch(function, compiled)
                if chosen.profile is None:
                    compiled(*args, **kwargs)
                else:
                    last.watch(function, compiled)(*args, **kwargs)
                    measured = last.measure(chosen.profile)
                    if chosen.inputs is not None:
                        tried = last.quietly(inputs.try_inputs, chosen.inputs, chosen.profile)
                if chosen.check:
                    checked = watched.compare()
        except Exception as error:
            if not is_refusal(error):
                raise
        report = recording.report
        if tried is not None:
            report.inputs = inputs.told(tried, report)
        if measured is not None:
            report.profile = measure.tell(measured, report)
        if checked is not None:
            report.check = checked.to_dict()
            report.notes.append(checked.words())
        if chosen.save is not None:
            report.save(chosen.save)
        if chosen.expect is not None:
            report.expect(chosen.expect)
        return report

    return call


def _warn(sentence: str) -> None:
    """Of what repeating a call cannot undo, before it is repeated."""
    warnings.warn(f"profile: {sentence}", stacklevel=5)


#: settings that are about a cell of a notebook
_OF_CELLS = ("function", "region", "keep", "output", "view")


def chosen_settings(settings: dict[str, Any]) -> Settings:
    """The settings of a call from Python; TypeError, in one line, for one that is unknown or about a cell."""
    known = {f.name for f in dataclasses.fields(Settings)} - set(_OF_CELLS)
    for name in settings:
        if name in _OF_CELLS:
            raise TypeError(f"{name} is a setting of %%compile: explain() takes {', '.join(sorted(known))}")
        if name not in known:
            raise TypeError(f"unknown setting {name!r}: explain() takes {', '.join(sorted(known))}")
    return Settings(**settings)


def is_refusal(error: BaseException) -> bool:
    """Whether the compiler refused the code (fullgraph, error_on_graph_break, a failing backend), not the user's own error."""
    if isinstance(error, exceptions.refusals()):
        return True
    # fullgraph=True on code that Dynamo skips is a plain RuntimeError from 2.11 on
    return type(error) is RuntimeError and str(error).startswith("torch.compile with fullgraph=True found no compiled frames")


def target_name(target: Any) -> str:
    """How the report names what was compiled: `f`, `model.generate`, `Net`."""
    target = marks.undecorated(marks.inner_function(target))
    if inspect.ismethod(target):
        return f"{type(target.__self__).__name__}.{target.__name__}"
    return str(getattr(target, "__name__", None) or type(target).__name__)
