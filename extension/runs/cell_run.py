"""`CellRun`, one run of one cell: check the input, run the cell, show its report, return its value or raise its error.

In the run, `CompiledCell` has the right parts compiled: what `-f` names, wherever the cell calls it (`cell.named`); otherwise
the functions and modules that the cell defines (`cell.entry_points`); or the statements of a cell that defines none
(`cell.statements`).  Meanwhile, a live view draws the report so far.

The order is part of the contract.  The input is checked, as far as it is known, before anything is displayed or run.
Then come the display and the run.  Whatever happens in the run, everything is restored, and the report is bound, shown and
saved.
"""

from __future__ import annotations

import contextlib
import dataclasses
import keyword
import sys
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import partial
from types import FunctionType
from typing import Any

from IPython.core.error import UsageError
from IPython.utils.capture import capture_output

from dynascope.cell import source as cells
from dynascope.cell import tracebacks
from dynascope.cell.entry_points import EntryPoints, is_module
from dynascope.cell.interrupts import Interrupts, interruptible
from dynascope.cell.named import NamedTargets
from dynascope.cell.regions import ActiveRegions
from dynascope.cell.statements import CellStatements
from dynascope.cell.targets import Definition, check_inputs, definitions, find_target, inputs_named, why_nothing_ran
from dynascope.compiler import compiling
from dynascope.compiler.builder.events import FrameEnd
from dynascope.compiler.capture.torch_private import hook_installer, marks
from dynascope.compiler.driver import Run
from dynascope.compiler.lab.fix.text_edits import NotApplicable, with_edits
from dynascope.compiler.report import Report, comparison
from dynascope.compiler.settings import Settings
from dynascope.compiler.source.code import STATEMENTS, user_name
from dynascope.compiler.source.syntax import bound_names
from dynascope.compiler.validate import check_settings, errors_as, save
from dynascope.runs.display import Display
from dynascope.shell import cell_id, cell_number, event_loop, raw_cell
from dynascope.widgets.words import guarded


@dataclass
class CellRun:
    """One run of one cell: `%%compile` with its settings, or `%%observe`."""

    shell: Any
    cell: cells.Cell
    settings: Settings
    #: False: run the code uncompiled (`%%observe`)
    compiles: bool = True
    #: trace again what Dynamo has compiled before (`%%compile`, `%%observe --fresh`)
    retraces: bool = True
    #: how to have code traced again that ran from Dynamo's cache, as the end of a sentence
    trace_again: str = ""
    #: the magic's line for the settings of a rerun, if they are not those of the cell
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
    report: Report = field(init=False)
    _regions: ActiveRegions | None = field(init=False, default=None)

    def __call__(self) -> Any:
        """Run the cell; returns the value of its last expression, or raises its own error."""
        self._check()
        display = self.display or Display(self.shell, self.settings.view)
        display.start()
        if display.view is not None and self.compiles:  # before any content: the details have switches only if this is set
            display.view.can_run_again = event_loop(self.shell) is not None
        run = Run(
            self.settings if self.compiles else None, cells=cell_number, on_progress=display.progress, retraces=self.retraces,
            regions=self._regions, warn=lambda sentence: print(f"dynascope: {sentence}", file=sys.stderr),
            quiet=partial(capture_output, stdout=False, stderr=False), user_code=interruptible, trace_again=self.trace_again,
        )  # fmt: skip
        display.so_far = lambda: run.report
        try:
            with Interrupts(), run:
                if not self.compiles:
                    return cells.run_statements(self.shell, self.cell)
                compiled = CompiledCell(self.shell, self.cell, run, self.settings)  # alive until changes to it have been tried
                value = compiled()
                run.repeat_last_call(inputs_named(self.settings.inputs, self.shell.user_ns, run.notes))
                return value
        except BaseException as error:
            tracebacks.show_trimmed(self.shell, error)
            raise
        finally:
            display.so_far = None  # it holds the run, which may hold recorded calls with their tensors
            self._publish(run.report, display)
            if self.settings.save is not None and (wrong := save(run.report, self.settings.save)) is not None:
                print(f"--save {self.settings.save}: {wrong}", file=sys.stderr)
            if self.settings.expect is not None and not isinstance(sys.exc_info()[1], KeyboardInterrupt):
                try:  # raises ExpectationFailed even if the cell raised another error
                    run.report.expect(self.settings.expect)
                except comparison.ExpectationFailed as error:
                    tracebacks.show_message_only(self.shell, error)
                    raise

    def again(self, settings: Settings, display: Display) -> CellRun:
        """The run that repeats this one, in the same view."""
        cell = cells.reread(self.shell, self.cell)
        command = self.command if settings == self.settings else self.command_line(settings)
        return dataclasses.replace(self, cell=cell, settings=settings, command=command, display=display)

    def _check(self) -> None:
        """Check the input; raises UsageError, with a one-line message, if anything is wrong with it."""
        settings, namespace = self.settings, self.shell.user_ns
        if settings.keep and settings.region:
            raise UsageError("--keep: not with --region, which holds for one run; use `with dynascope.region(...)` in the code")
        if settings.output is not None and (not settings.output.isidentifier() or keyword.iskeyword(settings.output)):
            raise UsageError(f"--output {settings.output}: not a name")
        with errors_as(UsageError):
            check_settings(settings)
        if not self.compiles:
            return
        if settings.region:
            self._regions = ActiveRegions(self.shell, self.cell, settings)
            self.cell = dataclasses.replace(self.cell, compile_with_regions=self._regions.compile)
        bound = bound_names(self.cell.statements)  # their values may come from the cell itself
        if settings.inputs is not None:
            takes_inputs = bool(settings.function or definitions(self.cell, namespace))
            check_inputs(settings.inputs, namespace, bound, takes_inputs=takes_inputs)
        for name in (name for name in settings.function if name.split(".")[0] not in bound):
            with errors_as(UsageError, f"cannot compile {name}: "):
                find_target(name, namespace)

    def _publish(self, report: Report, display: Display) -> None:
        """Add the report to the cell's history, bind it to the name of `--output` and show it."""
        self.report = report
        use_raw_texts(self.shell, report, self.cell.file)
        report.patched_by = "%fix"
        has_functions = self.compiles and report.compiled not in ([], [user_name(STATEMENTS)])
        code = "\n".join(line for line in self.cell.text.split("\n") if line[:1] != "#")  # whatever the options of its magic
        self.key = self.key or cell_id(self.shell) or (tuple(report.compiled) if has_functions else code)
        previous = add_to_history(self.key, report)
        if self.settings.output is not None:
            self.shell.user_ns[self.settings.output] = report
        if display.view is not None:
            display.view.command = self.command
            display.view.diff = guarded("What changed", lambda: previous and report.diff(previous).to_dict(), lambda _: None)
            if self.attach is not None:
                self.attach(self, display)
        display.finish(report)


