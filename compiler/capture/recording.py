"""`observe()`: a Report of everything that the compiler does while a block runs.

Recordings can be nested and can run in several threads at once.  They survive any exception and a `torch._dynamo.reset()` in
the user's code, and leave nothing behind.

Dynamo does not report cache hits, so a recording notes which compiled functions and graphs were called.  At its end, it looks
up the code that Dynamo holds and that calls these.  This code shows how many graphs and which resume functions there are, but
not the reasons for graph breaks.
"""

from __future__ import annotations

import contextlib
import dataclasses
import platform
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import MethodType, TracebackType
from typing import Any

from dynascope.compiler import __version__
from dynascope.compiler.builder.events import CacheHit, CompiledCall, Event, FrameEnd, Paused, RecordingFacts, Trace
from dynascope.compiler.builder.report_builder import build_report
from dynascope.compiler.capture import torch_private
from dynascope.compiler.capture.torch_private import caches, config, hook_installer, hooks, marks, translators
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
    file name; `on_progress` is called with {"frames", "graphs", "now", "stage", "seconds"} while the compiler works.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        compiled: list[str] | None = None,
        cells: CellResolver | None = None,
        on_progress: Progress | None = None,
    ) -> None:
        self.settings = settings
        self.compiled = compiled if compiled is not None else []
        self.notes: list[str] = []
        self.events: list[Event] = []
        #: names of compiled functions that were called, in order of the first call
        self.called: list[str] = []
        #: those in `called` that the user's code compiled: `compiles` did not announce them
        self.users_own: list[str] = []
        self._targets: dict[int, str | None] = {}
        #: id of a compiled function that was called -> the name to show
        self.called_as: dict[int, str] = {}
        self.hooks: dict[str, bool | str] = {}
        self._cells = cells or (lambda file: None)
        self._on_progress = on_progress
        self._progress: dict[str, Any] = {"frames": 0, "graphs": 0, "now": "", "stage": "", "seconds": 0.0}
        self._started = 0.0
        self._thread: int | None = None
        self._report: Report | None = None
        self._compiles_before: dict[Any, int] = {}
        #: functions whose lines their files no longer have, once the recording has ended
        self._old_functions: list[OldFunction] = []
        self._call_counts: dict[int, int] = {}
        #: (file, name) of the functions that Dynamo traced, once the recording has ended
        self.traced: set[tuple[str, str]] = set()
        self._at_end = contextlib.ExitStack()

    # -- beginning and end ------------------------------------------------------------------------------------

    def __enter__(self) -> Recording:
        self._thread = threading.get_ident()
        self._started = time.perf_counter()
        edited.note_loaded()
        edited.refresh()
        with contextlib.ExitStack() as at_end:  # an interrupt may come at any moment; the hooks are removed in any case
            at_end.callback(hook_installer.HOOKS.detach, self._event)
            keeps_bytecode = self.settings is not None and self.settings.bytecode
            self.hooks = hook_installer.HOOKS.attach(self._event, hooks.POINTS, keeps_bytecode=keeps_bytecode)
            at_end.enter_context(caches.fx_restored())
            self._compiles_before = dict(caches.compile_counts())
            self._at_end = at_end.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with self._at_end:
            hook_installer.HOOKS.safely(lambda: self.events.extend(list(self._cached())))
            hook_installer.HOOKS.safely(lambda: self._old_functions.extend(hook_installer.HOOKS.old_functions()))
            self._call_counts = dict(hook_installer.HOOKS.calls)
            self.traced = {function for function, time in hook_installer.HOOKS.traced.items() if time >= self._started}
        self._report = self._build_report(error, has_ended=True)
        self.events = []  # frees their large texts

    def _cached(self) -> Iterator[CacheHit]:
        """Events for the versions that ran as they had been compiled before this recording: those that called their graphs.

        What has no graphs is known to have run where a resume function of it ran, or as the last version of a called function.
        A called function that Dynamo knows, but of which no version ran, has an event, too.
        """
        ended = [e for e in self.events if isinstance(e, FrameEnd)]
        compiled, tried = {e.compile_id for e in ended}, {e.code.uid for e in ended}

        def is_new(compile_id: str) -> bool:
            """Whether it was compiled in this recording, which does not record what a repeated call compiles."""
            frame, version = compile_id.split("/")[-2:]
            return compile_id in compiled or int(version) >= self._compiles_before.get(int(frame), 0)

        # leave out functions of torch that torch compiles, but keep its wrappers (of modules, functions and optimizers' steps)
        called = [e.code for e in self.events if isinstance(e, CompiledCall)]
        have_run = {c.uid for c in called if c.uid is not None and (not in_torch(c.file) or c.name in ("inner", "wrapper"))}
        codes = {uid: hook_installer.HOOKS.entered[uid][0] for c in called if (uid := c.uid) in have_run}
        codes |= {id(code): code for code in caches.known_codes()}
        ran = {function for function, time in hook_installer.HOOKS.ran.items() if time >= self._started}
        known = {uid: caches.compiled_versions(code) for uid, code in codes.items()}
        continued = {resume: uid for uid, versions in known.items() for version in versions for resume in version.resumes}
        hits: list[CacheHit] = []
        for uid, code in reversed(codes.items()):  # resume functions come before what they continue
            latest = {resume: version.compile_id for version in reversed(known[uid]) for resume in version.resumes}
            led_on = {compile_id for resume, compile_id in latest.items() if resume in have_run}
            versions = [v for v in known[uid] if v.compile_id in led_on or not ran.isdisjoint(v.graphs)]
            if not versions and uid in have_run:
                versions = [v for v in known[uid][:1] if not v.graphs]
            of, is_full = hook_installer.code_info(code), len(known[uid]) >= caches.recompile_limit() if known[uid] else None
            if versions:
                have_run.add(uid)
            elif uid in have_run - tried and caches.is_known(code) and not (known[uid] and in_torch(code.co_filename)):
                hits.append(CacheHit(of, is_full=is_full))
            old = [v for v in reversed(versions) if not is_new(v.compile_id)]
            hits += [CacheHit(of, continued.get(uid), len(v.graphs), is_full, compile_id=v.compile_id) for v in old]
        yield from reversed(hits)

    @property
    def report(self) -> Report:
        return self._report if self._report is not None else self.snapshot()

    def snapshot(self) -> Report:
        """The Report of what has been recorded so far."""
        return self._build_report(None, has_ended=False)

    @property
    def has_graphs(self) -> bool:
        """Whether a graph has been captured so far."""
        return any(isinstance(event, Trace) and "dynamo_output_graph" in event.metadata for event in self.events)

    # -- events ----------------------------------------------------------------------------------------

    def _event(self, event: Event) -> None:
        if isinstance(event, Paused):
            if event.thread != self._thread and _MISSED not in self.notes:
                self.notes.append(_MISSED)
            return
        if isinstance(event, CompiledCall):
            known = hook_installer.HOOKS.entered.get(event.code.uid or 0)
            self._note_eager(has_compiled=known is not None and bool(caches.compiled_versions(known[0])))
            event = self._named(event)
        self.events.append(event)
        if self._on_progress is not None and self._advance(event):
            self.show_progress()

    def show_progress(self, stage: str = "") -> None:
        """Call `on_progress`; `stage`: a sentence on what is done instead of compiling, with what the run has compiled."""
        if self._on_progress is not None:
            self._progress |= {"seconds": time.perf_counter() - self._started, "stage": stage}
            hook_installer.HOOKS.safely(self._on_progress, dict(self._progress))

    def compiles(self, target: Any, name: str | None = None) -> None:
        """Announce that dynascope compiles `target`, with the name to show for it.

        Functions that are not announced were compiled by the user's code.  `target` must live as long as the recording runs.
        """
        key = _target_id(target)
        self._targets[key] = name or self._targets.get(key)

    def name_of(self, target: Any) -> str:
        """The name that the report has for a target; "" if it was not called."""
        return self.called_as.get(_target_id(target), "")

    def _named(self, event: CompiledCall) -> CompiledCall:
        """The event with the name to show; adds this name to `called`, and to `users_own` if `compiles` did not announce it."""
        name, code = self._targets.get(event.target) or event.name, event.code
        # leave out functions of torch that torch compiles, but not its wrappers (an optimizer's step has one) and modules
        if in_torch(code.file) and code.name not in ("inner", "wrapper", "forward"):
            return event
        announced = event.target in self._targets or code.name == STATEMENTS
        self.called_as[event.target] = user_name(name)
        for names in (self.called,) if announced else (self.called, self.users_own):
            if name not in names:
                names.append(name)
        return dataclasses.replace(event, name=name)  # a copy: other recordings may have another name for the function

    def _advance(self, event: Event) -> bool:
        """Update the progress with an event; returns whether it changed."""
        progress, before = self._progress, dict(self._progress)
        if isinstance(event, Trace) and "dynamo_start" in event.metadata:
            stack = event.metadata["dynamo_start"].get("stack")
            progress["now"] = user_name(str(stack[-1]["name"])) if stack else ""
        elif isinstance(event, Trace) and "dynamo_output_graph" in event.metadata:
            progress["graphs"] += 1
        elif isinstance(event, FrameEnd) and event.compile_id is not None:
            progress["frames"] += 1
        return progress != before

    def _note_eager(self, *, has_compiled: bool) -> None:
        """If torch.compile compiles nothing at the moment, note why."""
        why = config.compiles_nothing(has_compiled=has_compiled)
        if why is not None and (note := f"calls ran eagerly, because {why}") not in self.notes:
            self.notes.append(note)

    def _build_report(self, error: BaseException | None, *, has_ended: bool) -> Report:
        if "torch" in sys.modules and not any(isinstance(e, FrameEnd) for e in self.events):
            self._note_eager(has_compiled=any(isinstance(e, CacheHit) and e.compile_id for e in self.events))
        # Dynamo has a frame of each function that it compiles, but of no module of torch's own that is compiled in place
        framed = {e.code.uid for e in self.events if isinstance(e, FrameEnd | CacheHit)}
        calls = [e for e in self.events if isinstance(e, CompiledCall)]
        own = [e for e in calls if e.code.name == "forward" and in_torch(e.code.file) and e.code.uid not in framed]
        left = dict.fromkeys(e.name for e in own)
        compiled = [n for n in self.compiled or self.called if n not in left or any(e.name == n for e in calls if e not in own)]
        why = "Dynamo leaves a module of torch's own alone where `model.compile()` compiles it: use torch.compile(model)."
        facts = RecordingFacts(
            strings=caches.interned_strings(), cell_of=self._cells, owner_thread=self._thread, settings=self.settings,
            no_end_words="the recording ended before this compile did" if has_ended else "still compiling",
            compiled=compiled or self.called * bool(framed),  # without others, they have called what has frames
            notes=[*self.notes, *(f"{name} ran eagerly, except for modules of yours in it, because {why}" for name in left)],
            hooks={**self.hooks, **torch_private.missing},
            versions=versions(), old_functions=list(self._old_functions), calls=self._call_counts, error=error,
            failed_operation=translators.failed_operation(error.__traceback__) if isinstance(error, Exception) else "",
        )  # fmt: skip
        return build_report(list(self.events), facts)


def _target_id(target: Any) -> int:
    """The id that Dynamo's calls of a compiled target have, whether it is a function, a method or an object."""
    target = marks.undecorated(marks.inner_function(target))
    is_call = isinstance(target, MethodType) and target.__name__ in ("__call__", "_call_impl")  # the latter is a module's
    return id(target.__self__ if is_call else getattr(target, "__func__", target))


observe = Recording


def versions() -> dict[str, str | None]:
    """The versions of dynascope, torch (None if it is not loaded) and Python."""
    torch = sys.modules.get("torch")
    return {"dynascope": __version__, "torch": str(torch.__version__) if torch else None, "python": platform.python_version()}
