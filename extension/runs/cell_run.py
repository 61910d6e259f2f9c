"""One run of one cell: check the input, run the cell, show its report, return its value or raise its error.

The order is part of the contract.  The input is checked, as far as it is known, before anything is displayed or run.
Then come the display and the run.  Whatever happens in the run, everything is restored, and the report is bound, shown and
saved.
"""

from __future__ import annotations

import dataclasses
import keyword
import sys
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from IPython.core.error import UsageError
from IPython.utils.capture import capture_output

from dynascope.cell import source as cells
from dynascope.cell import tracebacks
from dynascope.cell.ast_tools import bound_names
from dynascope.cell.interrupts import Interrupts, interruptible
from dynascope.cell.source import Cell
from dynascope.compiler.driver.pipeline import Run
from dynascope.compiler.report import Report, comparison
from dynascope.compiler.settings import Settings
from dynascope.compiler.validate import check_settings, why_not_savable
from dynascope.regions.active import ActiveRegions
from dynascope.runs import fixed_cell, history, saving
from dynascope.runs.compiled_cell import CompiledCell
from dynascope.runs.display import Display
from dynascope.runs.inputs import check_inputs, inputs_named
from dynascope.selection.definitions import definitions
from dynascope.selection.named import check_target, resolve
from dynascope.shell import cell_id, cell_number, event_loop
from dynascope.widgets.guarded import guarded


