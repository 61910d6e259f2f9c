"""Checks settings before anything is shown, compiled or run, for `CellRun` and `explain`; each error message is one line."""

from __future__ import annotations

import argparse
import dataclasses
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from dynascope.compiler.capture.torch_private import config
from dynascope.compiler.parsing import errors_as as errors_as
from dynascope.compiler.report import comparison
from dynascope.compiler.settings import CELL_SETTINGS, MODES, SAVE_SUFFIXES, Settings, closest_name


def why_not_savable(path: str, suffixes: Sequence[str] = SAVE_SUFFIXES) -> str | None:
    """Why no report can be saved at this path; None if one can be."""
    if Path(path).suffix.lower() not in suffixes:
        return f"the name must end in one of {' '.join(suffixes)}"
    # missing folders below it are created; unlike `Path.exists`, this raises nothing
    folder = next(f for f in Path(path).absolute().parents if os.path.exists(f))
    if not os.path.isdir(folder) or not os.access(folder, os.W_OK):
        return f"{folder} is not a writable folder"
    return None


def save(report: Any, path: str | Path) -> str | None:
    """Save the report; returns None, or one line that says what went wrong: a failure to save must not fail the run."""
    try:
        report.save(path)
    except Exception as error:
        reason = (getattr(error, "strerror", None) or str(error) or type(error).__name__).partition("\n")[0]
        return f"not saved: {reason}"
    return None


def check_settings(settings: Settings) -> None:
    """Raise ValueError if the settings cannot work with this torch on this machine."""
    import torch

    if (conflict := settings.conflicts()) is not None:
        raise ValueError(conflict)
    if isinstance(settings.backend, str):
        known = config.backends()
        if settings.backend not in known:
            close = closest_name(settings.backend, known)
            advice = f"did you mean {close}?" if close else "use eager, aot_eager, or one of torch.compiler.list_backends()"
            raise ValueError(f"unknown backend {settings.backend!r}: {advice}")
    elif not callable(settings.backend):
        raise ValueError(f"backend is a name or a callable, not {settings.backend!r}")
    passed = config.options_for_backend(settings.options)  # checked for eager backends and Inductor only
    if isinstance(settings.backend, str) and "eager" in settings.backend and (settings.mode is not None or passed):
        raise ValueError(f"backend {settings.backend!r} ignores mode and options: leave them out")
    if settings.backend == "inductor":
        modes = config.modes() or list(MODES)
        if settings.mode is not None and settings.mode not in modes:
            raise ValueError(f"unknown mode {settings.mode!r}: use one of {', '.join(modes)}")
        if (refused := config.refused_option(passed)) is not None:
            raise ValueError(refused)
    if settings.device is not None:
        try:
            torch.empty(0, device=settings.device)
        except Exception as error:
            wrong = str(error).strip().partition("\n")[0]
            raise ValueError(f"device {settings.device!r} cannot be used here: {wrong}") from None
    if settings.nested_graph_breaks and config.nested_graph_breaks() is None:
        raise ValueError(f"torch {torch.__version__} has no nested graph breaks: leave --nested-graph-breaks out")
    if settings.profile is not None and (not isinstance(settings.profile, int) or settings.profile < 1):
        raise ValueError(f"--profile takes a whole number of calls, at least 0, not {settings.profile!r}")
    if settings.fix_seconds is not None and not settings.fix_seconds >= 0:  # nor is NaN
        raise ValueError(f"--fix-seconds takes a number, at least 0, not {settings.fix_seconds!r}")
    for name, text in {"save": settings.save, "expect": settings.expect}.items():
        if text is not None and not isinstance(text, str):
            raise ValueError(f"--{name} takes a string, not {text!r}")
    if settings.save is not None and (reason := why_not_savable(settings.save)) is not None:
        raise ValueError(f"--save {settings.save}: {reason}")
    if settings.expect is not None:
        with errors_as(ValueError, "--expect: "):
            expected = comparison.parse_expectations(settings.expect)
        if comparison.AGREES in expected and not settings.check:
            raise ValueError(f"--expect {comparison.AGREES} needs --check: without it, nothing is compared")


def settings_from_keywords(keywords: dict[str, Any]) -> Settings:
    """The settings from keyword arguments; raises TypeError for a keyword that is unknown or applies to cells only."""
    known = {f.name for f in dataclasses.fields(Settings)} - set(CELL_SETTINGS)
    for name in (name for name in keywords if name not in known):
        unknown = f"unknown setting {name!r}{did_you_mean(name, known)}"
        wrong = f"{name} is a setting of %%compile" if name in CELL_SETTINGS else unknown
        raise TypeError(f"{wrong}: explain() takes {', '.join(sorted(known))}")
    return Settings(**keywords)


def settings_notes(settings: Settings) -> list[str]:
    """Notes for the user about these settings, one sentence each."""
    if settings.fullgraph and settings.error_on_graph_break is not None:
        return ["error_on_graph_break has no effect here: fullgraph=True wins over it."]
    return []


def did_you_mean(name: str, candidates: Iterable[Any]) -> str:
    """A suggestion for the end of a message, such as ` (did you mean block?)`; "" if no candidate is close."""
    close = closest_name(name, candidates)
    return f" (did you mean {close}?)" if close else ""


def with_suggestion(message: str, parser: argparse.ArgumentParser) -> str:
    """A message of argparse, with a suggestion for a flag that it does not know: `--fullgraf (did you mean --fullgraph?)`."""
    message = message.replace("ignored explicit argument", "takes no value such as")
    _, unrecognized, given = message.partition("unrecognized arguments: ")
    unknown = next((word.partition("=")[0] for word in given.split() if word.startswith("--")), None)
    if not unrecognized or unknown is None:
        return message
    return message + did_you_mean(unknown, parser._option_string_actions)


def wrong_with(inputs: Any) -> str | None:
    """Why this is not a list of inputs, as the end of a sentence; None if it is one."""
    if not isinstance(inputs, (list, tuple)):
        return f"expected a list of inputs, not {type(inputs).__name__}: write [x1, x2, ...]"
    return None if inputs else "the list of inputs is empty"
