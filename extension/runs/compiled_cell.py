"""Runs a cell with the right parts of it compiled; afterwards, only `--keep` leaves compiled functions bound to names.

What `-f` names is compiled wherever the cell calls it (`selection.named`).  Otherwise the functions and modules that the cell
defines are entry points (`selection.entry_points`).  A cell that defines none has its statements compiled
(`selection.statements`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from IPython.core.error import UsageError

from dynascope.cell import source as cells
from dynascope.cell.ast_tools import own_statements
from dynascope.cell.source import Cell
from dynascope.compiler.capture.torch_private import marks
from dynascope.compiler.driver.pipeline import Run
from dynascope.compiler.lab.recorded_call import unwatched
from dynascope.compiler.source.code import STATEMENTS, user_name
from dynascope.selection.definitions import Definition, definitions, ran_eagerly, why_nothing_ran
from dynascope.selection.entry_points import EntryPoints
from dynascope.selection.named import NamedTargets, check_target, resolve
from dynascope.selection.statements import CellStatements


class CompiledCell:
    """One cell to be run under `%%compile`, inside the `Run` that records it."""

    def __init__(self, shell: Any, cell: Cell, run: Run, *, functions: list[str], keep: bool) -> None:
        self.shell, self.cell, self.run = shell, cell, run
        self.namespace: dict[str, Any] = shell.user_ns
        #: the names that `-f` gives
        self.functions = functions
        self.keep = keep

    def __call__(self) -> Any:
        """Run the cell; returns the value of its last expression."""
        try:
            return self._run()
        finally:  # also after an error: where the compiler refuses a function, it raises in the user's code
            self._note_users_own()

    def _run(self) -> Any:
        if self.functions:
            return self._run_named()
        defined = definitions(self.cell, self.namespace)
        if defined:
            return self._run_entry_points(defined)
        return self._run_statements()

    def _make_entry(self, target: Any, name: str | None = None) -> Any:
        if getattr(target, "__name__", "") != STATEMENTS:
            return self.run.entry_point(target, name=name)
        self.run.retrace(target)  # so that nothing of this function stays in Dynamo's tables
        return self.run.entry_point(target, self.namespace)

    def _note_users_own(self) -> None:
        """Name the functions that the user's code compiled itself, and add a note that they keep their own settings."""
        recording = self.run.recording
        own = recording.users_own
        if not own:
            return
        self.run.compiled.extend(name for name in own if self.run.compiled and name not in self.run.compiled)
        bound = next((name for name in own if marks.is_compiled(self.namespace.get(name))), None)  # -f reaches it by this name
        self.run.notes.append(
            f"{', '.join(own)}: your own torch.compile was left unchanged; the options of %%compile "
            f"do not apply to {'it' if len(own) == 1 else 'them'}{f' (-f {bound} compiles it with them)' if bound else ''}."
        )

    # -- named targets ---------------------------------------------------------------------------------

    def _run_named(self) -> Any:
        self.run.compiled.extend(self.functions)
        targets = NamedTargets(self._make_entry, self.run.retrace)

        def look_up(statement: Any = None) -> None:
            for name in self.functions:
                with contextlib.suppress(LookupError, UsageError):
                    value = resolve(name, self.namespace)
                    check_target(name, value)
                    targets.add(name, value)

        with contextlib.ExitStack() as stack:
            stack.callback(targets.restore)
            stack.enter_context(marks.around_compiled_code(targets.off, targets.on))
            look_up()
            value = cells.run_statements(self.shell, self.cell, after=look_up)
            self._note_uncalled(targets)
            self._bind(targets.entry)
        return value

    def _note_uncalled(self, targets: NamedTargets) -> None:
        note = "was not called in this run: call it in the cell to compile it."
        if self.run.recording.called:  # which may have called it: that is not seen
            note = "was not called from uncompiled code in this run: call it in the cell to compile it by itself."
        for name in self.functions:
            if name not in targets.resolved:
                try:
                    check_target(name, resolve(name, self.namespace))
                except (LookupError, UsageError) as error:
                    reason = str(error).removeprefix(f"cannot compile {name}: ")
                    self.run.notes.append(f"{name} was not compiled: {reason}.")
            elif name not in targets.called:
                self.run.notes.append(f"{name} {note}")
            elif not self.run.recording.has_graphs:
                inner = f"{getattr(targets.resolved[name], '__qualname__', name)}.<locals>."
                made = [
                    n for n, v in self.namespace.items() if getattr(v, "__qualname__", "").startswith(inner) and n[0] != "_"
                ]
                self.run.notes += [f"{n}, which {name} made, was not compiled: use -f {n}." for n in made]

    # -- statements ------------------------------------------------------------------------------------

    def _run_statements(self) -> Any:
        entry_points = EntryPoints(self.shell, self.cell, (), self._make_entry, self.run.retrace, others=True)
        statements = CellStatements(self.shell, self.cell, self._make_entry, entry_points)
        with contextlib.ExitStack() as stack:
            stack.callback(entry_points.close)
            try:
                value = statements()
            finally:
                self.run.compiled.extend(map(user_name, self.run.recording.called))
                self.run.notes.extend(statements.notes())
                if not self.run.compiled:
                    self.run.notes.append("nothing was compiled: these statements call no module and none of your functions.")
            self._bind_kept(entry_points)
        return value

    # -- entry points ----------------------------------------------------------------------------------

    def _run_entry_points(self, defined: list[Definition]) -> Any:
        entry_points = EntryPoints(self.shell, self.cell, defined, self._make_entry, self.run.retrace)
        name_of = {id(d.node): d.name for d in defined if d.refused is None}
        before = {name: self.namespace.get(name) for name in name_of.values()}

        def register(statement: Any) -> None:
            for name in [name_of[id(s)] for s in own_statements([statement]) if id(s) in name_of]:
                if self.namespace.get(name) is not before[name]:  # else it is in an `if` that did not run
                    entry_points.register(self.namespace.get(name))

        with contextlib.ExitStack() as stack:
            stack.callback(entry_points.close)
            try:
                value = cells.run_statements(self.shell, self.cell, entry_points.compile, register)
            finally:
                self._note_refused(defined)
            if not self.run.recording.users_own and not self.run.recording.has_graphs:
                self.run.notes.extend(self._why_nothing(defined, entry_points))
            self._bind_kept(entry_points)
        return value

    def _why_nothing(self, defined: list[Definition], entry_points: EntryPoints) -> list[str]:
        if entry_points.called and not entry_points.uncompiled:
            return []  # what was called has nothing to compile, or breaks that the report shows
        names = list(entry_points.uncompiled)
        note = why_nothing_ran(self.cell, defined, self.namespace, names) if not entry_points.called else ran_eagerly(names)
        return [note] if note is not None else []

    def _note_refused(self, defined: list[Definition]) -> None:
        """Add notes on definitions that are no entry points; those that the cell compiled itself have a note of their own."""
        for d in defined:
            if d.refused is not None and d.name not in self.run.recording.users_own:
                self.run.notes.append(f"{d.name} was left unchanged: it is {d.refused}.")

    # -- --keep ----------------------------------------------------------------------------------------

    def _bind_kept(self, entry_points: EntryPoints) -> None:
        to_keep = entry_points.to_keep()
        self._bind(lambda plain: to_keep.get(id(plain)))

    def _bind(self, entry_of: Callable[[Any], Any]) -> None:
        """With `--keep`, bind the compiled entry points to the names of what they compile; a module is compiled in place."""
        import torch

        if not self.keep:
            return
        for name, value in list(self.namespace.items()):
            entry = None if name.startswith("_") else entry_of(value)
            if entry is None:
                continue
            entry = unwatched(entry)
            if isinstance(value, torch.nn.Module):
                marks.compiled_call(value)(entry)
            else:
                self.namespace[name] = entry
