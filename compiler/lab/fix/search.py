"""Searches for fixes for the graph breaks and recompiles of a run.

A *source* makes *candidates*: changes that may remove a break or a recompile.  The candidates that were chosen so far are the
*plan*.  For each break or recompile, the first candidate that holds joins the plan: with it, the break is gone or there are
fewer recompiles, the compiler does no worse otherwise, and no run differs from eager.  A rewrite may leave its break if it
captures more.  A fix can uncover another break, so the calls are traced again after each fix.  A fix that only uncovers another
break is kept if later fixes lead to a better result.  Wraps for several breaks are traced at once before the first of
them: those whose break stays are left out.

The first change is verified by itself, the next two by their sum, the next four by theirs; if such a sum does not simply hold,
its changes are tried again one by one.

First comes a call in eager mode before the compiled one, if that is known to remove breaks; then settings: each is traced once,
those that help are combined, and only their sum is verified.  Changes that hold only under a condition come after all verified
ones, on top of them.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from dynascope.compiler.capture.torch_private import marks
from dynascope.compiler.lab.fix import live_edit
from dynascope.compiler.lab.fix.candidate import Candidate, Problem, problems_of
from dynascope.compiler.lab.fix.improvement import (
    STAYS,
    Key,
    appeared,
    break_key,
    captures_more,
    caught_in_graph,
    eager_frames,
    gain,
    operations,
    recompile_key,
    removed,
    why_no_better,
    why_recompiles_stay,
)
from dynascope.compiler.lab.fix.plan import WARM_UP, Plan
from dynascope.compiler.lab.fix.rewrites import branches, comprehensions, guards, messages, numbers, reasons, settings, wraps
from dynascope.compiler.lab.fix.text_edits import NotApplicable
from dynascope.compiler.lab.fix.trial import TookTooLong, TrialResult, Trials
from dynascope.compiler.lab.fix.verification import (
    QUICK,
    THOROUGH,
    UNTRIED,
    ZERO_GRADIENT,
    OutOfTime,
    Refused,
    Verification,
    Verifier,
)
from dynascope.compiler.lab.recorded_call import RecordedCall
from dynascope.compiler.parsing import no_syntax_warnings
from dynascope.compiler.report import Break, Fix, Recompile, Report, plural
from dynascope.compiler.source.code_swap import found_once

CandidateSource = Callable[[Problem], list[Candidate]]
#: in the order in which they are tried; those of the first are settings, which are combined
CANDIDATE_SOURCES: tuple[CandidateSource, ...] = (
    settings.candidates,
    numbers.candidates,
    numbers.of_numpy,
    guards.known_first,
    guards.raising,
    guards.indexing,
    branches.candidates,
    comprehensions.candidates,
    messages.candidates,
    wraps.of_the_function,
    wraps.of_what_is_called,
)
#: sources that wrap a function for its callers: not asked about the functions that the run compiles
_NOT_FOR_ENTRIES = (wraps.of_the_function,)
#: the share of the time for verified changes, if others hold under a condition
_SURE_SHARE = 0.4
_AS_OTHERS = "The same as for the other conditional changes: it was verified only together with them"
#: what ends a search before it is complete
_ENDS = (OutOfTime, TookTooLong, KeyboardInterrupt)
_Found = Verification | NotApplicable | Refused
TIME_LIMIT, INTERRUPTED = "the time limit was reached", "the search was interrupted"


class _Stopped(NotApplicable):
    """The search has stopped: what is not known by now is not tried."""


@dataclass
class SearchResult:
    """The outcome of a search."""

    fixes: list[Fix] = field(default_factory=list)
    before: TrialResult | None = None
    #: the calls, traced again without any change
    again: Report | None = None
    #: with the verified fixes; then, if there are any, with the conditional ones, too
    fixed: list[FixedProgram] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    is_complete: bool = True
    seconds: float = 0.0


@dataclass
class FixedProgram:
    """The program with chosen fixes, and what the compiler made of it."""

    plan: Plan
    after: TrialResult
    fixes: list[Fix] = field(default_factory=list)
    #: (plan before, plan with a conditional fix, its condition)
    conditions: list[tuple[Plan, Plan, str]] = field(default_factory=list)


@dataclass
class _Change:
    """A candidate, and the fix that tells of it."""

    candidate: Candidate
    fix: Fix
    #: what is better, for a rewrite that is kept only because it captures more; else ""
    gain: str = ""
    #: the fixes that were not tried because this one holds
    instead: list[Fix] = field(default_factory=list)


@dataclass
class _Step:
    """The program with the candidates chosen up to here, and what the compiler made of it."""

    plan: Plan
    ran: TrialResult
    #: the last of them; without a meaning for the unchanged program
    change: _Change = field(default_factory=lambda: _Change(Candidate("setting", ""), Fix(id="")))
    #: how many of them are kept only because they capture more
    gains: int = 0
    #: what was verified for this plan; None: only a later one is verified
    verification: Verification | None = None

    @property
    def badness(self) -> tuple[int, int, int]:
        # smaller is better; a change that only moves a break may capture more, too, but does not count as better
        return (*_badness(self.ran.report), -self.gains)


def _badness(report: Report) -> tuple[int, int]:
    return len(report.breaks) + eager_frames(report), report.summary.recompiles


def _verified(steps: Sequence[_Step], number: int) -> Verification:
    """What was verified of a step: by itself, or by the sum of the changes up to a later one."""
    return next((step.verification for step in steps[number:] if step.verification is not None), Verification())


def _conditions(steps: Sequence[_Step], number: int) -> list[str]:
    """The conditions of a step that those before it do not have."""
    earlier = {way for step in steps[:number] if step.verification is not None for way in step.verification.conditions}
    return [words for way, words in _verified(steps, number).conditions.items() if way not in earlier]


class Search:
    """One search for fixes."""

    def __init__(
        self,
        trials: Trials,
        report: Report,
        *,
        seconds: float,
        profiled: RecordedCall | None = None,
        is_whole: bool = False,
        on_progress: Callable[[str], None] = lambda sentence: None,
    ) -> None:
        """`is_whole`: whether the trials repeat all calls of the run: breaks that do not come back then need a first call."""
        self._trials, self._report = trials, report
        self._entries = set(map(_entry_name, trials.calls))
        self._seconds, self._profiled, self._is_whole, self._on_progress = seconds, profiled, is_whole, on_progress
        self._started = time.perf_counter()
        trials.deadline = self._started + seconds
        self._verifier = Verifier(trials, self._tick)
        self._steps: list[_Step] = []
        #: how many changes are traced before their sum is verified
        self._batch = 1
        #: breaks and recompiles for which no candidate holds
        self._given_up: set[Key] = set()
        #: (id of a break, title) of changes with which it stays
        self._hopeless: set[tuple[str | None, str]] = set()
        self._is_screened = False
        #: what is not tried again: (id of a break or recompile, title) of dropped changes
        self._dropped: set[tuple[str | None, str]] = set()
        #: what the compiler made of plans, and what their verification has shown: neither is done twice
        self._traced: list[tuple[Plan, TrialResult]] = []
        self._verified: list[tuple[_Step, _Found]] = []
        #: the first part of the search chooses only verified changes; the problems for which others hold under a condition
        self._allows_conditions, self._sure = False, 1
        self._conditional: set[Key] = set()
        self._ids, self._tried = itertools.count(), 0
        self._why_stopped, self._is_confirmed = "", False
        self.found = SearchResult()

    def run(self) -> SearchResult:
        """Search until nothing more can be fixed, the time is over, or an interrupt comes."""
        with found_once(), no_syntax_warnings():
            try:
                self._search()
            except _ENDS as ended:
                self._stopped(ended)
        self._trials.deadline = math.inf
        self._explain()
        self.found.seconds = time.perf_counter() - self._started
        return self.found

    def _search(self) -> None:
        try:
            if self._start():
                try:
                    self._choose()
                except OutOfTime:
                    self._drop_unverified()
                self._allow_conditions()
                self._choose()
                self._complete()
        except _ENDS as ended:
            self._stopped(ended)
            if self._steps:
                self._drop_unverified()
                if not self._allows_conditions:
                    self._allow_conditions()
                self._choose()  # of what is known by now
            self._seconds *= 1.5  # more time, to confirm what was found so far
            self._trials.deadline = self._started + self._seconds
        if self._steps:
            self._confirm()
            self._is_confirmed = True
            self._credit()
        if self.found.is_complete:
            self._name_unfixable()
        profile = self._report.profile
        if len(self._steps) > 1 and profile is not None and self._profiled is not None and self._why_stopped != INTERRUPTED:
            self._steps[0].ran.seconds = profile.verdict.compiled_seconds
            for fixed in self.found.fixed:
                if fixed.fixes:
                    fixed.after.seconds = self._trials.seconds(self._profiled, fixed.plan, profile.calls)

    def _allow_conditions(self) -> None:
        """From now on, changes may hold under a condition."""
        self._sure = len(self._steps)
        self._allows_conditions = True
        self._given_up.clear()
        self._dropped.clear()

    def _start(self) -> bool:
        """Run the unchanged program; returns whether it does again what it did."""
        self._say("running the calls again")
        try:
            ran = self._trace(Plan())
            if all(seen.error is None for seen in ran.observed):
                self.found.before, self.found.again = ran, ran.report
            self._verifier.compare(Plan(), ran.observed)
        except (NotApplicable, Refused) as reason:
            self.found.notes.append(
                f"No change was tried: the unchanged program gave another result when it was run again: {reason}"
            )
            return False
        self._steps = [_Step(Plan(), ran, verification=Verification())]
        self.found.before = ran
        if len(ran.report.breaks) < len(self._report.breaks):
            if self._is_whole:
                self._warm_up(ran)
            elif not ran.report.breaks:
                self.found.notes.append("The graph breaks do not come back when each call is repeated: at first, it did more")
        times, calls = self._report.summary.recompiles, plural(len(self._trials.calls), "call")
        if len(self._steps) == 1 and (lost := times - ran.report.summary.recompiles) > 0:
            self.found.notes.append(
                f"Repeating {calls} gives {plural(times - lost, 'recompile')}, not {times}: no change was tried for the rest"
            )
        return True

    def _warm_up(self, again: TrialResult) -> None:
        """Choose a call in eager mode before the compiled one; `again`: the calls, traced again after the run."""
        candidate = Candidate("setting", "Make the recorded calls in eager mode first", settings={WARM_UP: "force_eager"})
        first = _Step(Plan(), TrialResult(self._report, again.observed))
        change = self._change(candidate, first, self._report.breaks[0].id, None)
        self.found.before = first.ran
        self._steps = [first, _Step(Plan(settings=dict(candidate.settings)), again, change, verification=Verification())]
        self._traced.append((self._steps[-1].plan, again))
        self.found.fixes.append(change.fix)

    def _say(self, sentence: str) -> None:
        """Tell what is done now, and how many graph breaks are known to go by then."""
        known = [*self._steps[-1:], *(step for step, found in self._verified if isinstance(found, Verification))]
        before = len(self._steps[0].ran.report.breaks) if self._steps else 0
        now = min((len(step.ran.report.breaks) for step in known), default=0)
        condition = ", under a condition" if self._steps and now < len(self._steps[-1].ran.report.breaks) else ""
        so_far = f"{before - now} of {plural(before, 'break')} can be fixed{condition}; " if now < before else ""
        self._on_progress(so_far + sentence)

    # -- trials --------------------------------------------------------------------------------------------------------

    def _trace(self, plan: Plan, is_better: Callable[[Report], bool] = lambda report: True) -> TrialResult:
        """What the compiler makes of the program under this plan; of what is better, how often it leaves graphs is counted."""
        known = next((ran for other, ran in self._traced if other == plan), None)
        if known is None:
            if self._why_stopped:
                raise _Stopped(self._why_stopped)
            self._tick()
            known = self._trials.run(plan, QUICK, is_better)
            self._traced.append((plan, known))
        return known

    def _verify(self, step: _Step) -> list[str]:
        """Verify a step on top of those that are chosen, and return its own conditions; raises NotApplicable or Refused."""
        found = next((found for other, found in self._verified if other.plan == step.plan), None)
        if found is None:
            if self._why_stopped:
                raise _Stopped(self._why_stopped)
            try:
                self._verifier.compare(step.plan, step.ran.observed)
                if not any(isinstance(known, Verification) for _, known in self._verified):
                    self._compared(step, 0)  # a first answer, from now on
                    self._say("comparing more inputs")
                found = self._compared(step, (self._started + self._seconds - time.perf_counter()) / 4)
            except (NotApplicable, Refused) as failed:
                found = self._remember(step, failed)
        if not isinstance(found, Verification):
            raise found
        step.verification = found
        return self._open([*(s for s in self._steps if s is not step), step])

    def _open(self, steps: Sequence[_Step]) -> list[str]:
        """The conditions of the last step that speak against it now: in the first part of a search, not that time was short."""
        untried = _verified(steps, -1).conditions.get(UNTRIED)
        return [words for words in _conditions(steps, -1) if self._allows_conditions or words != untried]

    def _compared(self, step: _Step, seconds: float = math.inf) -> Verification:
        found = self._verifier.verify(step.plan, seconds=seconds)
        found.conditions |= settings.conditions(step.ran.report, self._steps[0].ran.report, step.plan.text)
        self._remember(step, found)
        return found

    def _remember(self, step: _Step, found: _Found) -> _Found:
        self._verified = [*(known for known in self._verified if known[0].plan != step.plan), (step, found)]
        return found

    # -- the search ---------------------------------------------------------------------------------------------------

    def _choose(self) -> None:
        """Add all changes that hold, and drop those that are not needed any more."""
        self._combine_settings()
        self._extend()
        self._leave_out()

    def _combine_settings(self) -> None:
        """Add the settings that help together, if there is more than one break: only their sum is verified."""
        step = self._steps[-1]
        made: dict[str, tuple[Candidate, Break]] = {}
        for b in self._ordered(step) if len(step.ran.report.breaks) > 1 else ():
            for problem in problems_of(b, step.plan.text):
                for c in self._made(CANDIDATE_SOURCES[0], problem.function, problem):
                    if not c.edits:
                        made.setdefault(str(c.settings), (c, b))
        ways = list[tuple[_Step, Candidate, Break]]()
        for number, (c, b) in enumerate(made.values(), 1):
            self._say(f"tracing with setting {number} of {len(made)}: {c.title}")
            if (better := self._with_setting(c, b, step)) is not None:
                ways.append((better, c, b))
        ways.sort(key=lambda way: way[0].badness)
        while ways and not self._add_settings(step, ways):
            del ways[0]  # it does not hold by itself

    def _add_settings(self, step: _Step, ways: list[tuple[_Step, Candidate, Break]]) -> bool:
        """Add those of these settings that help together, without the last ones if the sum does not hold."""
        chain = [step]
        for _, c, b in ways:
            if (better := self._with_setting(c, b, chain[-1])) is not None:
                chain.append(better)
        while len(chain) > 1:
            self._say(f"verifying {plural(len(chain) - 1, 'setting')}")
            last = chain[-1]
            key = break_key(next(b for way, c, b in ways if c == last.change.candidate), step.plan)
            try:
                if not self._verify(last) or self._allows_conditions:
                    self.found.fixes += [chosen.change.fix for chosen in chain[1:]]
                    self._steps += chain[1:]
                    return True
                self._conditional.add(key)
            except (NotApplicable, Refused):
                pass
            chain.pop()
        return False

    def _with_setting(self, c: Candidate, b: Break, step: _Step) -> _Step | None:
        """The step with one more setting, unverified; None if the compiler does no better with it."""
        try:
            plan = step.plan.with_candidate(c)
            ran = self._trace(plan, lambda after: _badness(after) < _badness(step.ran.report))
        except NotApplicable:
            return None
        better = _Step(plan, ran, self._change(c, step, self._id(b, step), None))
        failed = [f for f in ran.report.frames if f.status == "failed"] or any(o.error for o in ran.observed)
        return None if failed or better.badness >= step.badness else better

    def _change(self, c: Candidate, step: _Step, break_: str | None, recompile: str | None) -> _Change:
        """A candidate on top of a step, with the fix that tells of it."""
        fix = Fix(
            id=f"x{next(self._ids)}", break_=break_, recompile=recompile, kind=c.kind, title=c.title,
            edits=list(c.edits), settings=dict(c.settings), assumption=c.assumption,  # type: ignore[arg-type]
            before=step.ran.counts,
        )  # fmt: skip
        return _Change(c, fix)

    def _extend(self) -> None:
        """Add steps until no remaining break or recompile can be fixed; those that only uncover others are dropped again."""
        self._batch = 1
        self._is_screened = False
        while True:
            while (better := self._improved(self._steps[-1])) is not None:
                self._steps.append(better)
                if better.verification is not None:
                    self._batch *= 2
                elif len(self._steps) - self._first_unverified() >= self._batch:
                    self._settle()
            if self._settle() and not self._cut_back() and self._settle():
                return

    def _first_unverified(self) -> int:
        """The number of the first step after the last verified one."""
        return 1 + max((number for number, step in enumerate(self._steps) if step.verification is not None), default=-1)

    def _settle(self) -> bool:
        """Verify the steps after the last verified one by their sum; False: they are to be tried again, one by one."""
        first = self._first_unverified()
        if first == len(self._steps):
            return True
        last = self._steps[-1]
        self._say(f"verifying {plural(len(self._steps) - first, 'change')}")
        with contextlib.suppress(NotApplicable, Refused):
            if not self._verify(last) and not _verified(self._steps, -1).zero_gradients:
                self._batch *= 2
                return True
        self._batch = 1
        self._given_up.clear()
        del self._steps[first:]
        return False

    def _drop_unverified(self) -> None:
        """There is no time to verify more."""
        self._cut_back()
        del self._steps[self._first_unverified() :]

    def _cut_back(self) -> bool:
        """Drop the steps after the best one: they only uncover other breaks; returns whether that allows other changes."""
        best = min(range(len(self._steps)), key=lambda number: self._steps[number].badness, default=0)
        dropped = self._steps[best + 1 :]
        if not dropped:
            return False
        step, worse = self._steps[best : best + 2]
        new = appeared(worse.ran.report, worse.plan, step.ran.report, step.plan)
        what = f"it only moves the graph break to {new}" if new else "it only uncovers another graph break"
        sure = " that holds without a condition" if self._conditional and not self._allows_conditions else ""
        what += f", for which no fix was found{sure}"
        self._drop_from(best + 1, what + ("" if self.found.is_complete else " in time"))
        return any(step.change.instead for step in dropped)

    def _drop_from(self, number: int, reason: str) -> None:
        """Refuse a step and those after it, which build on it and may be tried again."""
        for position, step in enumerate(self._steps[number:]):
            change = step.change
            if position == 0:
                self._dropped.add((change.fix.break_ or change.fix.recompile, change.fix.title))
            else:
                reason = f"tried on top of a change that does not hold: {reason.rpartition('hold: ')[2]}"
            change.fix.verdict, change.fix.reason = "refused", reason
        self._given_up.clear()
        del self._steps[number:]
        self._sure = min(self._sure, len(self._steps))

    def _improved(self, step: _Step) -> _Step | None:
        """The next step, with one more break or recompile fixed; None if no other can be."""
        report = step.ran.report
        for b in self._ordered(step):
            key = break_key(b, step.plan)
            if key not in self._given_up:
                if (better := self._fix(b, step, key)) is not None:
                    return better
                self._given_up.add(key)
        for recompile in report.recompiles:
            key = recompile_key(recompile, report, step.plan)
            if key not in self._given_up:
                if (better := self._fix_recompile(recompile, step, key)) is not None:
                    return better
                self._given_up.add(key)
        return None

    def _ordered(self, step: _Step) -> list[Break]:
        """The breaks of a step; if the run was profiled, the most expensive come first."""
        if self._report.profile is None:
            return list(step.ran.report.breaks)
        seconds = {cost.break_: cost.seconds or 0.0 for cost in self._report.profile.breaks}
        costs = {break_key(b, Plan()): seconds.get(b.id, 0.0) for b in self._report.breaks}
        return sorted(step.ran.report.breaks, key=lambda b: -costs.get(break_key(b, step.plan), 0.0))

    def _id(self, b: Break, step: _Step) -> str | None:
        """The run's id of a step's break; None if the run does not have it."""
        known = {break_key(other, Plan())[0]: other.id for other in self._report.breaks}
        return known.get(break_key(b, step.plan)[0])

    def _candidates(self, b: Break, step: _Step) -> list[Candidate]:
        problems = problems_of(b, step.plan.text)
        return [
            candidate
            for source in CANDIDATE_SOURCES
            for problem in problems
            if source not in _NOT_FOR_ENTRIES or problem.function not in self._entries
            for candidate in self._made(source, problem.function, problem)
        ]

    def _screen(self, step: _Step) -> None:
        """Trace the first wraps for all breaks together, then the second ones, and so on.

        One whose break stays there is not traced by itself.  Nothing else is concluded: the changes act on each other.
        """
        breaks = step.ran.report.breaks if len(step.ran.report.breaks) > 2 else []
        made = [(b, [c for c in self._candidates(b, step) if c.kind == "wrap"]) for b in breaks]
        for wraps_ in itertools.zip_longest(*(wraps_ for _, wraps_ in made)):
            plan, together = step.plan, list[tuple[Break, Candidate]]()
            pairs = [(b, c) for (b, _), c in zip(made, wraps_, strict=True) if c is not None]
            for b, c in sorted(pairs, key=lambda pair: -pair[1].edits[0].first_line):  # the lines above keep their numbers
                with contextlib.suppress(NotApplicable):
                    plan = plan.with_candidate(c)
                    together.append((b, c))
            if len(together) > 1:
                self._say(f"tracing {len(together)} changes at once")
                with contextlib.suppress(NotApplicable):
                    after = self._trace(plan, lambda report: False).report
                    for b, c in together:
                        if why_no_better(after, step.ran.report, plan, step.plan, b) == STAYS:
                            self._hopeless.add((self._id(b, step), c.title))

    def _fix(self, b: Break, step: _Step, key: Key) -> _Step | None:
        id, made = self._id(b, step), self._candidates(b, step)
        # a change that captures more but leaves its break could be made again and again, each time in its own lines
        again = {s.change.fix.title for s in self._steps if s.change.gain and id in (None, s.change.fix.break_)}
        made = [c for c in made if c.title not in again]
        return self._first_that_holds(
            made, step, key, id, None, lambda report, plan: why_no_better(report, step.ran.report, plan, step.plan, b)
        )

    def _fix_recompile(self, recompile: Recompile, step: _Step, key: Key) -> _Step | None:
        report = step.ran.report
        frame = report.frame(recompile.frame)
        made = self._made(settings.for_recompile, frame.name, recompile, frame.name, step.plan.text(frame.file))
        known = {recompile_key(other, self._report, Plan()): other.frame for other in reversed(self._report.recompiles)}
        id = known.get(key)
        return self._first_that_holds(made, step, key, None, id, lambda after, plan: why_recompiles_stay(after, report))

    def _made(self, source: Callable[..., list[Candidate]], function: str, *args: object) -> list[Candidate]:
        """What a source makes for a function; none, and a note, if it raises an exception."""
        try:
            return list(map(live_edit.without_known_import, source(*args)))
        except Exception as error:
            name = source.__module__.rpartition(".")[2]
            note = f"No change by `{name}` was tried for {function}: it raised {type(error).__name__}"
            self.found.notes += [note] if note not in self.found.notes else []
            return []

    def _first_that_holds(
        self,
        made: list[Candidate],
        step: _Step,
        key: Key,
        break_: str | None,
        recompile: str | None,
        why_worse: Callable[[Report, Plan], str | None],
    ) -> _Step | None:
        """The next step with the first of these candidates that holds.

        Each candidate becomes a fix of the Report; it replaces the one of an earlier trial of the same change.
        """
        # by title, because the same change has other line numbers on top of another plan
        made = [c for c in made if (break_ or recompile, c.title) not in self._dropped]
        changes: list[_Change] = []
        for c in made:
            if not any((c.edits, c.settings) == (other.candidate.edits, other.candidate.settings) for other in changes):
                changes.append(self._change(c, step, break_, recompile))
        listed, own = {c.title for c in made}, [s.change.fix for s in self._steps]
        earlier = [x for x in self.found.fixes if x.title in listed and (break_ or recompile) and x not in own]
        same = [x for x in earlier if (x.break_, x.recompile) == (break_, recompile)]
        self.found.fixes = [*(x for x in self.found.fixes if x not in same), *(c.fix for c in changes)]
        for number, change in enumerate(changes):
            self._say(f"trying change {self._tried + 1}: {change.candidate.title}")
            self._tried += 1
            if change.candidate.kind == "wrap" and not self._is_screened:
                self._is_screened = True
                self._screen(step)
            if break_ is not None and (break_, change.candidate.title) in self._hopeless:
                change.fix.verdict, change.fix.reason = "refused", STAYS
                continue
            better = self._try(change, step, key, why_worse)
            conditions = [] if better is None or self._allows_conditions else self._open([*self._steps, better])
            if conditions:
                self._conditional.add(key)
                change.fix.reason = f"holds only under a condition: {conditions[0]}"
            elif better is not None:
                change.instead = [other.fix for other in changes[number + 1 :]]
                return better
        return None

    def _try(self, change: _Change, step: _Step, key: Key, why_worse: Callable[[Report, Plan], str | None]) -> _Step | None:
        """The step with this change; None if it does not hold: then its fix is refused, with the reason."""
        candidate, fix, before = change.candidate, change.fix, step.ran.report
        try:
            plan = step.plan.with_candidate(candidate)

            def why_refused(after: Report) -> str | None:
                return None if candidate.kind == "rewrite" and captures_more(after, before) else why_worse(after, plan)

            ran = self._trace(plan, lambda after: why_refused(after) is None)
            fix.after = ran.counts
            if (refusal := why_refused(ran.report)) is not None:
                raise Refused(refusal)
            reason = why_worse(ran.report, plan)
            if fix.recompile is None and ran.cost is not None and step.ran.cost is not None and ran.cost > 2 * step.ran.cost:
                raise Refused(f"a call after the first one does more outside graphs: {step.ran.words()} → {ran.words()}")
            better = _Step(plan, ran, change, step.gains + (reason is not None))
            if self._batch == 1:
                self._verify(better)
        except (NotApplicable, Refused) as failed:
            fix.verdict, fix.reason = "refused", str(failed)
            if isinstance(failed, _Stopped):
                fix.verdict, fix.reason = "untried", ""
            return None
        stays = "The graph break stays" if fix.recompile is None else "The recompiles stay"
        change.gain = "" if reason is None else gain(ran.report, before, stays)
        return better

    # -- the end ------------------------------------------------------------------------------------------------------

    def _complete(self) -> None:
        """Compare the sum on all inputs if there was no time for that before: then that is no condition any more."""
        if UNTRIED in _verified(self._steps, -1).conditions:
            self._say(f"verifying {plural(len(self._steps) - 1, 'change')} on all inputs")
            try:
                self._steps[-1].verification = self._compared(self._steps[-1])
            except Refused as reason:
                steps = enumerate(self._steps)
                self._drop_from(next(n for n, _ in steps if UNTRIED in _verified(self._steps, n).conditions), str(reason))
                return
        if UNTRIED not in _verified(self._steps, -1).conditions:
            for step in self._steps:
                if step.verification is not None and UNTRIED in step.verification.conditions:
                    step.verification = None  # what the sum has shown holds for it, too, with the conditions of the sum

    def _leave_out(self) -> None:
        """Drop settings that later changes have made unnecessary."""
        last = self._steps[-1]
        for number, step in enumerate(self._steps[:-1]):
            setting = step.change.candidate
            if number < self._sure or setting.kind != "setting" or WARM_UP in setting.settings:  # all trials are warmed up
                continue
            kept = self._steps[:number]
            try:
                for other in self._steps[number + 1 :]:
                    plan = kept[-1].plan.with_candidate(other.change.candidate)
                    kept.append(replace(other, plan=plan, ran=self._trace(plan), verification=None))
                smaller = kept[-1]
                if (smaller.badness, -operations(smaller.ran.report)) > (last.badness, -operations(last.ran.report)):
                    continue
                self._verify(smaller)
                if not _verified(kept, -1).conditions.keys() <= _verified(self._steps, -1).conditions.keys():
                    continue
            except (NotApplicable, Refused):
                continue
            step.change.fix.verdict, step.change.fix.reason = "refused", "not needed with the changes after it"
            self._steps = kept
            self._leave_out()
            return

    def _confirm(self) -> None:
        """Run the calls with the run's backend, too; refuse the conditional changes, then all, if the results differ.

        If there is no time for that, that is a condition of each.  Does nothing if there are no changes, or if the backend is a
        callable or one that the search has used.
        """
        backend = self._trials.settings.backend
        is_changed = any(WARM_UP not in step.change.candidate.settings for step in self._steps[1:])
        if not is_changed or not isinstance(backend, str) or backend in (QUICK, THOROUGH):
            return
        self._say(f"running the fixed program with {backend}")
        plan, verification = self._steps[-1].plan, _verified(self._steps, -1)
        try:
            self._tick()
            ran = self._trials.run(plan, backend)
            if not any(seen.drew for seen in ran.observed):  # random numbers may differ
                seen = self._verifier.compare(plan, ran.observed, backend)
                verification.differs = verification.differs or seen.differs
        except _ENDS as ended:
            self._stopped(ended)
            for step in self._steps[1:]:
                if step.verification is not None and WARM_UP not in step.change.candidate.settings:
                    step.verification.conditions[backend] = f"There was no time to run it with the backend {backend}"
        except (NotApplicable, Refused) as reason:
            self._drop_from(self._sure if len(self._steps) > self._sure else 1, f"with the backend {backend}: {reason}")
            self._confirm()

    def _credit(self) -> None:
        """Record what each chosen change removes, what it assumes, and the breaks that appear with it."""
        last, moved, known = self._steps[-1], list[str](), set[str]()
        self._sure = 1
        for number in range(1, len(self._steps)):
            if _conditions(self._steps, number):
                break
            if self._steps[number].badness < self._steps[self._sure - 1].badness:  # else it needs those after it
                self._sure = number + 1
        for number, (before, step) in enumerate(itertools.pairwise(self._steps), 1):
            change, now, then = step.change, step.ran.report, before.ran.report
            fix, is_sure = change.fix, number < self._sure
            fix.verdict = "verified" if is_sure else "conditional"
            if not is_sure:
                fix.condition = ". ".join(_conditions(self._steps, number)) or _AS_OTHERS
            compared = self._sure - 1 if is_sure else -1
            fix.reason = ". ".join(filter(None, [_verified(self._steps, compared).words(), change.gain]))
            if WARM_UP in change.candidate.settings:
                fix.reason = "traced again after the recorded calls, they do not come back"
            remarks = settings.assumptions(change.candidate.settings, last.ran.report)
            remarks += caught_in_graph(last.ran.report, last.plan.text) if before is self._steps[0] else []
            remarks += [ZERO_GRADIENT] if _verified(self._steps, number).zero_gradients else []
            new_remarks = [r for r in remarks if r not in known]
            known |= set(new_remarks)
            fix.assumption = ". ".join(filter(None, [change.candidate.assumption.rstrip("."), *new_remarks]))
            fix.before, fix.after = before.ran.counts, step.ran.counts
            if change.gain:
                continue
            fix.removes, moved = removed(self._report, now, step.plan, then, before.plan, moved)
            if fix.removes and (fix.break_ or fix.recompile) not in fix.removes:  # it was tried for another one
                is_break = any(b.id == fix.removes[0] for b in self._report.breaks)
                fix.break_, fix.recompile = (fix.removes[0], None) if is_break else (None, fix.removes[0])
            new = appeared(now, step.plan, then, before.plan)
            if new:
                stays = appeared(self._steps[compared].ran.report, self._steps[compared].plan, then, before.plan)
                fix.reason += f". A graph break appears at {new}" + ("" if stays else ", which a later change removes")
        for end in sorted({self._sure, len(self._steps)}):
            chosen, conditional = self._steps[:end], self._steps[self._sure - 1 : end]
            conditions = [(b.plan, s.plan, s.change.fix.condition) for b, s in itertools.pairwise(conditional)]
            fixes = [step.change.fix for step in chosen[1:]]
            self.found.fixed.append(FixedProgram(chosen[-1].plan, chosen[-1].ran, fixes, conditions))

    def _name_unfixable(self) -> None:
        """Add a refused fix, with the reason, for each break of the run that remains and for which there was no candidate."""
        ids = {fix.break_ for fix in self.found.fixes}
        tried = {break_key(b, Plan())[0] for b in self._report.breaks if b.id in ids}
        remain = {break_key(b, step.plan)[0] for step in self._steps[-1:] for b in step.ran.report.breaks}
        for b in self._report.breaks:
            if break_key(b, Plan())[0] in remain - tried:
                id, why = f"x{next(self._ids)}", reasons.reason(b.type)
                self.found.fixes.append(Fix(id=id, break_=b.id, title="No change is known", verdict="refused", reason=why))

    def _explain(self) -> None:
        """Record why changes that seemed to hold are not chosen, and why others were not tried."""
        stopped = self._why_stopped or TIME_LIMIT
        taken: dict[str, str] = {}
        for change in (step.change for step in self._steps[1:]):
            fix = change.fix
            if not self._is_confirmed:
                fix.reason = f"not verified: {stopped}"
                continue
            taken |= {id: fix.title for id in (fix.break_, fix.recompile, *fix.removes) if id is not None}
            taken |= {other.id: fix.title for other in change.instead}
        gone = {id for step in self._steps[1:] for id in step.change.fix.removes}
        for fix in self.found.fixes:
            if fix.verdict == "untried" and not fix.reason:
                own = fix.break_ or fix.recompile or ""
                first = taken.get(fix.id) or taken.get(own)
                fix.reason = "" if self.found.is_complete else stopped
                if first:
                    fix.reason = f"not needed: “{first}” holds" if own in gone else f"“{first}” was chosen in its place"
        chosen = [step.change.fix for step in self._steps[1:]]
        titles = {fix.title for fix in chosen}
        # of a change that was tried again, on top of others, the last word counts
        last = {(fix.break_ or fix.recompile or fix.title in titles, fix.title): fix for fix in [*self.found.fixes, *chosen]}
        self.found.fixes = [fix for fix in self.found.fixes if fix.reason and (fix in chosen or fix in last.values())]

    def _stopped(self, ended: BaseException) -> None:
        reason = INTERRUPTED if isinstance(ended, KeyboardInterrupt) else TIME_LIMIT
        if self.found.is_complete:
            self.found.is_complete, self._why_stopped = False, reason
            option = " (--fix-seconds)" if reason == TIME_LIMIT else ""
            self.found.notes.append(f"{reason[0].upper()}{reason[1:]}{option}: not every change was tried and confirmed")

    def _tick(self) -> None:
        if self._why_stopped == INTERRUPTED:
            raise OutOfTime
        waiting = self._conditional and not self._allows_conditions
        if time.perf_counter() - self._started > self._seconds * (_SURE_SHARE if waiting else 1):
            raise OutOfTime


def _entry_name(call: RecordedCall) -> str:
    """The qualified name of the compiled function, or of a module's `forward`."""
    target = marks.undecorated(marks.inner_function(call.target))
    return str(getattr(target, "__qualname__", None) or f"{type(target).__qualname__}.forward")
