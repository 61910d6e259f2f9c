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
import functools
import itertools
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from dynascope.compiler.capture.torch_private import marks
from dynascope.compiler.lab.fix import improvement, live_edit
from dynascope.compiler.lab.fix.candidate import Candidate, Problem, problems_of
from dynascope.compiler.lab.fix.plan import WARM_UP, Conditions, Plan
from dynascope.compiler.lab.fix.rewrites import branches, comprehensions, guards, messages, numbers, settings, wraps
from dynascope.compiler.lab.fix.text_edits import NotApplicable
from dynascope.compiler.lab.fix.trial import TookTooLong, TrialResult, Trials
from dynascope.compiler.lab.fix.verification import QUICK, THOROUGH, UNTRIED, OutOfTime, Refused, Verification, Verifier
from dynascope.compiler.lab.objects import CACHE, Reachable
from dynascope.compiler.lab.recorded_call import RecordedCall, Say
from dynascope.compiler.parsing import no_syntax_warnings
from dynascope.compiler.report import Break, Counts, Fix, Recompile, Report, error_words, listed, plural
from dynascope.compiler.report.measurements import STAYS, THE_BREAK
from dynascope.compiler.source.code import compiled_name, user_name
from dynascope.compiler.source.code_swap import found_once

CandidateSource = Callable[[Problem], list[Candidate]]
#: in the order in which they are tried; those of the first are settings, which are combined
CANDIDATE_SOURCES: tuple[CandidateSource, ...] = (
    settings.candidates, numbers.candidates, numbers.of_numpy, guards.known_first, guards.raising, guards.indexing,
    branches.candidates, comprehensions.candidates, messages.candidates, wraps.of_the_function, wraps.of_what_is_called,
)  # fmt: skip
#: the share of the time for verified changes, if others hold under a condition
_SURE_SHARE = 0.4
#: of calls in eager mode, which are conditional but come before all other changes: these hold with and without them
_LATER = "Calls that were not recorded do not meet these graph breaks either, as they would in code for, say, every tenth call"
_AS_OTHERS = "The same as for {}, together with which it was compared"
#: traced code has no cache, and the repeated calls never run what the recorded ones have put into it
_EMPTY_CACHE = "What {} does while its cache is empty, such as to print, may be lost: repeated calls find the cache filled"
_NONE, _NONE_FITS = "No change was tried", "no known one fits this line by itself"
_ABSENT = "it is not in the repeated calls"
#: what ends a search before it is complete
_ENDS = (OutOfTime, TookTooLong, KeyboardInterrupt)
TIME_LIMIT, INTERRUPTED = "the time limit was reached", "the search was interrupted"


class _Untried(NotApplicable):
    """The change is not known to hold, or not yet allowed to; the message says why, unless it is that the search has ended."""


@dataclass
class SearchResult:
    """The outcome of a search."""

    fixes: list[Fix] = field(default_factory=list)
    before: TrialResult = field(default_factory=lambda: TrialResult(Report()))
    #: the calls, traced again without any change
    again: Report | None = None
    #: with the verified fixes; then, if there are any, with the conditional ones, too
    fixed: list[FixedProgram] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    is_complete: bool = True
    seconds: float = 0.0


@dataclass
class FixedProgram:
    """The program with chosen fixes, and what the compiler makes of it."""

    plan: Plan
    after: Counts
    fixes: list[Fix] = field(default_factory=list)
    conditions: Conditions = ()


@dataclass
class _Tried:
    """A plan, what the compiler made of it, and what its verification has shown: nothing of that is done twice."""

    plan: Plan
    ran: TrialResult
    found: Verification | NotApplicable | Refused | None = None


@dataclass
class _Step:
    """The program with the candidates chosen up to here; `candidate` and `fix` are of the last one."""

    tried: _Tried
    #: without a meaning for the unchanged program
    candidate: Candidate = field(default_factory=lambda: Candidate("setting", ""))
    fix: Fix = field(default_factory=lambda: Fix(id=""))
    #: what is better, for a rewrite that is kept only because it captures more; else "".  How many such rewrites there are
    gain: str = ""
    gains: int = 0
    #: how many frames no longer run eagerly though no more is captured, as where a generator is not started: no gain
    vain: int = 0
    #: the program before a change with which it is worse elsewhere; None if it is not
    lost: TrialResult | None = None
    #: the fixes that were not tried because this one holds
    instead: list[Fix] = field(default_factory=list)
    #: whether it is verified by itself, and not only by a later one
    is_verified: bool = False

    @property
    def plan(self) -> Plan:
        return self.tried.plan

    @property
    def report(self) -> Report:
        return self.tried.ran.report

    @property
    def verification(self) -> Verification | None:
        return self.tried.found if self.is_verified and isinstance(self.tried.found, Verification) else None

    @property
    def badness(self) -> tuple[bool, int, int, int]:
        # smaller is better; a change that only moves a break may capture more, too, but does not count as better
        eager = improvement.eager_frames(self.report) + self.vain
        return self.lost is not None, len(self.report.breaks) + eager, self.report.summary.recompiles, -self.gains


