"""`Run`: the one way from settings to a finished Report; at its end, the calls are repeated and fixes are searched for.

`explain`, `%%compile`, `%%observe`, `dynascope.observe`, `dynascope run`, the pytest fixture and the button "Run again" differ
in the code that they run and in what they show.  All of them run the code inside a `Run`:

    with Run(settings) as run:                # records, applies the settings to torch, forces retracing
        run.entry_point(f)(x)                 # the real torch.compile
        run.repeat_last_call()                # --check, --profile, --inputs
    run.report                                # events -> build_report; then --second-call, --fix

`explain` does so for one function.
"""

from __future__ import annotations

import contextlib
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any

from dynascope.compiler import compiling
from dynascope.compiler.capture.recording import Progress, Recording
from dynascope.compiler.capture.torch_private import caches, config
from dynascope.compiler.report import Check, Report, plural
from dynascope.compiler.retrace import retracing
from dynascope.compiler.settings import Settings
from dynascope.compiler.source.code import STATEMENTS, user_name
from dynascope.compiler.source.lines import CellResolver
from dynascope.compiler.source.origin import origin
from dynascope.compiler.validate import check_settings, settings_from_keywords, settings_notes, wrong_with

if TYPE_CHECKING:
    from dynascope.compiler.lab.recorded_call import RecordedCall

#: without `fix_seconds`, a search may take at least so long
LEAST_FIX_SECONDS = 60.0
#: the latest report of this process, which `last` returns
_latest: Report | None = None