@dataclass
class CellRun:
    """One run of one cell: `%%compile` with its settings, or `%%observe`."""

    shell: Any
    cell: Cell
    settings: Settings
    #: False: run the code uncompiled (`%%observe`)
    compiles: bool = True
    #: trace again what Dynamo has compiled before (`%%compile`, `%%observe --fresh`)
    retraces: bool = True
    #: how to have code traced again that ran from Dynamo's cache, as the end of a sentence
    trace_again: str = ""
    #: the magic's line as the user typed it; for a rerun, the line for its settings
    command: str = ""
    #: returns the magic's line for other settings
    command_line: Callable[[Settings], str] = lambda settings: ""
    #: the whole cell as the user wrote it
    raw: str = ""
    #: makes the buttons of the view work; None (`%%observe`): the view cannot run anything
    attach: Callable[[CellRun, Display], None] | None = None
    #: for a rerun: the display of the run that it repeats
    display: Display | None = None
    #: identifies the cell in `history`
    key: Hashable = None
    #: the outcome, once the run is over
    report: Report | None = field(init=False, default=None)
    _regions: ActiveRegions | None = field(init=False, default=None)
    _expected: list[comparison.Expectation] = field(init=False, default_factory=list)

    def __call__(self) -> Any:
        """Run the cell; returns the value of its last expression, or raises its own error."""
        self._check()
        if not cells.is_accepted(self.shell, self.cell):
            return self._run_invalid()
        display = self.display or Display(self.shell, self.settings.view)
        display.start()
        if display.view is not None and self.compiles:  # before any content: the details have switches only if this is set
            display.view.can_run_again = event_loop(self.shell) is not None
        run = self._pipeline(display)
        display.so_far = lambda: run.report
        try:
            with Interrupts(), run:
                return self._run(run)
        except BaseException as error:
            tracebacks.show_trimmed(self.shell, error)
            raise
        finally:
            display.so_far = None  # it holds the run, which may hold recorded calls with their tensors
            self._publish(run.report, display)
            self._save(run.report)
            if self._expected and not isinstance(sys.exc_info()[1], KeyboardInterrupt):
                self._check_expectations(run.report)

    def again(self, settings: Settings, display: Display) -> CellRun:
        """The run that repeats this one, in the same view."""
        cell, command = cells.reread(self.shell, self.cell), self.command_line(settings)
        return dataclasses.replace(self, cell=cell, settings=settings, command=command, display=display)

    # -- before ---------------------------------------------------------------------------------------

    def _check(self) -> None:
        """Check the input; raises UsageError, with a one-line message, if anything is wrong with it."""
        settings = self.settings
        if settings.output is not None and (not settings.output.isidentifier() or keyword.iskeyword(settings.output)):
            raise UsageError(f"--output {settings.output}: not a name")
        if settings.save is not None:
            reason = why_not_savable(settings.save)
            if reason is not None:
                raise UsageError(f"--save {settings.save}: {reason}")
        if not self.compiles:
            return
        try:
            check_settings(settings)
        except ValueError as error:
            raise UsageError(str(error)) from None
        if settings.expect is not None:
            self._expected = comparison.parse_expectations(settings.expect)
        if settings.region:
            self._regions = ActiveRegions(self.shell, self.cell, settings)
            self.cell = dataclasses.replace(self.cell, regions=self._regions)
        bound = bound_names(self.cell.statements)
        if settings.inputs is not None:
            takes_inputs = bool(settings.function or definitions(self.cell, self.shell.user_ns))
            check_inputs(settings.inputs, self.shell.user_ns, bound, takes_inputs=takes_inputs)
        for name in settings.function:
            self._check_function(name, bound)

    def _check_function(self, name: str, bound: list[str]) -> None:
        if not all(part.isidentifier() or part.isdigit() for part in name.split(".")):
            raise UsageError(f"--function {name}: not a name; write it like f, model or model.encoder.forward")
        if name.split(".")[0] in bound:
            return  # its value may come from the cell itself
        try:
            value = resolve(name, self.shell.user_ns)
        except LookupError as error:
            raise UsageError(f"cannot compile {name}: {error}") from None
        check_target(name, value)

    def _run_invalid(self) -> Any:
        """Run a cell that Python refuses (`return` outside a function): it fails exactly as the plain cell does."""
        try:
            return cells.run_statements(self.shell, self.cell)
        except BaseException as error:
            tracebacks.show_trimmed(self.shell, error)
            raise

    # -- running --------------------------------------------------------------------------------------

    def _pipeline(self, display: Display) -> Run:
        return Run(
            self.settings if self.compiles else None,
            cells=cell_number,
            on_progress=display.progress,
            retraces=self.retraces,
            regions=self._regions,
            warn=lambda sentence: print(f"dynascope: {sentence}", file=sys.stderr),
            quiet=partial(capture_output, stdout=False, stderr=False),
            user_code=interruptible,
            trace_again=self.trace_again,
        )

    def _run(self, run: Run) -> Any:
        if not self.compiles:
            return cells.run_statements(self.shell, self.cell)
        settings = self.settings
        value = CompiledCell(self.shell, self.cell, run, functions=settings.function, keep=settings.keep)()
        run.repeat_last_call(inputs_named(settings.inputs, self.shell.user_ns, run.notes))
        return value

    # -- after ----------------------------------------------------------------------------------------

    def _publish(self, report: Report, display: Display) -> None:
        """Add the report to the cell's history, bind it to the name of `--output` and show it."""
        self.report = report
        fixed_cell.use_raw_texts(self.shell, report, self.cell.file)
        if self.key is None:
            self.key = history.key(cell_id(self.shell), report, self.cell.text)
        previous = history.add(self.key, report)
        if self.settings.output is not None:
            self.shell.user_ns[self.settings.output] = report
        if display.view is not None:
            display.view.command = self.command
            display.view.diff = guarded(
                "What changed", lambda: report.diff(previous).to_dict() if previous is not None else None, lambda _: None
            )
            if self.attach is not None:
                self.attach(self, display)
        display.finish(report)

    def _save(self, report: Report) -> None:
        """Save the report for `--save`; what went wrong is printed, not raised."""
        wrong = saving.save(report, self.settings.save) if self.settings.save is not None else None
        if wrong is not None:
            print(f"--save {self.settings.save}: {wrong}", file=sys.stderr)

    def _check_expectations(self, report: Report) -> None:
        """Check `--expect`; raises ExpectationFailed even if the cell raised another error."""
        try:
            comparison.check_expectations(report, self._expected)
        except comparison.ExpectationFailed as error:
            tracebacks.show_message_only(self.shell, error)
            raise
