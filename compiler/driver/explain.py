"""`explain()`: compile a function, call it, and return the report."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dynascope.compiler.capture.recording import Progress
from dynascope.compiler.compiling import is_refusal, target_name
from dynascope.compiler.driver.pipeline import Run
from dynascope.compiler.lab.inputs import wrong_with
from dynascope.compiler.report import Report
from dynascope.compiler.settings import ExplainSettings
from dynascope.compiler.source.lines import CellResolver
from dynascope.compiler.source.origin import origin
from dynascope.compiler.validate import check_settings, settings_from_keywords

if TYPE_CHECKING:
    from typing_extensions import Unpack


def explain(
    function: Callable[..., Any],
    /,
    *,
    cells: CellResolver | None = None,
    on_progress: Progress | None = None,
    **settings: Unpack[ExplainSettings],
) -> Callable[..., Report]:
    """Return a function that compiles `function`, calls it and returns the report: `explain(f, backend="eager")(x)`.

    Takes every setting of `%%compile` except those about a cell (function, region, keep, output, view).  If the compiler
    refuses the code (fullgraph, error_on_graph_break, a backend that fails), `report.error` says why; an error in the user's
    code propagates.
    """
    chosen = settings_from_keywords(dict(settings))
    try:
        check_settings(chosen)
    except ValueError as error:  # it names the options of `%%compile`
        raise ValueError(re.sub("--([a-z-]+)", lambda flag: flag[1].replace("-", "_"), str(error))) from None
    if chosen.inputs is not None and (wrong := wrong_with(chosen.inputs)) is not None:
        raise ValueError(f"inputs: {wrong}")
    if not callable(function):
        raise TypeError(f"explain() takes a function, a method or a module, not {type(function).__name__}")

    def call(*args: Any, **kwargs: Any) -> Report:
        run = Run(chosen, compiled=[target_name(function)], cells=cells, on_progress=on_progress, warn=_warn)
        try:
            with run:
                run.retrace(function)
                run.entry_point(function)(*args, **kwargs)
                run.repeat_last_call(chosen.inputs)
        except Exception as error:
            if not is_refusal(error):
                raise
        if chosen.save is not None:
            run.report.save(chosen.save)
        if chosen.expect is not None:
            run.report.expect(chosen.expect)
        return run.report

    return call


def _warn(sentence: str) -> None:
    """Warn, at the user's line, about effects of repeated calls that cannot be undone."""
    frame, level = sys._getframe(1), 2
    # how many wrappers are between the user's line and here depends on the settings
    while frame.f_back is not None and origin(frame.f_code.co_filename) == "dynascope":
        frame, level = frame.f_back, level + 1
    warnings.warn(f"dynascope: {sentence}", stacklevel=level)
