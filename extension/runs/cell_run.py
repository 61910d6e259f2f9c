"""Running one cell: read it, decide what is compiled, record, show, and give back its value or its error.

The order of things is the promise.  Everything that can be wrong with the input is found before anything is
displayed or run.  Then the displays, the run, and, whatever happened, everything restored, the report filled in,
bound and saved.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import keyword
import sys
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

from IPython.core.error import UsageError

from dynascope.api import cell_number, remember
from dynascope.cell import source as cells
from dynascope.cell import tracebacks
from dynascope.cell.interrupts import Interrupts, interruptible
from dynascope.cell.source import Cell
from dynascope.compiler.accuracy import check
from dynascope.compiler.replay.replay import unwatched
from dynascope.compiler.report import Report, expect
from dynascope.compiler.settings import Settings
from dynascope.compiler.source.code import STATEMENTS as CELL
from dynascope.compiler.torch_private import marks, region_flag
from dynascope.regions.active import Controls
from dynascope.runs import history, rerun, saving
from dynascope.runs.display import Display, cell_id
from dynascope.runs.inputs import check_inputs, tried_inputs
from dynascope.selection import statements
from dynascope.selection.definitions import Definition, bound_names, definitions, why_nothing_ran
from dynascope.selection.entry_points import Entries
from dynascope.selection.named import Targets, check_target, plain_in_compiled_code, resolve

STATEMENTS = "the cell's statements"


@dataclass
class Run:
    """One run of one cell: `%%compile` with its settings, or `%%observe`."""

    shell: Any
    cell: Cell
    settings: Settings
    #: False: run the code as it stands (`%%observe`)
    compiles: bool = True
    #: `%%observe --fresh`
    fresh: bool = True
    #: the magic's line, as it could be typed
    command: str = ""
    notes: list[str] = field(default_factory=list)
    #: `--profile`: what was measured
    measured: Any = None
    #: `--inputs`: what each of them gave
    tried: Any = None
    #: `--check`: what comparing gave
    checked: Any = None
    #: `--expect`, read
    expected: list[expect.Expectation] = field(default_factory=list)
    #: `--region`, found
    controls: Controls | None = None
    #: a rerun's: the display of the run that it repeats, and what tells its cell from others
    display: Display | None = None
    key: Hashable = None
    #: what is in force where the magic's line says nothing
    defaults: Settings = field(default_factory=Settings)
    #: the whole cell as the user wrote it
    raw: str = ""
    #: what the run gave, once it is over
    report: Report | None = None

    def __call__(self) -> Any:
        """Run; returns the value of the cell's last expression, raises the cell's own error."""
        self._check()
        if not cells.compiles(self.shell, self.cell):
            return self._run_plainly()
        from dynascope.compiler.recording.recording import observe

        display = self.display or Display(self.shell, self.settings.view)
        display.start()
        if display.view is not None and self.compiles:  # before any content: details have switches
            display.view.can_run_again = rerun.can_run_again(self.shell)
        recording = observe(
            self.settings if self.compiles else None,
            cells=cell_number,
            on_progress=display.progress,
        )
        display.so_far = recording.snapshot
        try:
            with Interrupts(), recording:
                return self._run(recording)
        except BaseException as error:
            tracebacks.show_trimmed(self.shell, error)
            raise
        finally:
            recording.notes.extend(self.notes)
            report = recording.report
            if self.controls is not None:
                self.controls.tell(report, self.settings.fullgraph)
            if self.tried is not None:
                from dynascope.compiler.profile.inputs import told

                report.inputs = told(self.tried, report)
            if self.measured is not None:
                from dynascope.compiler.profile.measure import tell

                report.profile = tell(self.measured, report)
            if self.checked is not None:
                report.check = self.checked.to_dict()
                self.notes.append(self.checked.words())
            report.notes = [*dict.fromkeys([*self.notes, *report.notes])]
            self._hand_over(report, display)
            self._save(report)
            if self.expected and not isinstance(sys.exc_info()[1], KeyboardInterrupt):
                self._hold_to(report)

    # -- before ---------------------------------------------------------------------------------------

    def _check(self) -> None:
        """Find what is wrong with the input; raises UsageError, in one line."""
        settings = self.settings
        if settings.output is not None and (not settings.output.isidentifier() or keyword.iskeyword(settings.output)):
            raise UsageError(f"--output {settings.output}: not a name")
        if settings.save is not None:
            reason = saving.why_not(settings.save)
            if reason is not None:
                raise UsageError(f"--save {settings.save}: {reason}")
        if not self.compiles:
            return
        if settings.expect is not None:
            try:
                self.expected = expect.parse(settings.expect)
            except ValueError as error:
                raise UsageError(f"--expect: {error}") from None
        from dynascope.compiler.driver.explain import check_settings, settings_notes

        try:
            check_settings(settings)
        except ValueError as error:
            raise UsageError(str(error)) from None
        self.notes.extend(settings_notes(settings))
        if settings.region:
            self.controls = Controls(self.shell, self.cell, settings.region)
            self.cell = dataclasses.replace(self.cell, controls=self.controls)
        bound = bound_names(self.cell)
        if settings.inputs is not None:
            takes = bool(settings.function or definitions(self.cell, self.shell.user_ns))
            check_inputs(settings.inputs, self.shell.user_ns, bound, takes_inputs=takes)
        for name in settings.function:
            self._check_function(name, bound)

    def _check_function(self, name: str, bound: set[str]) -> None:
        if not all(part.isidentifier() or part.isdigit() for part in name.split(".")):
            raise UsageError(f"--function {name}: not a name; write it like f, model or model.encoder.forward")
        if name.split(".")[0] in bound:
            return  # the cell itself may give it its meaning
        try:
            value = resolve(name, self.shell.user_ns)
        except LookupError as error:
            raise UsageError(f"cannot compile {name}: {error}") from None
        check_target(name, value)

    def _run_plainly(self) -> Any:
        """Run a cell that Python refuses (`return` outside a function): it fails where, and as, the plain cell does."""
        try:
            return cells.run_statements(self.shell, self.cell)
        except BaseException as error:
            tracebacks.show_trimmed(self.shell, error)
            raise

    # -- running --------------------------------------------------------------------------------------

    def _run(self, recording: Any) -> Any:
        from dynascope.compiler.driver.explain import entry, environment
        from dynascope.compiler.driver.retrace import fresh

        if not self.compiles:
            with fresh() if self.fresh else contextlib.nullcontext():
                return cells.run_statements(self.shell, self.cell)

        def enter(target: Any) -> Any:
            if getattr(target, "__name__", "") == CELL:
                freshen(target)  # so that nothing of it stays behind
            made = entry(target, self.settings)
            if self.controls is not None and self.controls.places:
                made = self._inheriting(made, entry(target, self.settings.replace(error_on_graph_break=None)))
            return made

        regions = self.controls(recording.events) if self.controls is not None else contextlib.nullcontext()
        with environment(self.settings), region_flag.flag_kept(), regions, fresh() as freshen:
            watchers: list[Any] = []
            if self.settings.check:
                watchers.append(check.LastCall())
            if self.settings.profile is not None:
                watchers.append(self._last_call())
            namespace = self.shell.user_ns

            def watched(target: Any) -> Any:
                is_cell = getattr(target, "__name__", "") == CELL
                made = enter(target)
                for watcher in watchers:
                    made = watcher.watch(target, made, namespace if is_cell else None)
                return made

            value = self._run_rule(recording, watched if watchers else enter, freshen)
            if self.settings.check:
                self.checked = interruptible(watchers[0].compare)
            if self.settings.profile is not None:
                self.measured = interruptible(watchers[-1].measure, self.settings.profile)
                if self.settings.inputs is not None:
                    name, calls = self.settings.inputs, self.settings.profile
                    self.tried = tried_inputs(name, namespace, watchers[-1], calls, self.notes)
            return value

    def _inheriting(self, made: Any, plain: Any) -> Any:
        """An entry point that, called in a region of the cell's own statements, leaves the region's flag in force."""
        if made is plain or self.settings.error_on_graph_break is None or self.settings.fullgraph:
            return made
        assert self.controls is not None
        eager = self.controls.eager

        @functools.wraps(made)
        def call(*args: Any, **kwargs: Any) -> Any:
            return (plain if eager.depth else made)(*args, **kwargs)

        return call

    def _last_call(self) -> Any:
        """Keeps the last call for `--profile`, and says beforehand what cannot be undone."""
        from IPython.utils.capture import capture_output

        from dynascope.compiler.profile.measure import LastCall

        def warn(sentence: str) -> None:
            print(f"--profile: {sentence}", file=sys.stderr)

        return LastCall(warn, lambda: capture_output(stdout=False, stderr=False))

    def _run_rule(self, recording: Any, enter: Callable[[Any], Any], freshen: Callable[[Any], None]) -> Any:
        """Run the cell by the rule that fits it: `-f`, definitions, or statements."""
        if self.settings.function:
            return self._run_targets(recording, enter, freshen)
        found = definitions(self.cell, self.shell.user_ns)
        if found:
            return self._run_entries(recording, found, enter, freshen)
        recording.compiled.append(STATEMENTS)
        self.notes.extend(statements.notes(self.cell))
        return statements.run(self.shell, self.cell, enter)

    def _run_targets(self, recording: Any, enter: Callable[[Any], Any], freshen: Callable[[Any], None]) -> Any:
        """Rule 1."""
        names = self.settings.function
        recording.compiled.extend(names)
        targets = Targets(enter, freshen)

        def look(statement: Any = None) -> None:
            for name in names:
                with contextlib.suppress(LookupError, UsageError):
                    value = resolve(name, self.shell.user_ns)
                    check_target(name, value)
                    targets.add(name, value)

        with contextlib.ExitStack() as stack:
            stack.callback(targets.restore)
            stack.enter_context(plain_in_compiled_code(targets))
            look()
            value = cells.run_statements(self.shell, self.cell, after=look)
            self._explain_uncalled(names, targets)
            if self.settings.keep:
                self._keep(targets.entry)
        return value

    def _explain_uncalled(self, names: list[str], targets: Targets) -> None:
        for name in names:
            if name not in targets.found:
                try:
                    check_target(name, resolve(name, self.shell.user_ns))
                except (LookupError, UsageError) as error:
                    self.notes.append(f"{name} was not compiled: {str(error).removeprefix(f'cannot compile {name}: ')}.")
            elif name not in targets.called:
                self.notes.append(f"{name} was not called in this run: call it in the cell to compile it.")

    def _run_entries(
        self, recording: Any, found: list[Definition], enter: Callable[[Any], Any], freshen: Callable[[Any], None]
    ) -> Any:
        """Rule 2."""
        names = list(dict.fromkeys(d.name for d in found if d.refused is None))
        recording.compiled.extend(names)
        for definition in found:
            if definition.refused is not None:
                self.notes.append(f"{definition.name} ran as it stands: it is {definition.refused}.")
        entries = Entries(found, enter, freshen)
        defined = {id(d.node): d.name for d in found}

        def make(tree: Any, mode: str) -> CodeType:
            code: CodeType = entries.bind(cells.compile_tree(self.shell, self.cell, entries.rewrite(tree), mode))
            return code

        def learn(statement: Any) -> None:
            if id(statement) in defined:
                entries.learn(self.shell.user_ns.get(defined[id(statement)]))

        with contextlib.ExitStack() as stack:
            stack.callback(entries.close)
            value = cells.run_statements(self.shell, self.cell, make, learn)
            if not entries.called:
                self.notes.extend(why_nothing_ran(self.cell, found, self.shell.user_ns))
            if self.settings.keep:
                kept = entries.kept()
                self._keep(lambda plain: kept.get(id(plain)))
        if entries.called:
            recording.compiled[:] = [n for n in names if n in entries.called]
        return value

    def _keep(self, entry_of: Callable[[Any], Any]) -> None:
        """`--keep`: bind the compiled entry points to the names; a module is compiled in place."""
        import torch

        for name, value in list(self.shell.user_ns.items()):
            entry = None if name.startswith("_") else entry_of(value)
            if entry is None:
                continue
            entry = unwatched(entry)
            if isinstance(value, torch.nn.Module):
                marks.compiled_call(value)(entry)
            else:
                self.shell.user_ns[name] = entry

    # -- after ----------------------------------------------------------------------------------------

    def _hold_to(self, report: Report) -> None:
        """`--expect`; raises ExpectationFailed, whatever else the cell raised."""
        try:
            expect.check(report, self.expected)
        except expect.ExpectationFailed as error:
            tracebacks.show_message_only(self.shell, error)
            raise

    def _hand_over(self, report: Report, display: Display) -> None:
        remember(report)
        self.report = report
        if self.key is None:
            self.key = history.key(cell_id(self.shell), report, self.cell.text)
        before = history.follow(self.key, report)
        if self.settings.output is not None:
            self.shell.user_ns[self.settings.output] = report
        if display.view is not None:
            display.view.command = self.command
            display.view.diff = report.diff(before).to_dict() if before is not None else None
            if self.compiles:
                rerun.attach(self, display)
        display.finish(report)

    def _save(self, report: Report) -> None:
        """`--save`."""
        wrong = saving.save(report, self.settings.save) if self.settings.save is not None else None
        if wrong is not None:
            print(f"--save {self.settings.save}: {wrong}", file=sys.stderr)