def _verified(steps: Sequence[_Step], number: int) -> Verification:
    """What was verified of a step: by itself, or by the sum of the changes up to a later one, if that was compared on more.

    Such a sum may have no other conditions: they could be those of the later changes.
    """
    found = [step.verification for step in steps[number:] if step.verification is not None] or [Verification()]
    known = found[0].conditions.keys() - {UNTRIED}
    return next((v for v in found if v.conditions.keys() <= known), found[0])


def _conditions(steps: Sequence[_Step], number: int) -> list[str]:
    """The conditions of a step that those before it do not have; first come the differences that were seen."""
    earlier = {way for step in steps[:number] if step.verification is not None for way in step.verification.conditions}
    own = sorted(_verified(steps, number).conditions.items(), key=lambda condition: condition[0] == UNTRIED)
    return [words for way, words in own if way not in earlier]


def _why_worse(problem: Break | Recompile | None, after: Report, plan: Plan, step: _Step) -> str | None:
    """Why the compiler does no better than in a step for a break or a recompile, or (None) fails in more; None if not so."""
    if isinstance(problem, Break):
        return improvement.why_no_better(after, step.report, plan, step.plan, problem)
    if isinstance(problem, Recompile):
        return improvement.why_recompiles_stay(after, step.report, plan, step.plan, problem)
    return improvement.failure(after, step.report) or None