@dataclass(eq=False, repr=False)
class Run:
    """One run: a context manager around the user's code."""

    #: how to compile, already checked (`validate.check_settings`); None: only observe what the code compiles
    settings: Settings | None = None
    _: KW_ONLY
    #: names of what was compiled, in the order in which the report shows them; more may be appended during the run
    compiled: list[str] = field(default_factory=list)
    #: returns the execution count of a notebook cell, given its file name
    cells: CellResolver | None = None
    #: called with {"frames", "graphs", "now", "stage", "seconds"} while the compiler works, and with a sentence as the stage
    #: when calls are repeated
    on_progress: Progress | None = None
    #: whether to retrace functions that Dynamo has compiled before; after the run, their earlier compiled code is used again
    retraces: bool = True
    #: the `--region` options in force
    regions: compiling.RegionsInForce | None = None
    #: called before a call that `repeat_last_call` may repeat, with each new sentence on effects that cannot be undone
    warn: Callable[[str], None] = lambda sentence: None
    #: makes the context manager that is entered while calls are repeated, which suppresses displays
    quiet: Callable[[], contextlib.AbstractContextManager[Any]] = contextlib.nullcontext
    #: calls a function that runs the user's code; a notebook allows interrupts only inside it
    user_code: Callable[..., Any] = lambda function, *args: function(*args)
    #: settings with which to search for fixes for functions that the program compiles itself; None: search only if
    #: `settings.fix` is set, for what this run compiles
    fix_own: Settings | None = None
    #: how to have functions traced again that ran from code compiled before this run, as the end of a sentence
    trace_again: str = ""
    #: makes Dynamo retrace one more function, method or module
    retrace: Callable[[Any], None] = field(init=False, default=lambda target: None)
    #: the latest first: what adds a measurement to the Report, and how the note begins if it fails
    _measured: list[tuple[str, Callable[[Report], None]]] = field(init=False, default_factory=list)
    #: the call that is repeated
    _call: RecordedCall | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        from dynascope.compiler.lab.recorded_call import CallRecorder

        self.recording = Recording(self.settings, self.compiled, self.cells, self.on_progress)
        self.notes: list[str] = settings_notes(self.settings) if self.settings is not None else []
        #: with the defaults, which ask for nothing, if the run only observes
        self._chosen = chosen = self.settings if self.settings is not None else Settings()
        self._fix = self.fix_own if self.fix_own is not None else chosen if chosen.fix else None
        keeps = self.fix_own is None and (chosen.fix or chosen.second_call or chosen.profile is not None)
        self.calls = CallRecorder(self.warn, keeps=keeps, has_last=bool(chosen.check) or chosen.profile is not None)

    @property
    def report(self) -> Report:
        """The finished Report once the run is over; before that, the report so far."""
        return self.recording.report

    def __str__(self) -> str:
        return str(self.report)

    def __repr__(self) -> str:
        return f"<recording: {self.report.headline()}>"

    # -- around the code --------------------------------------------------------------------------------

    def __enter__(self) -> Run:
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.recording)
            if self.fix_own is not None:
                stack.enter_context(self.calls.watching_compiled_code())
            if self.settings is not None:
                stack.enter_context(compiling.environment(self.settings))
                # the report shows the value in force, even if it is torch's default
                self.recording.settings = self.settings.replace(nested_graph_breaks=config.nested_graph_breaks())
            if self.regions is not None:
                stack.enter_context(self.regions.installed())
            if self.retraces:
                self.retrace = stack.enter_context(retracing(self._chosen.keep))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            self._stack.__exit__(kind, error, trace)
        finally:
            report = self._annotated(self.report)
            try:
                if error is None or compiling.is_refusal(error):
                    with _unless_fault("the line at which they differ was not searched", report.notes):
                        self._locate(report)
                    with _unless_fault("the calls were not tried again", report.notes):
                        self._try_again(report)
                if error is not None:  # what the compiler refuses is still tried again
                    names = ["check", "profile"] if compiling.is_refusal(error) else ["check", "profile", "second_call", "fix"]
                    asked = [n for n in names if getattr(self._fix or self._chosen, n) and getattr(report, n, None) is None]
                    missing = " or ".join(asked).replace("_", " ")
                    report.notes += [f"The run ended with {type(error).__name__}, so no {missing} was made"] if asked else []
            finally:  # also if the user interrupts the calls
                self.recording.show_progress()  # no stage any more
                report.notes[:] = dict.fromkeys([*report.notes, *(note for call in self.calls.kept for note in call.notes)])
                remember(report)

    def _annotated(self, report: Report) -> Report:
        """Add the run's measurements and notes to the Report that was assembled from events; the run's notes come first."""
        if self.regions is not None:
            with _unless_fault("the regions are not shown", self.notes):
                self.regions.annotate(report, self.recording.traced)
        for failed, annotate in self._measured:
            with _unless_fault(failed, self.notes):
                annotate(report)
        cached = dict.fromkeys(f.name for f in report.frames if f.status == "cached" and f.kind != "resume")
        if cached and self.trace_again:
            names = ", ".join(cached)
            self.notes.append(f"known to Dynamo before this recording, with unknown breaks: {names}; {self.trace_again}")
        report.notes = list(dict.fromkeys([*self.notes, *report.notes]))
        return report

    def _annotate_check(self, report: Report, checked: Check) -> None:
        from dynascope.compiler.lab import check

        self.notes += check.words(checked, is_located=self._chosen.check == "where")
        last = self._last_called
        if any(checked.compared.values()) and (last or self.calls.count > 1):
            self.notes.append(f"check: this was the last call{f' of {last}' * bool(last)}: no other was compared.")
        report.check = checked

    @property
    def _last_called(self) -> str:
        """The name of what was called last, if others were called, too; otherwise, ""."""
        last = "" if self._call is None else self.recording.name_of(self._call.target)
        return last if any(user_name(name) != last for name in self.recording.called) else ""

    def _locate(self, report: Report) -> None:
        """Search where the numbers differ, for `--check=where`."""
        numbers = report.check.numbers if report.check is not None else None
        if self._chosen.check != "where" or self._call is None or numbers is None:
            return
        from dynascope.compiler.lab.numbers.where import locate

        with self.quiet():
            sentences = self.user_code(locate, numbers, self._call, self._chosen, self.cells, self.recording.show_progress)
        behind = 1 + max(i for i, note in enumerate(report.notes) if note.startswith("check: "))
        report.notes[behind:behind] = sentences

    def _try_again(self, report: Report) -> None:
        """Repeat the calls on copies, for `--fix` and `--second-call`, and for `--profile` where breaks are expensive."""
        is_costly = report.profile is not None and report.profile.is_worth_fixing
        traces = self._chosen.second_call or (is_costly and self._fix is None)
        if self._fix is None and not traces:
            return
        from dynascope.compiler.lab.fix.result import annotate_fixes
        from dynascope.compiler.lab.fix.search import Search, SearchResult
        from dynascope.compiler.lab.fix.trial import Trials
        from dynascope.compiler.lab.second_call import annotate_second_call, refusal, try_hints

        self.calls.choose(statements=any(b.function == user_name(STATEMENTS) for b in report.breaks))
        report.notes[:] = dict.fromkeys([*report.notes, *(e for call in self.calls.kept for e in call.side_effects)])
        show, cells = self.recording.show_progress, self.cells
        profiled = self._call if self._chosen.profile is not None else None
        with self.quiet():
            if traces:
                self.user_code(try_hints, report, self.calls, self._chosen, cells, show)
            if self._fix is None:
                return
            found = SearchResult()
            if self.calls.kept and (report.breaks or report.recompiles):
                least = max(LEAST_FIX_SECONDS, 10 * report.summary.compile_seconds)
                seconds = least if self._fix.fix_seconds is None else self._fix.fix_seconds
                search = Search(
                    Trials(self.calls.kept, self._fix, cells, later=self.calls.later), report, seconds=seconds,
                    profiled=profiled, is_whole=refusal(report, self.calls) is None, on_progress=show,
                )  # fmt: skip
                found = self.user_code(search.run)
            elif (report.breaks or report.summary.skipped) and not self.calls.refusals:
                nothing = "what dynascope itself compiles has no graph break and no recompile"
                why = nothing if self.calls.kept else "no call could be repeated"
                found.notes.append(f"No change was tried: {why}")
            annotate_fixes(report, found, self.calls, cells)
            if found.again is not None and self.fix_own is None and not traces:
                annotate_second_call(report, found.again, self.calls)

    # -- inside -----------------------------------------------------------------------------------------

    def entry_point(
        self, target: Any, namespace: dict[str, Any] | None = None, *, name: str | None = None
    ) -> Callable[..., Any]:
        """Compile `target`; `repeat_last_call` can repeat the last call of the result.

        `namespace`: for a cell's statements, the namespace whose names are restored before each repeated call.
        `name`: the report's name for the target; None: the name that the target has.
        """
        assert self.settings is not None
        if namespace is None:
            self.recording.compiles(target, name)
        return self.calls.watch(target, compiling.entry_point(target, self.settings), namespace)

    def repeat_last_call(self, given: Any = None) -> None:
        """Repeat the last call for `--check` and `--profile`, and try the inputs of `--inputs`.

        What the calls change is undone; the report's notes name what cannot be undone.

        `given`: the list of inputs, checked by `wrong_with`; None without `--inputs`.
        """
        if not self._chosen.check and self._chosen.profile is None:
            return
        if (why := config.compiles_nothing(has_compiled=self.recording.has_graphs and given is None)) is not None:
            self.notes.append(f"the call was not repeated: {why}")
            return
        from dynascope.compiler.lab import check, inputs, profile

        call = self._call = self.calls.last
        self.calls.last = None
        calls, show, before = self._chosen.profile, self.recording.show_progress, caches.compiles()
        with self.quiet():
            if self._chosen.check:
                show("comparing the compiled call with eager mode")
                with _unless_fault("the call was not checked", self.notes):
                    checked = self.user_code(check.compare, call, self._chosen.backend)
                    self._measured.append(("the check is not shown", partial(self._annotate_check, checked=checked)))
                self.notes += [] if call is None else [*call.side_effects, *call.notes]
            if calls is not None:
                with _unless_fault("profile: not measured", self.notes):
                    measured = self.user_code(profile.measure, call, calls, show)
                    measured.function, measured.is_all = self._last_called, len(self.recording.called_as) == 1
                    self._measured.insert(0, ("profile: not measured", partial(profile.annotate_profile, measured=measured)))
            if given is not None and call is not None:
                show(f"measuring {plural(len(given), 'input')}")
                with _unless_fault("inputs: not tried", self.notes):
                    tried = self.user_code(inputs.try_inputs, call, given, calls)
                    self._measured.insert(0, ("inputs: not shown", partial(inputs.annotate_inputs, tried=tried)))
            elif given is not None:
                self.notes.append("inputs: not tried: nothing that dynascope itself compiles was called")
        self.calls.repeatable.update(range(before, caches.compiles()))