class CompiledCell:
    """One cell to be run under `%%compile`, inside the `Run` that records it."""

    def __init__(self, shell: Any, cell: cells.Cell, run: Run, settings: Settings) -> None:
        self.shell, self.cell, self.run, self.settings = shell, cell, run, settings
        self.namespace: dict[str, Any] = shell.user_ns

    def __call__(self) -> Any:
        """Run the cell; returns the value of its last expression."""
        try:
            if self.settings.function:
                value, kept = self._run_named()
            else:
                defined = definitions(self.cell, self.namespace)
                with contextlib.closing(EntryPoints(self.shell, self.cell, self.run, defined)) as entry_points:
                    value = self._run_definitions(defined, entry_points) if defined else self._run_statements(entry_points)
                    kept = entry_points.to_keep()
        finally:  # also after an error: where the compiler refuses a function, it raises in the user's code
            self._note_users_own()
        if self.settings.keep:
            self._bind(kept)
        return value

    def _run_named(self) -> tuple[Any, dict[int, Any]]:
        """Run a cell with `-f`; returns the value, and the compiled entry points by the id of what they compile."""
        names, notes = dict.fromkeys(self.settings.function), self.run.notes
        self.run.compiled.extend(names)
        failed, roots = dict[str, str](), dict[str, Any]()

        def look_up(statement: Any = None) -> None:
            for name in names:
                root = self.namespace.get(name.partition(".")[0])
                if statement is None and roots.get(name, roots) is root:
                    continue  # before a call, only a name that was bound again is looked up
                roots[name] = root
                failed.pop(name, None)  # only the latest object of each name counts
                try:
                    targets.add(name, find_target(name, self.namespace))
                except LookupError as error:
                    failed[name] = str(error)

        targets = NamedTargets(self.run, look_up)
        with contextlib.closing(targets), marks.around_compiled_code(targets.off, targets.on):
            look_up()
            value = cells.run_statements(self.shell, self.cell, targets, look_up)
            kept = targets.to_keep()
        framed = {e.code.uid for e in self.run.recording.events if isinstance(e, FrameEnd)}  # also below compiled functions
        codes = {n: getattr(p[-1], "__code__", None) for n, p in targets.resolved.items()}  # modules share theirs
        uncalled = {n: "called, or only during calls of what is compiled" for n in names if id(codes.get(n)) not in framed}
        refused = {n: f"compiled: {error}" for n, error in failed.items()}
        notes += [f"-f {n} was not {why}." for n, why in (uncalled | refused).items() if n not in targets.called]
        return value, kept

    def _run_statements(self, entry_points: EntryPoints) -> Any:
        self._statements = statements = CellStatements(self.shell, self.cell, self.run, entry_points)  # for its edits
        try:
            return statements()
        finally:
            self.run.compiled.extend(map(user_name, self.run.recording.called))
            self.run.notes.extend(statements.notes())
            if not self.run.compiled and not self.run.recording.has_graphs:
                why = "the cell's statements ran uncompiled, and called nothing directly that %%compile compiles"
                self.run.notes.append(f"nothing was compiled: {why}.")

    def _run_definitions(self, defined: list[Definition], entry_points: EntryPoints) -> Any:
        notes, users_own = self.run.notes, self.run.recording.users_own
        try:
            value = cells.run_statements(self.shell, self.cell, entry_points, entry_points.register)
        finally:  # those that the cell compiled itself have a note of their own
            left = [d for d in defined if d.refused and (self.cell.file, d.name) not in hook_installer.HOOKS.traced]
            values = ((d, self.namespace.get(d.name)) for d in left)  # torch.compile of a class compiles its `__call__`
            left = [d for d, v in values if not marks.is_compiled(v.__call__ if isinstance(v, type) else v)]
            notes += [f"{d.name} is not compiled by itself: it is {d.refused}." for d in left]
        if users_own:
            return value
        names, called = entry_points.uncompiled, entry_points.called
        if names:
            options = " ".join(f"-f {name}" for name in (*called, *names) if name.partition(".")[0] in self.namespace)
            calls = f"calls of {', '.join(names)} in the cell's own statements did not go to torch.compile"
            notes.append(f"{calls}: with {options}, they do.")
        elif not called and not self.run.recording.has_graphs:  # else what was called has nothing to compile, or breaks
            notes.append(why_nothing_ran(defined, self.namespace))
        return value

    def _note_users_own(self) -> None:
        """Name the functions that the user's code compiled itself, and add a note that they keep their own settings."""
        own = self.run.recording.users_own
        self.run.compiled.extend(name for name in own if self.run.compiled and name not in self.run.compiled)
        if own:
            # only functions and modules are asked for attributes
            known = {n: v for n, v in self.namespace.items() if n[0] != "_" and (type(v) is FunctionType or is_module(v))}
            compiled = {n: v for n, v in known.items() if marks.is_compiled(v) or marks.is_compiled_in_place(v)}
            bound = next((name for name, value in compiled.items() if self.run.recording.name_of(value) in own), None)
            instead = f" (with -f {bound}, those of %%compile, which can repeat its calls)" if bound else ""
            where = "whose settings hold in calls from uncompiled code"
            self.run.notes.append(f"{', '.join(own)}: compiled by torch.compile or --keep, {where}{instead}.")

    def _bind(self, kept: dict[int, Any]) -> None:
        """For `--keep`, bind compiled entry points to the names of what they compile; most modules are compiled in place."""
        from dynascope.compiler.lab.recorded_call import unwatched

        named = self.run.recording.called  # IPython has names for values, too, which begin with `_`
        for name in [n for n, v in self.namespace.items() if id(v) in kept and (n in named or not n.startswith("_"))]:
            value = self.namespace[name]
            # in place, torch compiles only the user's own modules in a module of torch's
            if is_module(value) and not (is_module(unwatched(kept[id(value)])) and compiling.is_torchs_own(value)):
                marks.compiled_call(value)(compiling.entry_point(marks.plain_call(value), self.settings))
            else:
                self.namespace[name] = unwatched(kept[id(value)])


