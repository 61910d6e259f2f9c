"""`observe()`: everything the compiler does while a block runs, as a Report.

Recordings nest, run in several threads at once, survive any exception and a `torch._dynamo.reset()` in
the user's code, and leave nothing behind.
"""

from __future__ import annotations

import platform
import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

from dynascope.compiler import __version__
from dynascope.compiler.assembly.assemble import assemble
from dynascope.compiler.assembly.guard_text import source
from dynascope.compiler.recording import cache_hits, late_backwards
from dynascope.compiler.report import Failure, Report, dynamic_words
from dynascope.compiler.settings import Settings
from dynascope.compiler.source import places
from dynascope.compiler.torch_private import hooks, internals, marks

_MISSED = "another thread timed calls meanwhile, and nothing was recorded until it had done: this report can lack compiles"

Progress = Callable[[dict[str, Any]], None]


class Recording:
    """One recording; `report` is the Report once it has ended, and what is known so far before.

    `compiled` (names shown first) and `notes` (sentences for the user) may be added to while it runs.  Without names
    given, the report names what was called compiled, in order of the first call.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        compiled: list[str] | None = None,
        cells: places.CellResolver | None = None,
        on_progress: Progress | None = None,
    ) -> None:
        self.settings = settings
        self.compiled = list(compiled or ())
        self.notes: list[str] = []
        self.events: list[dict[str, Any]] = []
        #: names of what was called compiled, in order of the first call, and of them what `compiles` was not told of
        self.called: list[str] = []
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
        self._entered_before: set[int] = set()
        self._sizes_before: internals.Sizes = {}
        self._times_forgotten = 0

    # -- on and off ------------------------------------------------------------------------------------

    def __enter__(self) -> Recording:
        self._thread = threading.get_ident()
        self._started = time.perf_counter()
        self.hooks = hooks.HOOKS.attach(self._event)
        hooks.HOOKS.bytecode += self._keeps_bytecode
        self._entered_before = set(hooks.HOOKS.entered)
        self._sizes_before, self._times_forgotten = internals.known_sizes(), internals.times_forgotten
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            self.events.extend(self._cached())
        finally:  # an interrupt may come at any moment: torch is as it was in any case
            hooks.HOOKS.bytecode -= self._keeps_bytecode
            hooks.HOOKS.detach(self._event)
        self._ended = True
        self._report = self._assemble(error)
        late_backwards.complete(self._report, self._report.late_backwards)
        late_backwards.remember(self._report)
        self.events = []  # texts of the user's program: the report has what is needed

    def _cached(self) -> list[dict[str, Any]]:
        """What was called compiled and saw no compile in this recording."""
        compiled = {e["code"]["uid"] for e in self.events if e["kind"] == "frame"}
        entered = {
            uid: found
            for uid, found in hooks.HOOKS.entered.items()
            # torch compiles functions of its own on the way; its wrappers stand for modules without a frame
            if uid not in self._entered_before and (not places.in_torch(found[0].co_filename) or found[0].co_name == "inner")
        }
        found: list[dict[str, Any]] = []
        hooks.HOOKS.safely(lambda: found.extend(cache_hits.cached_events(entered, compiled)))
        return found

    @property
    def report(self) -> Report:
        return self._report if self._report is not None else self.snapshot()

    def snapshot(self) -> Report:
        """The Report of what has been recorded so far."""
        return self._assemble(None)

    # -- events ----------------------------------------------------------------------------------------

    def _event(self, event: dict[str, Any]) -> None:
        if event["kind"] == "paused":
            if event["thread"] != self._thread and _MISSED not in self.notes:
                self.notes.append(_MISSED)
            return
        if event["kind"] == "entry":
            event = self._entered(event)
        self.events.append(event)
        if self._on_progress is not None:
            self._tell(event)

    def compiles(self, target: Any, name: str | None = None) -> None:
        """Note that the caller itself compiles `target`, and the name to show for it; all else was compiled by the user's code.

        `target` must live as long as the recording runs.
        """
        target = marks.undecorated(internals.inner_function(target))
        key = id(getattr(target, "__func__", target))
        self._targets[key] = name or self._targets.get(key)

    def _entered(self, event: dict[str, Any]) -> dict[str, Any]:
        """An "entry" event with the name to show."""
        name, code = self._targets.get(event["target"]) or event["name"], event["code"]
        # torch compiles functions of its own on the way; its wrappers and modules stand for what the user has compiled
        if places.in_torch(code["file"]) and code["name"] not in ("inner", "forward"):
            return event
        ours = event["target"] in self._targets or code["name"] == places.STATEMENTS
        for names in (self.called,) if ours else (self.called, self.users_own):
            if name not in names:
                names.append(name)
        return {**event, "name": name}

    def _tell(self, event: dict[str, Any]) -> None:
        """Progress: what is being compiled, and how much is done."""
        progress, kind = self._progress, event["kind"]
        if kind == "trace" and "dynamo_start" in event["metadata"]:
            stack = event["metadata"]["dynamo_start"].get("stack")
            progress["now"] = places.user_name(str(stack[-1]["name"])) if stack else ""
        elif kind == "trace" and "dynamo_output_graph" in event["metadata"]:
            progress["graphs"] += 1
        elif kind == "graph_end" and event["graph_break"]:
            progress["breaks"] += 1
        elif kind == "frame" and event["cid"] is not None:
            progress["frames"] += 1
        else:
            return
        progress["seconds"] = time.perf_counter() - self._started
        if self._on_progress is not None:
            hooks.HOOKS.safely(self._on_progress, dict(progress))

    def _assemble(self, error: BaseException | None) -> Report:
        report = assemble(
            list(self.events),
            strings=internals.interned_strings(),
            cell_of=self._cells,
            owner_thread=self._thread,
            no_end="the recording ended before this compile did" if self._ended else "still compiling",
        )
        report.versions = versions()
        report.compiled = list(dict.fromkeys(self.compiled)) or list(self.called) or compiled_names(report)
        report.settings = self.settings.to_dict() if self.settings else {}
        report.hooks = {**self.hooks, **internals.missing}
        report.notes = [
            *self.notes,
            *fault_notes(report),
            *foreign_notes(report),
            *overruled_notes(report),
            *self._dynamic_notes(report),
            *report.notes,
        ]
        if self.settings is not None:
            name_default_region(report, self.settings)
        if error is not None:
            note_error(report, error, self._cells)
        elif report.error is not None:
            report.error.caught = True
        return report

    def _dynamic_notes(self, report: Report) -> list[str]:
        if internals.times_forgotten != self._times_forgotten:
            return []  # a run in here has traced as if there had been none before
        return dynamic_notes(report, self._sizes_before, internals.known_sizes())


def observe(
    settings: Settings | None = None,
    compiled: list[str] | None = None,
    cells: places.CellResolver | None = None,
    on_progress: Progress | None = None,
) -> Recording:
    """Record what the compiler does in a `with` block: `with observe() as recording: ...`; `recording.report`.

    `cells` tells the execution count of a notebook cell from its file name; `on_progress` is called with
    {"frames", "graphs", "breaks", "now", "seconds"} while things compile.
    """
    return Recording(settings, compiled, cells, on_progress)


def fault_notes(report: Report) -> list[str]:
    """Frames that a fault of the backend or of Dynamo left to run eagerly: no break, but no success either."""
    found = [f for f in report.frames if f.status == "skipped" and f.break_ is None and str(f.reason).startswith("backend=")]
    return [f"{f.name} was not compiled, and ran eagerly: {f.reason}" for f in found]


def foreign_notes(report: Report) -> list[str]:
    """Compiles of other threads are in the report, and in its counts: which thread the user means is not known."""
    names = dict.fromkeys(f.name for f in report.frames if f.foreign and f.status not in ("ignored", "empty"))
    return [f"compiled by other threads meanwhile, and counted here: {', '.join(names)}"] if names else []


def overruled_notes(report: Report) -> list[str]:
    """Regions that allow a break where fullgraph=True does not."""
    found = [b for b in report.breaks if b.fullgraph and b.region is not None and b.error_on_graph_break is False]
    names = dict.fromkeys(str(b.region) for b in found)
    return [f"error_on_graph_break(False) at {name} has no effect here: fullgraph=True wins over it." for name in names]


def dynamic_notes(report: Report, before: internals.Sizes, now: internals.Sizes) -> list[str]:
    """Frames traced with symbolic sizes at once, because earlier runs had seen other sizes there; they are told so, too."""
    notes = []
    for frame in report.frames:
        code = (frame.file, frame.line, frame.code_name)
        names = [source(name) for name, dynamic in now.get(code, {}).items() if dynamic and name in before.get(code, {})]
        if not names or frame.recompile_of is not None or frame.graph is None:
            continue
        sizes = [size for node in report.graph(frame.graph).nodes for size in node.shape or () if node.op == "placeholder"]
        if any(isinstance(size, str) for size in sizes):
            frame.dynamic_before = names
            notes.append(f"{dynamic_words(frame)}.")
    return list(dict.fromkeys(notes))


#: what a report calls the setting that no region has set: torch's own, or the run's
RUNS_OWN = ("default", "this run")


def name_default_region(report: Report, settings: Settings) -> None:
    """Where no region was traced, the run's own setting, or torch's default, was in force."""
    for found in report.breaks:
        if found.region is None and found.error_on_graph_break == (settings.error_on_graph_break or False):
            found.region = RUNS_OWN[settings.error_on_graph_break is not None]


def note_error(report: Report, error: BaseException, cell_of: places.CellResolver) -> None:
    """Tell in the report what ended the block: the compiler's refusal, or an error of the user's own."""
    if isinstance(error, KeyboardInterrupt):
        report.origin = "partial"
        report.notes.append("interrupted: the report holds what was compiled until then")
        return
    module, known = type(error).__module__, report.error
    if (
        known is not None
        and known.type == type(error).__name__
        and (module.startswith("torch._dynamo") or str(error).startswith(known.message))
    ):
        return  # it came out of a compile, and is known with its place
    refused = module.startswith(("torch._dynamo", "torch._inductor", "torch._functorch"))
    refused = refused or str(error).startswith("torch.compile with fullgraph=True found no compiled frames")
    message = str(error).split("\n\nfrom user code:", 1)[0].strip()
    place = _user_place(error)
    report.error = Failure(
        type=type(error).__name__,
        message=message,
        origin="compiler" if refused else "user",
        file=place[0] if place else None,
        line=place[1] if place else None,
        cell=cell_of(place[0]) if place else None,
    )


def _user_place(error: BaseException) -> tuple[str, int] | None:
    found = None
    trace = error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not places.is_plumbing(file) and not places.in_torch(file):
            found = (file, trace.tb_lineno)
        trace = trace.tb_next
    return found


def compiled_names(report: Report) -> list[str]:
    """Names of the frames that no other frame led to: what the user's code had compiled."""
    roots = [f.name for f in report.frames if f.parent is None and f.continues is None and f.status not in ("ignored",)]
    return list(dict.fromkeys(roots))


def versions() -> dict[str, str | None]:
    """Of dynascope, torch (None where it is not loaded) and Python."""
    torch = sys.modules.get("torch")
    return {
        "dynascope": __version__,
        "torch": str(torch.__version__) if torch else None,
        "python": platform.python_version(),
    }
