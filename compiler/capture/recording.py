"""`observe()`: a Report of everything that the compiler does while a block runs.

Recordings can be nested and can run in several threads at once.  They survive any exception and a `torch._dynamo.reset()` in
the user's code, and leave nothing behind.
"""

from __future__ import annotations

import contextlib
import dataclasses
import platform
import sys
import threading
import time
from collections.abc import Callable
from types import MethodType, TracebackType
from typing import Any

from dynascope.compiler import __version__
from dynascope.compiler.builder.events import schema
from dynascope.compiler.builder.events.schema import RecordingFacts
from dynascope.compiler.builder.report_builder import build_report
from dynascope.compiler.capture import cache_hits, late_backwards
from dynascope.compiler.capture.torch_private import availability, caches, config, hook_installer, hooks, marks, translators
from dynascope.compiler.report import Report
from dynascope.compiler.settings import Settings
from dynascope.compiler.source import edited
from dynascope.compiler.source.code import STATEMENTS, user_name
from dynascope.compiler.source.lines import CellResolver, OldFunction
from dynascope.compiler.source.origin import in_torch

_MISSED = "while another thread repeated calls (to time or compare them), nothing was recorded: this report may lack compiles"

Progress = Callable[[dict[str, Any]], None]


class Recording:
    """Records what the compiler does in a `with observe() as recording:` block; `recording.report` is the Report.

    Until the block has ended, `report` is the report so far.  `compiled` (the names that the report shows as compiled) and
    `notes` (sentences for the user) may be extended while the block runs; if no names are given, the report names the compiled
    functions that were called, in order of their first call.  `cells` returns the execution count of a notebook cell, given its
    file name; `on_progress` is called with {"frames", "graphs", "breaks", "now", "seconds"} while the compiler works.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        compiled: list[str] | None = None,
        cells: CellResolver | None = None,
        on_progress: Progress | None = None,
    ) -> None:
        self.settings = settings
        self.compiled = list(compiled or ())
        self.notes: list[str] = []
        self.events: list[schema.Event] = []
        #: names of compiled functions that were called, in order of the first call
        self.called: list[str] = []
        #: those in `called` that the user's code compiled: `compiles` did not announce them
        self.users_own: list[str] = []
        self._targets: dict[int, str | None] = {}
        self.hooks: dict[str, bool | str] = {}
        self._keeps_bytecode = int(settings is not None and settings.bytecode)
        self._cells = cells or (lambda file: None)
        self._on_progress = on_progress
        self._progress: dict[str, Any] = {"frames": 0, "graphs": 0, "breaks": 0, "now": "", "seconds": 0.0}
        self._started = 0.0
        self._thread: int | None = None
        self._report: Report | None = None
        self._ended = False
        self._sizes_before: schema.Sizes = {}
        #: functions whose lines their files no longer have, once the recording has ended
        self._old_functions: list[OldFunction] = []
        self._times_forgotten = 0
        self._at_end = contextlib.ExitStack()

    # -- beginning and end ------------------------------------------------------------------------------------

    def __enter__(self) -> Recording:
        self._thread = threading.get_ident()
        self._started = time.perf_counter()
        edited.note_loaded()
        edited.refresh()
        self.hooks = hook_installer.HOOKS.attach(self._event, hooks.POINTS)
        hook_installer.HOOKS.bytecode += self._keeps_bytecode
        try:
            self._at_end.enter_context(caches.fx_restored())
            self._sizes_before, self._times_forgotten = caches.known_sizes(), caches.times_forgotten
        except BaseException:  # an interrupt
            hook_installer.HOOKS.bytecode -= self._keeps_bytecode
            hook_installer.HOOKS.detach(self._event)
            self._at_end.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            self.events.extend(self._cached())
            hook_installer.HOOKS.safely(lambda: self._old_functions.extend(hook_installer.HOOKS.old_functions()))
        finally:  # an interrupt may come at any moment; the hooks are removed in any case
            hook_installer.HOOKS.bytecode -= self._keeps_bytecode
            hook_installer.HOOKS.detach(self._event)
            self._at_end.close()
        self._ended = True
        self._report = self._build_report(error)
        late_backwards.complete(self._report)
        late_backwards.remember(self._report)
        self.events = []  # frees their large texts

    def _cached(self) -> list[schema.Event]:
        """Events for compiled functions that were called but not compiled in this recording."""
        compiled = {e.code.uid for e in self.events if isinstance(e, schema.FrameEnd)}
        called = (e.code for e in self.events if isinstance(e, schema.CompiledCall))
        entered = {
            code.uid: hook_installer.HOOKS.entered[code.uid]
            for code in called
            # leave out functions of torch that torch compiles, but keep `inner`, its wrapper around some modules and functions
            if code.uid is not None and (not in_torch(code.file) or code.name == "inner")
        }
        hits: list[schema.Event] = []
        hook_installer.HOOKS.safely(lambda: hits.extend(cache_hits.cache_hits(entered, compiled)))
        return hits

    @property
    def report(self) -> Report:
        return self._report if self._report is not None else self.snapshot()

    def snapshot(self) -> Report:
        """The Report of what has been recorded so far."""
        return self._build_report(None)

    @property
    def has_graphs(self) -> bool:
        """Whether a graph has been captured so far."""
        return any(isinstance(event, schema.Trace) and "dynamo_output_graph" in event.metadata for event in self.events)

    # -- events ----------------------------------------------------------------------------------------

    def _event(self, event: schema.Event) -> None:
        if isinstance(event, schema.Paused):
            if event.thread != self._thread and _MISSED not in self.notes:
                self.notes.append(_MISSED)
            return
        if isinstance(event, schema.CompiledCall):
            self._note_eager()
            event = self._named(event)
        self.events.append(event)
        if self._on_progress is not None and self._advance(event):
            self._progress["seconds"] = time.perf_counter() - self._started
            hook_installer.HOOKS.safely(self._on_progress, dict(self._progress))

    def compiles(self, target: Any, name: str | None = None) -> None:
        """Announce that dynascope compiles `target`, with the name to show for it.

        Functions that are not announced were compiled by the user's code.  `target` must live as long as the recording runs.
        """
        target = marks.undecorated(marks.inner_function(target))
        is_call = isinstance(target, MethodType) and target.__name__ == "__call__"  # of an object that is no module
        key = id(target.__self__ if is_call else getattr(target, "__func__", target))
        self._targets[key] = name or self._targets.get(key)

    def _named(self, event: schema.CompiledCall) -> schema.CompiledCall:
        """The event with the name to show; adds this name to `called`, and to `users_own` if `compiles` did not announce it."""
        name, code = self._targets.get(event.target) or event.name, event.code
        # leave out functions of torch that torch compiles, but not its wrappers and modules, which call the user's code
        if in_torch(code.file) and code.name not in ("inner", "forward"):
            return event
        announced = event.target in self._targets or code.name == STATEMENTS
        for names in (self.called,) if announced else (self.called, self.users_own):
            if name not in names:
                names.append(name)
        return dataclasses.replace(event, name=name)  # a copy: other recordings may have another name for the function

    def _advance(self, event: schema.Event) -> bool:
        """Update the progress with an event; returns whether it changed."""
        progress = self._progress
        if isinstance(event, schema.Trace) and "dynamo_start" in event.metadata:
            stack = event.metadata["dynamo_start"].get("stack")
            progress["now"] = user_name(str(stack[-1]["name"])) if stack else ""
        elif isinstance(event, schema.Trace) and "dynamo_output_graph" in event.metadata:
            progress["graphs"] += 1
        elif isinstance(event, schema.GraphEnd) and event.graph_break:
            progress["breaks"] += 1
        elif isinstance(event, schema.FrameEnd) and event.compile_id is not None:
            progress["frames"] += 1
        else:
            return False
        return True

    def _note_eager(self) -> None:
        """If torch.compile compiles nothing at the moment, note why."""
        why = config.compiles_nothing()
        if why is not None and (note := f"the code ran eagerly, because {why}") not in self.notes:
            self.notes.append(note)

    def _build_report(self, error: BaseException | None) -> Report:
        if "torch" in sys.modules and not any(isinstance(e, schema.FrameEnd) for e in self.events):
            self._note_eager()
        # if Dynamo was made to forget the known sizes meanwhile, the run was traced as if there had been no earlier run
        sizes_before = self._sizes_before if caches.times_forgotten == self._times_forgotten else {}
        facts = RecordingFacts(
            strings=caches.interned_strings(),
            cell_of=self._cells,
            owner_thread=self._thread,
            settings=self.settings,
            no_end_words="the recording ended before this compile did" if self._ended else "still compiling",
            compiled=self.compiled or self.called,
            notes=self.notes,
            hooks={**self.hooks, **availability.missing},
            versions=versions(),
            sizes_before=sizes_before,
            sizes_after=caches.known_sizes(),
            old_functions=list(self._old_functions),
            error=error,
            failed_operation=translators.failed_operation(error.__traceback__) if isinstance(error, Exception) else "",
        )
        return build_report(list(self.events), facts)


observe = Recording


def versions() -> dict[str, str | None]:
    """The versions of dynascope, torch (None if it is not loaded) and Python."""
    torch = sys.modules.get("torch")
    return {
        "dynascope": __version__,
        "torch": str(torch.__version__) if torch else None,
        "python": platform.python_version(),
    }