# -- earlier runs of the cell ----------------------------------------------------------------------


#: earlier runs of one cell that are kept
KEPT = 20

history: dict[Hashable, deque[Report]] = {}


def add_to_history(cell: Hashable, report: Report) -> Report | None:
    """Remember `report` as the latest one of the cell; returns the report before it, which becomes its `previous`."""
    runs = history.setdefault(cell, deque(maxlen=1 + KEPT))
    report.previous = runs[-1] if runs else None
    runs.append(report)
    runs[0].previous = None
    return report.previous


# -- fixes -----------------------------------------------------------------------------------------


def use_raw_texts(shell: Any, report: Report, ran: str) -> None:
    """Make the fixed texts in `report` anew from what the user wrote; until now, they have comments or calls for magics.

    A cell is left out if its raw text is unknown or a change does not apply to it; the patch still shows its fixes.  `ran`: the
    file of the cell that ran; if the fixes need `dynamic=True`, this becomes an option of its magic.
    """
    for fixes in filter(None, (report.fix_set, report.conditional_fix_set)):
        with_dynamic = [ran] if fixes.settings.get("dynamic") is True else []
        files = sorted({*fixes.cells, *with_dynamic}, key=lambda file: cell_number(file) or 0)
        fixes.cells = {}
        for file in files:
            raw = raw_cell(shell, cell_number(file) or 0).rstrip("\n")  # IPython has no In[0]
            with contextlib.suppress(NotApplicable):
                text = with_edits(raw + "\n", [edit for edit in fixes.edits if edit.file == file]) if raw else ""
                if file in with_dynamic and text.startswith("%%compile"):
                    text = text.replace("\n", " --dynamic true\n", 1)
                if text.rstrip("\n") != raw:
                    fixes.cells[file] = text.rstrip("\n")
