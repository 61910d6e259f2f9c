"""`Run`: the one way from settings to a finished Report.

`explain`, `%%compile`, `%%observe`, `dynascope.observe`, `dynascope run`, the pytest fixture and the button "Run again" differ
in the code that they run and in what they show.  All of them run the code inside a `Run`:

    with Run(settings) as run:                # records, applies the settings to torch, forces retracing
        run.entry_point(f)(x)                 # the real torch.compile
        run.repeat_last_call()                # --check, --profile, --inputs
    run.report                                # events -> build_report

`explain` does so for one function.
"""

from __future__ import annotations

import contextlib
import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any

from dynascope.compiler import compiling
from dynascope.compiler.capture.recording import Progress, Recording
from dynascope.compiler.capture.torch_private import config
from dynascope.compiler.compiling import RegionsInForce, is_refusal, target_name
from dynascope.compiler.report import Check, Report, plural
from dynascope.compiler.retrace import retracing
from dynascope.compiler.settings import Settings
from dynascope.compiler.source.code import user_name
from dynascope.compiler.source.lines import CellResolver
from dynascope.compiler.source.origin import origin
from dynascope.compiler.validate import check_settings, settings_from_keywords, settings_notes, wrong_with

if TYPE_CHECKING:
    from dynascope.compiler.lab import inputs, profile
    from dynascope.compiler.lab.recorded_call import RecordedCall

#: without `fix_seconds`, a search may take at least so long
LEAST_FIX_SECONDS = 60.0
#: the latest report of this process, which `last` returns
_latest: Report | None = None
#: makes a context manager that suppresses displays while calls are repeated
Quiet = Callable[[], contextlib.AbstractContextManager[Any]]