@contextlib.contextmanager
def _unless_fault(failed: str, notes: list[str]) -> Iterator[None]:
    """Turn an error in dynascope into a note that begins with `failed`: it must not stop the user's code."""
    try:
        yield
    except Exception as fault:
        notes.append(f"{failed}: {type(fault).__name__}: {fault}")


def last() -> Report:
    """The latest Report of `load` or of any run, such as `%%compile`, `explain` or `observe`; a RanksReport is never returned.

    Raises LookupError if there is none yet.
    """
    if _latest is None:
        raise LookupError("no report yet: run a cell under %%compile, or dynascope.explain(f)(x)")
    return _latest


def remember(report: Report) -> None:
    """Make this the report that `last()` returns."""
    global _latest
    _latest = report


def explain(
    function: Callable[..., Any], /, *, cells: CellResolver | None = None, on_progress: Progress | None = None, **settings: Any
) -> Callable[..., Report]:
    """Return a function that compiles `function`, calls it and returns the report: `explain(f, backend="eager")(x)`.

    Takes every setting of `%%compile` except those about a cell (function, region, keep, output, view).  If the compiler
    refuses the code (fullgraph, error_on_graph_break, a backend that fails), `report.error` says why; an error in the user's
    code propagates.
    """
    chosen = settings_from_keywords(settings)
    try:
        check_settings(chosen)
    except ValueError as error:  # it names the options of `%%compile`
        raise ValueError(re.sub("--([a-z-]+)", lambda flag: flag[1].replace("-", "_"), str(error))) from None
    if chosen.inputs is not None and (wrong := wrong_with(chosen.inputs)) is not None:
        raise ValueError(f"inputs: {wrong}")
    if not callable(function):
        raise TypeError(f"explain() takes a function, a method or a module, not {type(function).__name__}")

    def call(*args: Any, **kwargs: Any) -> Report:
        run = Run(chosen, compiled=[compiling.target_name(function)], cells=cells, on_progress=on_progress, warn=_warn)
        try:
            with run:
                run.retrace(function)
                run.entry_point(function)(*args, **kwargs)
                run.repeat_last_call(chosen.inputs)
        except Exception as error:
            if not compiling.is_refusal(error):
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