class Search:
    """One search for fixes."""

    def __init__(
        self, trials: Trials, report: Report, seconds: float, profiled: RecordedCall | None, is_whole: bool, on_progress: Say
    ) -> None:
        """`is_whole`: whether the trials repeat all calls of the run: breaks that do not come back then need a first call."""
        self._trials, self._report = trials, report
        self._entries = set(map(_entry_name, trials.calls))
        self._seconds, self._profiled, self._is_whole, self._on_progress = seconds, profiled, is_whole, on_progress
        self._started = time.perf_counter()
        trials.deadline = self._started + seconds
        self._verifier = Verifier(trials, self._tick)
        #: the unchanged program, the calls in eager mode if they are chosen, then what is searched for, from `_first` on
        self._steps: list[_Step] = []
        self._first = 1
        self._tried: list[_Tried] = []
        #: how many changes are traced before their sum is verified
        self._batch = 1.0
        #: breaks and recompiles for which no candidate holds
        self._given_up: set[tuple[object, ...]] = set()
        #: changes with which their break stays
        self._hopeless: set[tuple[improvement.Key, str]] = set()
        self._is_screened = False
        #: what is not tried again: (id of a break or recompile, title) of dropped changes
        self._dropped: set[tuple[str | None, str]] = set()
        #: refused changes, with those that were chosen then: without them, there might be no reason
        self._refused: list[tuple[Fix, list[Fix]]] = []
        #: the first part of the search chooses only verified changes; whether others are known to hold under a condition
        self._allows_conditions, self._has_conditional = False, False
        self._ids, self._numbers = itertools.count(), itertools.count(1)
        self._why_stopped, self._has_answer = "", False
        self.found = SearchResult()

    def run(self) -> SearchResult:
        """Search until nothing more can be fixed, the time is over, or an interrupt comes."""
        with found_once(), no_syntax_warnings():
            try:
                if self._start():
                    self._search()
            except _ENDS as ended:
                self._stopped(ended)
        self._trials.deadline = math.inf
        self._explain()
        self.found.seconds = time.perf_counter() - self._started
        return self.found

    def _search(self) -> None:
        for self._allows_conditions in (False, True):
            self._given_up.clear()
            self._dropped.clear()
            try:
                self._choose()
                if self._allows_conditions and not self._why_stopped:
                    self._complete()
            except _ENDS as ended:
                self._cut_back()
                del self._steps[self._first_unverified() :]  # there is no time to verify more
                if self._allows_conditions or not isinstance(ended, OutOfTime):
                    self._stopped(ended)
                    self._choose()  # of what is known by now
        if self._why_stopped:
            self._seconds *= 1.5  # more time, to confirm what was found so far
            self._trials.deadline = self._started + self._seconds
        self._confirm()
        self._credit()
        self._name_unfixable()
        profile = self._report.profile
        if len(self._steps) > 1 and profile is not None and self._profiled is not None and self._why_stopped != INTERRUPTED:
            start, whole = self._steps[0].tried.ran, self._report.summary
            start.seconds, same = profile.verdict.compiled_seconds, (whole.graphs, whole.breaks, whole.recompiles)
            if (start.counts.graphs, start.counts.breaks, start.report.summary.recompiles) != same:
                # compiled anew, it lacks breaks or versions of the first calls: what that saves is no fix's gain
                start.seconds = self._trials.seconds(self._profiled, Plan(), profile.calls)
            for fixed in self.found.fixed:
                # code with the breaks of the first call is not there to be timed
                if fixed.fixes and (WARM_UP in fixed.plan.settings) == (self._first > 1):
                    fixed.after.seconds = self._trials.seconds(self._profiled, fixed.plan, profile.calls)

    def _start(self) -> bool:
        """Run the unchanged program; returns whether it does again what it did."""
        self._say("running the calls again")
        try:
            raises = self._leave_out_raising()
            tried = self._trace(Plan())
            ran = tried.ran
            if all(seen.error is None for seen in ran.observed):
                self.found.before, self.found.again = ran, None if ran.varies or raises else ran.report
            self._verifier.compare(Plan(), ran.observed)
        except (NotApplicable, Refused) as reason:
            self.found.notes.append(f"No change was tried: the unchanged program gave another result when run again: {reason}")
            return False
        self._steps, self.found.before = [_Step(tried)], ran
        run, again, calls = self._report, ran.report.summary.recompiles, plural(len(self._trials.calls), "call")
        counts = [(len(run.own_breaks), len(ran.report.breaks), "graph break"), (run.summary.recompiles, again, "recompile")]
        fewer = [f"{plural(now, what)}, not {was}" for was, now, what in counts if now < was]
        gone = improvement.gone(run, ran.report) if len(ran.report.breaks) < len(run.own_breaks) else []
        if gone and self._is_whole and not (ran.varies or raises) and not improvement.depends_on_values(run, gone):
            self._warm_up(ran)
        elif fewer:
            # arguments of the program's own torch.compile are not known
            own = " and without the arguments of its own torch.compile" * any(c.entry is c.target for c in self._trials.calls)
            gives = f"Repeating {calls} after the run, each by itself{own}, gives {', and '.join(fewer)}"
            self.found.notes += [f"{gives}: no change was tried for what is not in these calls"] if self._trials.calls else []
            known = {*map(improvement.extent, ran.report.breaks)}
            others = [b for b in run.own_breaks if improvement.extent(b) not in known]
            self.found.fixes += [
                Fix(id=f"x{next(self._ids)}", break_=b.id, title=_NONE,
                    reason=_ABSENT + ", which run without the backend" * (b.type == improvement.OF_BACKEND))
                for b in others
            ]  # fmt: skip
        return True

    def _leave_out_raising(self) -> bool:
        """Leave out the calls that raise when repeated, but did not when recorded: what they read, say a gradient, is gone.

        Returns whether there are any.
        """
        kept = list[RecordedCall]()
        for call in self._trials.calls:
            error, name = self._verifier.in_eager_mode(call).error, user_name(_entry_name(call).rpartition("<locals>.")[2])
            if call.returned and isinstance(error, Exception):
                self.found.notes.append(f"When repeated, a call of {name} raised {error_words(error)}")
            else:
                kept.append(call)
        raises, self._trials.calls = len(kept) < len(self._trials.calls), kept
        return raises

    def _warm_up(self, again: TrialResult) -> None:
        """Choose a call in eager mode before the compiled one; `again`: the calls, traced again after the run."""
        title = "Make the calls once in eager mode before compiling"
        candidate = Candidate("setting", title, settings={WARM_UP: "force_eager"})
        self.found.before = TrialResult(self._report, again.observed)
        first = _Step(_Tried(Plan(), self.found.before))
        fix = self._fix(candidate, first, self._report.breaks[0].id, None)
        self._tried.append(_Tried(Plan(settings=dict(candidate.settings)), again, Verification(conditions={WARM_UP: _LATER})))
        self._first, self._steps = 2, [first, _Step(self._tried[-1], candidate, fix, is_verified=True)]
        self.found.fixes.append(fix)

    def _say(self, sentence: str) -> None:
        """Tell what is done now, and how many graph breaks are known to go by then."""
        chosen = self._steps[: self._first_unverified()]
        known = [*(step.tried for step in chosen[-1:]), *(t for t in self._tried if isinstance(t.found, Verification))]
        before = len(chosen[0].report.breaks) if chosen else 0
        now = min((len(tried.ran.report.breaks) for tried in known), default=0)
        condition = "" if self._first == 1 and chosen and now == len(chosen[-1].report.breaks) else " under a condition"
        so_far = f"graph breaks {before} → {now}{condition}; " if now < before else ""
        self._on_progress(so_far + sentence)

    # -- trials --------------------------------------------------------------------------------------------------------

    def _trace(self, plan: Plan, is_better: Callable[[Report], bool] = lambda report: True) -> _Tried:
        """What the compiler makes of the program under this plan; of what is better, how often it leaves graphs is counted."""
        tried = next((known for known in self._tried if known.plan == plan), None)
        if tried is None:
            if self._why_stopped:
                raise _Untried
            self._tick()
            tried = _Tried(plan, self._trials.run(plan, QUICK, is_better))
            self._tried.append(tried)
        return tried

    def _verify(self, step: _Step) -> list[str]:
        """Verify a step on top of those that are chosen, and return its own conditions.

        Raises NotApplicable or Refused; in the first part of a search, also for conditions, except that time was short.
        """
        tried, steps = step.tried, [*(s for s in self._steps if s is not step), step]
        if tried.found is None:
            if self._why_stopped:
                raise _Untried
            try:
                self._verifier.compare(tried.plan, tried.ran.observed)
                if not self._has_answer:
                    self._compare(step, 0)  # a first answer, from now on
                    self._say("comparing more inputs")
                self._compare(step, (self._started + self._seconds - time.perf_counter()) / 4, steps[-2].plan)
                self._has_answer = True
            except (NotApplicable, Refused) as failed:
                tried.found = failed
        if isinstance(tried.found, (NotApplicable, Refused)):
            raise tried.found
        step.is_verified = True
        conditions, untried = _conditions(steps, -1), _verified(steps, -1).conditions.get(UNTRIED)
        against = [words for words in conditions if words != untried]
        if against and not self._allows_conditions:
            step.is_verified, self._has_conditional = False, True
            raise _Untried(f"holds only under a condition: {against[0]}")
        return conditions

    @functools.cached_property
    def _cached(self) -> set[str]:
        """Names of the functions under `functools.lru_cache` that the calls can reach and whose caches were of use."""
        reached = (o for call in self._trials.calls for o in Reachable([call.target, call.arguments]).objects)
        return {str(getattr(o.__wrapped__, "__qualname__", "")) for o in reached if type(o) is CACHE and o.cache_info().hits}

    def _compare(self, step: _Step, seconds: float = math.inf, before: Plan | None = None) -> None:
        """Compare a step for so long; without a limit, it is verified then, whatever is verified of the plan before it."""
        found = self._verifier.verify(step.plan, seconds=seconds, before=before)
        reports = step.report, self._steps[0].report
        found.conditions |= settings.conditions(*reports, step.plan.text)
        stay, were = ({n for b in r.breaks for n in (b.function, *(call.function for call in b.stack))} for r in reports)
        found.conditions |= {f"cache {name}": _EMPTY_CACHE.format(name) for name in sorted((were - stay) & self._cached)}
        step.tried.found, step.is_verified = found, step.is_verified or seconds == math.inf

    # -- the search ---------------------------------------------------------------------------------------------------

    def _choose(self) -> None:
        """Add all changes that hold, and drop those that are not needed any more."""
        first = len(self._steps)
        self._combine_settings()
        self._extend()
        for setting in [step.candidate for step in self._steps[first:-1] if step.candidate.kind == "setting"]:
            self._leave_out(setting)

    def _combine_settings(self) -> None:
        """Add the settings that help together, if there is more than one break: only their sum is verified."""
        first, self._batch = self._steps[-1], math.inf
        made: dict[str, tuple[Candidate, str | None]] = {}
        breaks = self._ordered(first)
        for b in breaks if len(breaks) > 1 else ():
            for c in self._candidates(b, first, CANDIDATE_SOURCES[:1]):
                if not c.edits:
                    made.setdefault(str(c.settings), (c, self._id(b, first)))

        def added(c: Candidate, break_: str | None, step: _Step) -> list[_Step]:
            better = self._try(c, self._fix(c, step, break_, None), step, None)
            return [] if better is None or any(seen.error for seen in better.tried.ran.observed) else [better]

        ways = list[_Step]()
        for number, (c, break_) in enumerate(made.values(), 1):
            self._say(f"tracing with setting {number} of {len(made)}: {c.title}")
            ways += added(c, break_, first)
        ways.sort(key=lambda way: way.badness)
        start = len(self._steps)
        while ways:
            for way in ways:
                self._steps += added(way.candidate, way.fix.break_, self._steps[-1])
            while len(self._steps) > start:
                self._say(f"verifying {plural(len(self._steps) - start, 'setting')}")
                with contextlib.suppress(NotApplicable, Refused):
                    self._verify(self._steps[-1])
                    self.found.fixes += [step.fix for step in self._steps[start:]]
                    return
                self._steps.pop()  # the last ones are left out if the sum does not hold
            del ways[0]  # it does not hold by itself

    def _extend(self) -> None:
        """Add steps until no remaining break or recompile can be fixed; those that only uncover others are dropped again."""
        self._batch, self._is_screened = 1, False
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
        return 1 + max((number for number, step in enumerate(self._steps) if step.verification is not None), default=0)

    def _settle(self) -> bool:
        """Verify the steps after the last verified one by their sum; False: they are to be tried again, one by one."""
        first = self._first_unverified()
        if first == len(self._steps):
            return True
        self._say(f"verifying {plural(len(self._steps) - first, 'change')}")
        with contextlib.suppress(NotApplicable, Refused):
            if not self._verify(self._steps[-1]) and not _verified(self._steps, -1).assumption:
                self._batch *= 2
                return True
        self._batch = 1
        self._given_up.clear()
        del self._steps[first:]
        return False

    def _cut_back(self) -> bool:
        """Drop the steps after the best one: they only uncover other breaks; returns whether that allows other changes."""
        best = min(range(self._first - 1, len(self._steps)), key=lambda number: self._steps[number].badness)
        dropped = self._steps[best + 1 :]
        if not dropped:
            return False
        step, worse = self._steps[best], dropped[0]
        new = improvement.appeared(worse.report, worse.plan, step.report, step.plan)
        elsewhere = self._why_worse_elsewhere(worse.tried, worse.lost) if worse.lost is not None else ""
        moves = f"it only moves {THE_BREAK} to {new}" if new else "it only uncovers another graph break" * (not elsewhere)
        what = ", and ".join(filter(None, [elsewhere, moves]))
        sure = " that holds without a condition" if self._has_conditional and not self._allows_conditions else ""
        found = f"no fix{sure} was found" + " in time" * (not self.found.is_complete)
        self._drop_from(best + 1, f"{found} for what it leads to: {what}")
        return any(step.instead or step.lost is not None for step in dropped)

    def _drop_from(self, number: int, reason: str) -> None:
        """Refuse a step, and drop those after it, which build on it and may be tried again."""
        fixes = [step.fix for step in self._steps[number:]]
        self._dropped.add((fixes[0].break_ or fixes[0].recompile, fixes[0].title))
        for fix in fixes:
            fix.verdict, fix.reason = "untried", "tried only on top of a change that does not hold"
        self._given_up.clear()
        del self._steps[number:]
        self._refuse(fixes[0], reason)

    def _refuse(self, fix: Fix, reason: str) -> None:
        fix.verdict, fix.reason = "refused", reason
        if reason != STAYS:
            self._refused.append((fix, [step.fix for step in self._steps[self._first :]]))

    def _improved(self, step: _Step) -> _Step | None:
        """The next step, with one more break or recompile fixed; None if no other can be."""
        problems = list[tuple[improvement.Key, Break | Recompile]]()
        problems += [(improvement.break_key(b, step.plan), b) for b in self._ordered(step)]
        problems += [(improvement.recompile_key(r, step.report, step.plan), r) for r in step.report.recompiles]
        for key, problem in problems:
            # recompiles for which the same guard failed first may have other changes, for guards that failed after it
            tried = key, *((guard.kind, guard.source) for guard in getattr(problem, "failed_guards", ()))
            if tried not in self._given_up:
                if (better := self._first_that_holds(problem, key, step)) is not None:
                    return better
                self._given_up.add(tried)
        return None

    def _ordered(self, step: _Step) -> list[Break]:
        """The breaks of a step; if the run was profiled, the most expensive come first.

        Of a run that ended at a break, those after it are left out: without them, it still ends there.
        """
        found, ends = step.report.breaks, improvement.ends(self._report, step.report, step.plan)
        if ends and self._report.error is not None:
            found = found[: found.index(ends[0]) + 1]
        measured = self._report.profile.breaks if self._report.profile is not None else []
        seconds = {cost.break_: cost.seconds or 0.0 for cost in measured}
        return sorted(found, key=lambda b: -seconds.get(self._id(b, step) or "", 0.0))

    def _id(self, b: Break, step: _Step) -> str | None:
        """The run's id of a step's break; None if the run does not have it."""
        key, known = improvement.break_key(b, step.plan), {improvement.break_key(o, Plan()): o.id for o in self._report.breaks}
        return known.get(key) or next((id for (place, _), id in known.items() if place == key[0]), None)

    def _candidates(self, b: Break, step: _Step, sources: Sequence[CandidateSource]) -> list[Candidate]:
        problems = problems_of(b, step.plan.text)
        return [
            candidate
            for source in sources
            for problem in problems
            # the callers of the functions that the run compiles are not known
            if source != wraps.of_the_function or problem.function not in self._entries
            for candidate in self._made(source, problem.function, problem)
        ]

    def _made(self, source: Callable[..., list[Candidate]], function: str, *args: object) -> list[Candidate]:
        """What a source makes for a function; none if it does not apply, or, with a note, if it raises another exception."""
        try:
            return list(map(live_edit.without_known_import, source(*args)))
        except NotApplicable:
            return []
        except Exception as error:
            name = source.__module__.rpartition(".")[2]
            note = f"No change by `{name}` was tried for {function}: it raised {type(error).__name__}"
            self.found.notes += [note] if note not in self.found.notes else []
            return []

    def _screen(self, step: _Step) -> None:
        """Trace the first wraps for all breaks together, then the second ones, and so on.

        One whose break stays there is not traced by itself.  Nothing else is concluded: the changes act on each other.
        """
        breaks = step.report.breaks if len(step.report.breaks) > 2 else []
        made = [(b, [c for c in self._candidates(b, step, CANDIDATE_SOURCES) if c.kind == "wrap"]) for b in breaks]
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
                    after = self._trace(plan, lambda report: False).ran.report
                    stay = [pair for pair in together if _why_worse(pair[0], after, plan, step) == STAYS]
                    self._hopeless |= {(improvement.break_key(b, step.plan), c.title) for b, c in stay}

    def _first_that_holds(self, problem: Break | Recompile, key: improvement.Key, step: _Step) -> _Step | None:
        """The next step with the first of the candidates for a problem that holds.  Each becomes a fix of the Report."""
        if isinstance(problem, Break):
            made = self._candidates(problem, step, CANDIDATE_SOURCES)
            id = break_ = self._id(problem, step)
            # a change that captures more but leaves its break could be made again and again, each time in its own lines
            without = {s.fix.title for s in self._steps if s.gain and id in (None, s.fix.break_)}
        else:
            frame, break_, without = step.report.frame(problem.frame), None, set()
            called = frame
            while called.continues is not None:
                called = step.report.frame(called.continues)
            marked = frame.name * (called.parent is None)
            made = self._made(settings.for_recompile, frame.name, problem, marked, step.plan.text(frame.file))
            known = (r.frame for r in self._report.recompiles if improvement.recompile_key(r, self._report, Plan()) == key)
            id = next(known, None)
        changes: list[tuple[Candidate, Fix]] = []
        for c in made:
            # by title, because the same change has other line numbers on top of another plan
            is_known = (id, c.title) in self._dropped or c.title in without
            if not is_known and not any((c.edits, c.settings) == (other.edits, other.settings) for other, _ in changes):
                changes.append((c, self._fix(c, step, break_, None if isinstance(problem, Break) else id)))
        self.found.fixes += [fix for _, fix in changes]
        for number, (candidate, fix) in enumerate(changes, 1):
            self._say(f"trying change {next(self._numbers)}: {candidate.title}")
            if candidate.kind == "wrap" and not self._is_screened:
                self._is_screened = True
                self._screen(step)
            if (key, candidate.title) in self._hopeless:
                fix.verdict, fix.reason = "refused", STAYS
            elif (better := self._try(candidate, fix, step, problem)) is not None:
                better.instead = [other for _, other in changes[number:]]
                return better
        return None

    def _fix(self, c: Candidate, step: _Step, break_: str | None, recompile: str | None) -> Fix:
        """The fix that tells of a candidate on top of a step."""
        return Fix(
            id=f"x{next(self._ids)}", break_=break_, recompile=recompile, kind=c.kind, title=c.title,
            edits=list(c.edits), settings=dict(c.settings), assumption=c.assumption,  # type: ignore[arg-type]
            before=step.tried.ran.counts,
        )  # fmt: skip

    def _try(self, candidate: Candidate, fix: Fix, step: _Step, problem: Break | Recompile | None) -> _Step | None:
        """The step with this candidate; None if it does not hold: then its fix is refused, with the reason."""
        try:
            plan = step.plan.with_candidate(candidate)

            def why_refused(after: Report) -> str | None:
                more = candidate.kind == "rewrite" and improvement.captures_more(after, step.report)
                return None if more else _why_worse(problem, after, plan, step)

            tried = self._trace(plan, lambda after: why_refused(after) is None)
            before, after = step.tried.ran, tried.ran
            fix.after = after.counts
            if (refusal := why_refused(after.report)) is not None:
                raise Refused(refusal)
            if (now := fix.after).cost > 2 * ((was := before.counts).cost or math.inf):
                told = f"graph runs {was.graph_runs} → {now.graph_runs}, eager operations {was.eager_ops} → {now.eager_ops}"
                raise Refused(f"by estimate, a later call is slower: {told}")
            if again := after.compiles_more_than(before):
                raise Refused(again)
            if isinstance(problem, Recompile) and _frame_name(step.report, problem) in after.compiled_again:
                raise Refused("the fourth of four equal repeated calls still compiles it")
            then, better = step.lost or before, _Step(tried, candidate, fix, gains=step.gains, vain=step.vain)
            better.lost = then if (elsewhere := self._why_worse_elsewhere(tried, then)) else None
            worse, more = _why_worse(problem, after.report, plan, step), improvement.more_captured(after, before)
            if more <= 0:
                better.vain += max(0, improvement.eager_frames(before.report) - improvement.eager_frames(after.report))
            if (worse and more < 0) or (problem is None and better.badness >= step.badness):
                raise Refused(worse or elsewhere or STAYS)
            if worse is not None:
                better.gain, better.gains = improvement.gain(after.report, step.report), step.gains + 1
            if self._batch == 1:
                self._verify(better)
        except (NotApplicable, Refused) as failed:
            fix.verdict, fix.reason = "untried" if isinstance(failed, _Untried) else "refused", str(failed)
            if isinstance(failed, Refused):
                self._refuse(fix, str(failed))
            return None
        return better

    def _why_worse_elsewhere(self, tried: _Tried, before: TrialResult) -> str:
        """What is worse with a plan, whatever became of a break; "" if nothing is."""
        was, now = (improvement.before_end(self._report, t.ran.report, t.plan) for t in (self._steps[0].tried, tried))
        return "the run ends earlier then" if now < was else improvement.why_worse_elsewhere(tried.ran, before)

    # -- the end ------------------------------------------------------------------------------------------------------

    def _complete(self) -> None:
        """Compare the sum on all inputs if there was no time for that before: then that is no condition any more.

        Where it holds under others, the changes before the last one are compared, too: each condition stands at the change that
        brings it.
        """
        every = range(self._first, len(self._steps))
        for number in [*every[-1:], *every[:-1]]:
            step, found = self._steps[number], _verified(self._steps, number).conditions
            if UNTRIED in found or (found and not step.is_verified):
                self._say(f"verifying {plural(number, 'change')} on all inputs")
                if step is not self._steps[-1]:
                    try:
                        self._compare(step)
                    except (NotApplicable, Refused):
                        step.is_verified = False  # it holds only with those after it
                elif not self._hold(self._compare):
                    return

    def _hold(self, check: Callable[[_Step], None]) -> bool:
        """Check the sum of the changes; if it fails, drop the first change with which it does, and those after it.

        If the search ends before that is known, what has not passed by then is left out, as untried.
        """
        rest = self._steps[self._first :]
        self._dropped |= {(step.fix.break_ or step.fix.recompile, step.fix.title) for step in rest}
        try:
            check(rest[-1])
            return True
        except (NotApplicable, Refused) as failed:
            reason = failed
        del self._steps[self._first :]
        try:
            while len(rest) > 1:
                check(rest[0])
                self._steps.append(rest.pop(0))
        except (NotApplicable, Refused) as failed:
            reason = failed
        self._steps += rest
        self._drop_from(-len(rest), str(reason))
        return False

    def _leave_out(self, setting: Candidate) -> None:
        """Drop a setting if later changes have made it unnecessary."""
        number = next(number for number, step in enumerate(self._steps) if step.candidate is setting)
        last, kept = self._steps[-1], self._steps[:number]
        with contextlib.suppress(NotApplicable, Refused):
            for step in self._steps[number + 1 :]:
                kept.append(replace(step, tried=self._trace(kept[-1].plan.with_candidate(step.candidate)), is_verified=False))
            smaller = kept[-1]
            if (smaller.badness, improvement.more_captured(last.tried.ran, smaller.tried.ran)) <= (last.badness, 0):
                self._verify(smaller)
                if UNTRIED not in (known := _verified(self._steps, -1).conditions.keys()):
                    self._compare(smaller)  # there was time for all of the larger sum, so there is for all of this one
                if _verified(kept, -1).conditions.keys() <= known:
                    fix = self._steps[number].fix
                    fix.verdict, fix.reason = "refused", ""  # `_explain` knows whether those after it are there at the end
                    self._steps = kept

    def _sure(self) -> int:
        """The number of steps up to the last one that holds without a condition, and not only with those after it."""
        sure = self._first
        for number in range(self._first, len(self._steps)):
            if _conditions(self._steps, number):
                break
            if self._steps[number].badness < self._steps[sure - 1].badness:
                sure = number + 1
        return sure

    def _confirm(self) -> None:
        """Run the calls with the run's backend, too; refuse the first change with which the results differ, and those after it.

        If there is no time for that, that is a condition of each.  Does nothing if there are no changes, or if the backend is a
        callable or one that the search has used.
        """
        backend, changed = self._trials.settings.backend, self._steps[self._first :]
        if not changed or not isinstance(backend, str) or backend in (QUICK, THOROUGH):
            return

        def run(step: _Step) -> None:
            self._tick()
            if not step.is_verified:
                self._compare(step)
            ran = self._trials.run(step.plan, backend)
            if step.verification is not None and not any(seen.drew for seen in ran.observed):  # random numbers may differ
                seen = self._verifier.compare(step.plan, ran.observed, backend)
                step.verification.differs = step.verification.differs or seen.differs

        self._say(f"running the fixed program with {backend}")
        try:
            self._hold(run)
        except _ENDS as ended:
            self._stopped(ended)
            known = [step.verification for step in changed if step.verification is not None]
            for verification in known if self._steps[-1] is changed[-1] else ():
                verification.conditions[backend] = f"There was no time to run it with the backend {backend}"

    def _credit(self) -> None:
        """Record what each chosen change removes, what it assumes, and the breaks that appear with it."""
        last, sure, known = self._steps[-1], self._sure(), set[str]()
        first, moved = self._steps[self._first - 1].report, list[str]()
        remain = {r.frame: _frame_name(self._report, r) for r in self._report.recompiles if r.refused_by is None}
        if self._first == 1:  # what does not come back without a change either is no change's gain
            remain = {id: remain[id] for id in improvement.come_back(self._report, first, first, Plan()) if id in remain}
        told = [". ".join(_conditions(self._steps, n) if step.is_verified else []) for n, step in enumerate(self._steps)]
        others = {f"“{self._steps[n].fix.title}”": None for n in range(self._first, len(self._steps)) if told[n]}
        as_others = _AS_OTHERS.format(listed(others, 2))
        for number, (before, step) in enumerate(itertools.pairwise(self._steps), 1):
            fix, is_sure = step.fix, self._first <= number < sure
            compared = sure - 1 if is_sure else len(self._steps) - 1
            fix.verdict = "verified" if is_sure else "conditional"
            if not is_sure:
                of_all = "With all of them: " * (before.fix.condition == as_others)
                fix.condition = of_all + told[number] if told[number] else as_others
            fix.reason = ". ".join(filter(None, [_verified(self._steps, compared).words(), step.gain]))
            if number < self._first:
                fix.reason = "traced again after the recorded calls, they do not come back"
            remarks = settings.assumptions(step.candidate.settings, last.report)
            new_remarks = [r for r in (*remarks, _verified(self._steps, number).assumption) if r not in known]
            known |= set(new_remarks)
            fix.assumption = ". ".join(filter(None, [step.candidate.assumption.rstrip("."), *new_remarks]))
            fix.before, fix.after = before.tried.ran.counts, step.tried.ran.counts
            found, moved = improvement.removed(self._report, step.report, step.plan, before.report, before.plan, moved)
            if step.gain:  # its break stays, perhaps in a changed line
                moved += found
                continue
            stay = improvement.come_back(self._report, first, step.report, step.plan)
            # of a function that is compiled in each call, what goes away in the program is not known
            gone = [id for id in remain if id not in stay and remain[id] not in step.tried.ran.compiled_again]
            remain = {id: name for id, name in remain.items() if id not in gone}
            fix.removes = found + gone
            then, end = (before.report, before.plan), self._steps[compared]
            fix.moves = improvement.within_line(self._report, fix.removes, end.report, end.plan)
            fix.removes = [id for id in fix.removes if id not in fix.moves]
            if fix.removes and (fix.break_ or fix.recompile) not in (*fix.removes, *fix.moves):  # it was tried for another one
                is_break = any(b.id == fix.removes[0] for b in self._report.breaks)
                fix.break_, fix.recompile = (fix.removes[0], None) if is_break else (None, fix.removes[0])
            if new := improvement.appeared(step.report, step.plan, *then):
                stays = improvement.appeared(end.report, end.plan, *then)
                fix.reason += f". A graph break appears at {new}" + ("" if stays else ", which a later change removes")
        for when, step in (("Without a fix", self._steps[0]), ("With the fixes", last))[: len(self._steps)]:
            if names := listed(step.tried.ran.counts.compiled_again, 3):
                why = f"the fourth of four equal repeated calls still compiles {names}"
                self.found.notes.append(f"{when}, the number of recompiles is unknown: {why}")
        steps, plan, after = self._steps, self._steps[sure - 1].plan, self._steps[sure - 1].tried.ran.counts
        if self._first > 1:  # without the calls in eager mode, what they remove stays
            was, again = steps[0].tried.ran.counts, steps[1].tried.ran.counts
            after.breaks, after.graphs = after.breaks + was.breaks - again.breaks, after.graphs + was.graphs - again.graphs
            after.recompiles = after.graph_runs = after.eager_ops = None
            plan = replace(plan, settings={name: value for name, value in plan.settings.items() if name != WARM_UP})
        self.found.fixed = [FixedProgram(plan, after, [step.fix for step in steps[self._first : sure]])]
        unsure = [(b.plan, s) for b, s in itertools.pairwise(steps) if s.fix.verdict == "conditional"]
        pairs = [(b, s.plan, "; assumes: ".join(filter(None, [s.fix.condition, s.fix.assumption]))) for b, s in unsure]
        if pairs:
            self.found.fixed.append(FixedProgram(last.plan, last.tried.ran.counts, [step.fix for step in steps[1:]], pairs))

    def _name_unfixable(self) -> None:
        """Add a fix without a change for each break of the run that remains and for which there was no candidate."""
        ids = {fix.break_ for fix in self.found.fixes}
        tried = {improvement.break_key(b, Plan())[0] for b in self._report.breaks if b.id in ids}
        remain = {improvement.break_key(b, self._steps[-1].plan)[0] for b in self._steps[-1].report.breaks}
        for b in self._report.breaks:
            if improvement.break_key(b, Plan())[0] in remain - tried:
                id, why = f"x{next(self._ids)}", _NONE_FITS if Plan().text(b.file) else "its source cannot be read"
                self.found.fixes.append(Fix(id=id, break_=b.id, title=_NONE, verdict="refused", reason=why))

    def _explain(self) -> None:
        """Record why changes that seemed to hold are not chosen, and why others were not tried."""
        stopped = self._why_stopped or TIME_LIMIT
        taken, gone = dict[str, str](), set[str]()
        chosen = [step.fix for step in self._steps[1:]]
        titles = {fix.title for fix in chosen}
        for step, fix in zip(self._steps[1:], chosen, strict=True):
            if not fix.chosen:
                fix.reason = f"not verified: {stopped}"
                continue
            gone |= set(fix.removes)
            ids = [fix.break_, fix.recompile, *fix.removes, *fix.moves, *(other.id for other in step.instead)]
            taken |= {id: fix.title for id in ids if id is not None}
        for fix in self.found.fixes:
            if not fix.reason:
                own = fix.break_ or fix.recompile or ""
                fix.reason = "" if self.found.is_complete else stopped
                if first := taken.get(fix.id) or taken.get(own):
                    why = f"not needed: “{first}” holds" if own in gone else f"“{first}” was chosen in its place"
                    # else it is chosen, too, on top of that one, or all that it sets is
                    is_part = not fix.edits and fix.settings.items() <= self._steps[-1].plan.settings.items()
                    fix.reason = why * (fix.title not in titles and not is_part)
                elif fix.verdict == "refused":  # it was left out
                    fix.reason = "the chosen changes gain as much without it" if taken else "left out for others, which fail"
        for fix, others in self._refused:
            names = [f"“{other.title}”" + " (dropped later)" * (other.title not in titles) for other in others]
            fix.reason += f"; tried on top of {listed(names, 2)}" if names else ""
        # of a change that was tried again, on top of others, the last word counts
        last = {(fix.break_ or fix.recompile or fix.title in titles, fix.title): fix for fix in [*self.found.fixes, *chosen]}
        self.found.fixes = [fix for fix in self.found.fixes if fix.reason and (fix in chosen or fix in last.values())]

    def _stopped(self, ended: BaseException) -> None:
        reason = INTERRUPTED if isinstance(ended, KeyboardInterrupt) else TIME_LIMIT
        if self.found.is_complete:
            self.found.is_complete, self._why_stopped = False, reason
            option = " (--fix-seconds gives more)" if reason == TIME_LIMIT else ""
            self.found.notes.append(f"{reason[0].upper()}{reason[1:]}{option}: not every change was tried and confirmed")

    def _tick(self) -> None:
        if self._why_stopped == INTERRUPTED:
            raise OutOfTime
        waiting = self._has_conditional and not self._allows_conditions
        if time.perf_counter() - self._started > self._seconds * (_SURE_SHARE if waiting else 1):
            raise OutOfTime


def _frame_name(report: Report, recompile: Recompile) -> str:
    frame = report.frame(recompile.frame)
    return compiled_name(frame.name, frame.code_name)


def _entry_name(call: RecordedCall) -> str:
    """The qualified name of the compiled function, or of a module's `forward`."""
    target = marks.undecorated(marks.inner_function(call.target))
    return str(getattr(target, "__qualname__", None) or f"{type(target).__qualname__}.forward")