class Run:
    """One run: a context manager around the user's code.

    Args:
        settings: how to compile, already checked (`validate.check_settings`); None: only observe what the code compiles.
        compiled: names of what is compiled; more may be appended to `run.compiled` during the run.
        cells: returns the execution count of a notebook cell, given its file name.
        on_progress: called with {"frames", "graphs", "now", "stage", "seconds"} while the compiler works, and with a
            sentence as the stage when calls are repeated.
        retraces: whether to retrace functions that Dynamo has compiled before; after the run, their earlier compiled code is
            used again.
        regions: the `--region` options in force.
        warn: called before a call that `repeat_last_call` may repeat, with each new sentence on effects that cannot be undone.
        quiet: makes the context manager that is entered while calls are repeated.
        user_code: calls a function that runs the user's code; a notebook allows interrupts only inside it.
        fix_own: settings with which to search for fixes for functions that the program compiles itself; None: search only if
            `settings.fix` is set, for what this run compiles.
        trace_again: how to have functions traced again that ran from code compiled before this run, as the end of a sentence.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        compiled: list[str] | None = None,
        cells: CellResolver | None = None,
        on_progress: Progress | None = None,
        retraces: bool = True,
        regions: RegionsInForce | None = None,
        warn: Callable[[str], None] = lambda sentence: None,
        quiet: Quiet = contextlib.nullcontext,
        user_code: Callable[..., Any] = lambda function, *args: function(*args),
        fix_own: Settings | None = None,
        trace_again: str = "",
    ) -> None:
        from dynascope.compiler.lab.recorded_call import CallRecorder

        self.settings = settings
        self.recording = Recording(settings, compiled, cells, on_progress)
        self.notes: list[str] = settings_notes(settings) if settings is not None else []
        self._retraces, self._regions, self._user_code = retraces, regions, user_code
        self._quiet = quiet
        self._checked: tuple[Check, RecordedCall | None] | None = None
        self._measured: profile.Measurement | None = None
        self._profiled: RecordedCall | None = None
        self._tried: list[inputs.InputResult] | None = None
        self._fix = fix_own if fix_own is not None else settings if settings is not None and settings.fix else None
        self._fixes_own = fix_own is not None
        self._repeats = settings is not None and (settings.check or settings.profile is not None)
        self._tries_again = self._fix is not None or (settings is not None and settings.second_call)
        keeps = (self._tries_again or (settings is not None and settings.profile is not None)) and not self._fixes_own
        self._calls = CallRecorder(warn if self._repeats else None, keeps=keeps)
        self._cells, self._trace_again = cells, trace_again
        self._retrace: Callable[[Any], None] = lambda target: None
        self._stack = contextlib.ExitStack()
        self._report: Report | None = None

    @property
    def compiled(self) -> list[str]:
        """Names of what was compiled, in the order in which the report shows them."""
        return self.recording.compiled

    @property
    def report(self) -> Report:
        """The finished Report once the run is over; before that, the report so far."""
        return self._report if self._report is not None else self.recording.snapshot()

    def __str__(self) -> str:
        return str(self.report)

    def __repr__(self) -> str:
        return f"<recording: {self.report.headline()}>"

    # -- around the code --------------------------------------------------------------------------------

    def __enter__(self) -> Run:
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.recording)
            if self._fixes_own:
                stack.enter_context(self._calls.watching_compiled_code())
            if self.settings is not None:
                stack.enter_context(compiling.environment(self.settings))
                # the report shows the value in force, even if it is torch's default
                self.recording.settings = self.settings.replace(nested_graph_breaks=config.nested_graph_breaks())
            if self._regions is not None:
                stack.enter_context(self._regions.installed())
            if self._retraces:
                self._retrace = stack.enter_context(retracing())
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            self._stack.__exit__(kind, error, trace)
        finally:
            self._report = self._annotated(self.recording.report)
            try:
                if error is None or (isinstance(error, Exception) and compiling.is_refusal(error)):
                    with _unless_fault("the line at which they differ was not searched", self._report.notes):
                        self._locate(self._report)
                    with _unless_fault("the calls were not tried again", self._report.notes):
                        self._try_again(self._report)
            finally:  # also if the user interrupts the calls
                self.recording.show_progress()  # no stage any more
                remember(self._report)

    def _annotated(self, report: Report) -> Report:
        """Add the run's measurements and notes to the Report that was assembled from events; the run's notes come first."""
        from dynascope.compiler.lab import check, inputs, profile

        if self._regions is not None:
            with _unless_fault("the regions are not shown", self.notes):
                self._regions.annotate(report)
        if self._tried is not None:
            with _unless_fault("the inputs are not shown", self.notes):
                inputs.annotate_inputs(report, self._tried)
        if self._measured is not None:
            with _unless_fault("the call was not profiled", self.notes):
                profile.annotate_profile(report, self._measured)
        if self._checked is not None:
            with _unless_fault("the check is not shown", self.notes):
                is_located = self.settings is not None and self.settings.check == "where"
                self.notes += check.words(self._checked[0], is_located=is_located)
                checked, called = self._checked[1], map(user_name, self.recording.called)
                last = "" if checked is None else self.recording.name_of(checked.target)
                others = [name for name in called if name != last]
                if last and others:
                    self.notes.append(f"check: this was the last compiled call, of {last}; not compared: {', '.join(others)}.")
                report.check = self._checked[0]
        cached = Counter(f.name for f in report.frames if f.status == "cached" and f.kind != "resume")
        several = ", ".join(name for name, versions in cached.items() if versions > 1)
        if several:
            self.notes.append(f"all cached versions are counted, and which of them ran is unknown: {several}")
        if cached and self._trace_again:
            self.notes.append(
                f"compiled before this recording, so its breaks are unknown: {', '.join(cached)}; {self._trace_again}"
            )
        report.notes = list(dict.fromkeys([*self.notes, *report.notes]))
        return report

    def _locate(self, report: Report) -> None:
        """Search where the numbers differ, for `--check=where`."""
        checked, call = self._checked or (Check(), None)
        if self.settings is None or self.settings.check != "where" or call is None or checked.numbers is None:
            return
        from dynascope.compiler.lab.numbers.where import locate

        with self._quiet():
            show = self.recording.show_progress
            sentences = self._user_code(locate, checked.numbers, call, self.settings, self._cells, show)
        behind = 1 + max(i for i, note in enumerate(report.notes) if note.startswith("check: "))
        report.notes[behind:behind] = sentences

    def _try_again(self, report: Report) -> None:
        """Repeat the calls on copies, for `--fix` and `--second-call`, and for `--profile` where breaks are expensive."""
        if not self._tries_again and report.profile is None:
            return
        from dynascope.compiler.lab.fix.result import annotate_fixes
        from dynascope.compiler.lab.fix.search import Search, SearchResult
        from dynascope.compiler.lab.fix.trial import Trials
        from dynascope.compiler.lab.second_call import annotate_second_call, refusal, try_hints

        is_costly = report.profile is not None and report.profile.is_worth_fixing
        with self._quiet():
            if self._fix is not None:
                found = SearchResult()
                if self._calls.kept and (report.breaks or report.recompiles):
                    seconds = self._fix.fix_seconds
                    if seconds is None:
                        seconds = max(LEAST_FIX_SECONDS, 10 * report.summary.compile_seconds)
                    search = Search(
                        Trials(self._calls.kept, self._fix, self._cells), report,
                        seconds=seconds, profiled=self._profiled, is_whole=refusal(report, self._calls) is None,
                        on_progress=self.recording.show_progress,
                    )  # fmt: skip
                    found = search.found
                    self._user_code(search.run)
                elif report.breaks and not self._calls.refusals:
                    found.notes.append("No change was tried: nothing that this run compiles was called")
                annotate_fixes(report, found, self._calls, self._cells)
                if found.again is not None and not self._fixes_own:
                    annotate_second_call(report, found.again, self._calls)
            elif self.settings is not None and (self.settings.second_call or is_costly):
                progress = self.recording.show_progress
                self._user_code(try_hints, report, self._calls, self.settings, self._cells, progress)

    # -- inside -----------------------------------------------------------------------------------------

    def retrace(self, target: Any) -> None:
        """Make Dynamo retrace one more function, method or module."""
        self._retrace(target)

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
        made = compiling.entry_point(target, self.settings)
        return self._calls.watch(target, made, namespace)

    def repeat_last_call(self, given: Any = None) -> None:
        """Repeat the last call for `--check` and `--profile`, and try the inputs of `--inputs`.

        What the calls change is undone; the report's notes name what cannot be undone.

        `given`: the list of inputs, checked by `wrong_with`; None without `--inputs`.
        """
        from dynascope.compiler.lab import check, inputs, profile

        if not self._repeats or self.settings is None:
            return
        call, self._calls.last = self._calls.last, None
        with self._quiet():
            if self.settings.check:
                self.recording.show_progress("comparing the compiled call with eager mode")
                with _unless_fault("the call was not checked", self.notes):
                    self._checked = self._user_code(check.compare, call), call
                self.notes += [] if call is None else [*call.side_effects, *call.notes]
            if self.settings.profile is None:
                return
            self._profiled = call
            with _unless_fault("the call was not profiled", self.notes):
                self._measured = self._user_code(profile.measure, call, self.settings.profile, self.recording.show_progress)
            if given is not None and call is not None:
                self.recording.show_progress(f"measuring {plural(len(given), 'input')}")
                with _unless_fault("the inputs were not tried", self.notes):
                    self._tried = self._user_code(inputs.try_inputs, call.target, call.entry, given, self.settings.profile)
            elif given is not None:
                self.notes.append("the inputs were not tried: nothing that this run compiles was called")


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
    function: Callable[..., Any],
    /,
    *,
    cells: CellResolver | None = None,
    on_progress: Progress | None = None,
    **settings: Any,
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
