"""Searches for fixes for the graph breaks and recompiles of a run.

A *source* makes *candidates*: changes that may remove a break or a recompile.  The candidates that were chosen so far are the
*plan*.  For each break or recompile, the first candidate that holds joins the plan: with it, the break is gone or there are
fewer recompiles, the compiler does no worse otherwise, and the proof finds no difference from eager.  A rewrite may leave its
break if it captures more.  A fix can uncover another break, so the calls are traced again after each fix.  A fix that only
uncovers another break is kept if later fixes lead to a better result.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from dynascope.compiler.capture.torch_private import marks
from dynascope.compiler.lab.fix import live_edit, setting_changes
from dynascope.compiler.lab.fix.candidate import Candidate, Problem
from dynascope.compiler.lab.fix.plan import Plan
from dynascope.compiler.lab.fix.problem import problems_of, problems_of_recompile
from dynascope.compiler.lab.fix.proving.improvement import (
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
from dynascope.compiler.lab.fix.proving.proof import (
    DIFFERS,
    LOST_CHANGES,
    QUICK,
    THOROUGH,
    ZERO_GRADIENT,
    NoGradients,
    Proof,
    Prover,
    Refused,
)
from dynascope.compiler.lab.fix.proving.time_limit import TookTooLong
from dynascope.compiler.lab.fix.proving.trial import Ran, Trials
from dynascope.compiler.lab.fix.proving.variations import EMPTY
from dynascope.compiler.lab.fix.rewrites import counters, unfixable
from dynascope.compiler.lab.fix.text_edits import NotApplicable
from dynascope.compiler.lab.recorded_call import RecordedCall
from dynascope.compiler.parsing import no_syntax_warnings
from dynascope.compiler.report import Break, Fix, Recompile, Report, plural
from dynascope.compiler.source.functions import found_once

CandidateSource = Callable[[Problem], list[Candidate]]
TIME_LIMIT, INTERRUPTED = "the time limit was reached", "the search was interrupted"
_NO_GRADIENTS = "No gradients are asked for, as in the recorded calls"


class OutOfTime(Exception):
    """The time limit was reached."""


@dataclass
class Found:
    """The outcome of a search."""

    fixes: list[Fix] = field(default_factory=list)
    plan: Plan = field(default_factory=Plan)
    before: Report | None = None
    after: Report | None = None
    notes: list[str] = field(default_factory=list)
    is_complete: bool = True
    seconds: float = 0.0
    #: median seconds of the profiled call, if there are fixes, and the call can be timed
    seconds_before: float | None = None
    seconds_after: float | None = None


@dataclass
class _Step:
    """The program with the candidates chosen up to here, and what the compiler made of it."""

    plan: Plan
    ran: Ran
    #: the change from the step before; None for the first step
    candidate: Candidate | None = None
    fix: Fix | None = None
    #: what is better, for a rewrite that is kept only because it captures more; else ""
    gain: str = ""
    #: the steps up to here that are kept only because they capture more
    gains: int = 0
    #: the fixes that were not tried because this one holds
    instead: list[Fix] = field(default_factory=list)

    @property
    def badness(self) -> tuple[int, int, int]:
        # smaller is better; a change that only moves a break may capture more, too, but does not count as better
        report = self.ran.report
        return len(report.breaks) + eager_frames(report), report.summary.recompiles, -self.gains


class Search:
    """One search for fixes."""

    def __init__(
        self,
        trials: Trials,
        report: Report,
        sources: Sequence[CandidateSource],
        *,
        seconds: float,
        not_for_entries: Sequence[CandidateSource] = (),
        profiled: RecordedCall | None = None,
        on_progress: Callable[[str], None] = lambda sentence: None,
    ) -> None:
        self._trials, self._report, self._sources = trials, report, sources
        self._not_for_entries, self._entries = not_for_entries, set(map(_entry_name, trials.calls))
        self._seconds, self._profiled, self._on_progress = seconds, profiled, on_progress
        self._started = time.perf_counter()
        trials.deadline = self._started + seconds
        self._prover = Prover(trials, self._tick)
        self._given_up: set[Key] = set()
        self._steps: list[_Step] = []
        self._banned: list[Candidate | None] = []
        self._refused: list[tuple[Candidate, Plan]] = []
        #: (id of a break, title of a dropped change for it); the id is None for a recompile, and for a break not in the report
        self._dropped: set[tuple[str | None, str]] = set()
        #: candidates that were dropped because they fail on inputs that are made to require gradients
        self._lost_to_gradients: list[Candidate] = []
        self._gradients = True
        self._ids = itertools.count()
        self._why_stopped = ""
        self._tried = 0
        self.found = Found()

    def run(self) -> Found:
        """Search until nothing more can be fixed, the time is over, or an interrupt comes."""
        with found_once(), no_syntax_warnings():
            self._search()
        self._trials.deadline = math.inf
        self._explain()
        self.found.seconds = time.perf_counter() - self._started
        return self.found

    def _search(self) -> None:
        try:
            try:
                self._run()
            except (OutOfTime, TookTooLong):
                self._stopped(TIME_LIMIT)
                self._seconds *= 1.5  # more time, to prove what was found so far
                self._trials.deadline = self._started + self._seconds
                if self._steps:
                    self._cut_back()
                while not self._settle():
                    self._cut_back()
            self._finish()
        except (OutOfTime, TookTooLong):
            pass
        except KeyboardInterrupt:
            self._stopped(INTERRUPTED)

    def _finish(self) -> None:
        """Drop settings that are not needed, confirm the result with the run's backend, and fill in `found`."""
        if self._steps:
            with contextlib.suppress(OutOfTime, TookTooLong):
                self._leave_out()
            try:
                self._confirm()
            except (OutOfTime, TookTooLong):
                if self.found.is_complete:
                    self._stopped(TIME_LIMIT)
                raise
            self.found.plan, self.found.after = self._steps[-1].plan, self._steps[-1].ran.report
            self._credit()
        if self.found.is_complete:
            self._name_unfixable()
        profile = self._report.profile
        if len(self._steps) > 1 and profile is not None and self._profiled is not None:
            self.found.seconds_before = profile.verdict.compiled_seconds
            self.found.seconds_after = self._trials.seconds(self._profiled, self.found.plan, profile.calls)

    def _name_unfixable(self) -> None:
        """Add a refused fix, with the reason, for each break of the run that remains and for which there was no candidate."""
        ids = {fix.break_ for fix in self.found.fixes}
        tried = {break_key(b, Plan())[0] for b in self._report.breaks if b.id in ids}
        remain = {break_key(b, self.found.plan)[0] for b in self.found.after.breaks} if self.found.after else set()
        for b in self._report.breaks:
            if break_key(b, Plan())[0] in remain - tried:
                why = unfixable.reason(b.type)
                self.found.fixes.append(
                    Fix(id=f"x{next(self._ids)}", break_=b.id, title="No change is known", verdict="refused", reason=why)
                )

    def _credit(self) -> None:
        """Record what each chosen change removes, and the breaks that appear with it."""
        last, moved = self._steps[-1], list[str]()
        for before, step in itertools.pairwise(self._steps):
            fix, now, then = step.fix, step.ran.report, before.ran.report
            assert fix is not None
            fix.breaks_before, fix.graphs_before = len(then.breaks), then.summary.graphs
            fix.recompiles_before, fix.recompiles_after = then.summary.recompiles, now.summary.recompiles
            fix.breaks_after, fix.graphs_after = len(now.breaks), now.summary.graphs
            if step.gain:
                continue
            fix.removes, moved = removed(self._report, now, step.plan, then, before.plan, moved)
            if fix.removes and (fix.break_ or fix.recompile) not in fix.removes:  # it was tried for another one
                is_break = any(b.id == fix.removes[0] for b in self._report.breaks)
                fix.break_, fix.recompile = (fix.removes[0], None) if is_break else (None, fix.removes[0])
            new = appeared(now, step.plan, then, before.plan)
            if new:
                stays = appeared(last.ran.report, last.plan, then, before.plan)
                fix.reason += f". A graph break appears at {new}" + ("" if stays else ", which a later change removes")

    def _explain(self) -> None:
        """Record why changes that seemed to hold are not proved, and why others were not tried."""
        fixes, stopped = self.found.fixes, self._why_stopped or TIME_LIMIT
        for fix in (step.fix for step in self._steps[1:]):
            if fix is not None and (fix.verdict != "proved" or not (self.found.plan.texts or self.found.plan.settings)):
                fix.chosen, fix.verdict, fix.reason = False, "untried", f"not proved: {stopped}"
        chosen = [fix for fix in fixes if fix.chosen]
        taken = {id: fix.title for fix in chosen for id in (fix.break_, fix.recompile, *fix.removes) if id is not None}
        taken |= {other.id: s.fix.title for s in self._steps[1:] for other in s.instead if s.fix is not None and s.fix.chosen}
        for fix in fixes:
            if fix.verdict == "untried" and not fix.reason:
                first = taken.get(fix.id) or taken.get(fix.break_ or fix.recompile or "")
                fix.reason = f"not needed: “{first}” is proved" if first else "" if self.found.is_complete else stopped
        self.found.fixes = [fix for fix in fixes if fix.reason]

    def _stopped(self, reason: str) -> None:
        self.found.is_complete, self._why_stopped = False, reason
        self.found.notes.append(f"{reason[0].upper()}{reason[1:]}: not every change was tried and confirmed")

    def _tick(self) -> None:
        if time.perf_counter() - self._started > self._seconds:
            raise OutOfTime

    # -- the search ---------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        self._on_progress("running the calls again")
        try:
            start = _Step(Plan(), self._trials.run(Plan(), QUICK))
            if all(seen.error is None for seen in start.ran.observed):
                self.found.before = start.ran.report
            self._prover.compare(Plan(), start.ran.observed)
        except (NotApplicable, Refused) as reason:
            self.found.notes.append(
                f"No change was tried: the unchanged program gave another result when it was run again: {reason}"
            )
            return
        self.found.before = self.found.after = start.ran.report
        self._steps = [start]
        if self._report.breaks and not start.ran.report.breaks:
            self.found.notes.append("The graph breaks do not come back when each call is repeated: the first call did more")
        times, calls = self._report.summary.recompiles, plural(len(self._trials.calls), "call")
        if (lost := times - start.ran.report.summary.recompiles) > 0:
            self.found.notes.append(
                f"Repeating {calls} gives {plural(times - lost, 'recompile')}, not {times}: no change was tried for the rest"
            )
        self._work()
        if self._lost_to_gradients and not self._prover.asks_for_gradients():
            self._gradients = False
            self._banned = [c for c in self._banned if c not in self._lost_to_gradients]
            self._dropped -= {pair for pair in self._dropped if pair[1] in {c.title for c in self._lost_to_gradients}}
            self._given_up.clear()
            self._work()

    def _work(self) -> None:
        """Add, drop and prove steps until those that remain are proved."""
        while True:
            self._extend()
            if not self._cut_back() and self._settle():
                break

    def _extend(self) -> None:
        """Add steps until no remaining break or recompile can be fixed."""
        while (better := self._improved(self._steps[-1])) is not None:
            self._steps.append(better)

    def _cut_back(self) -> bool:
        """Drop the steps after the best one: they only uncover other breaks; returns whether that allows other changes."""
        best = min(range(len(self._steps)), key=lambda number: self._steps[number].badness)
        new = ""
        if best + 1 < len(self._steps):
            step, worse = self._steps[best : best + 2]
            new = appeared(worse.ran.report, worse.plan, step.ran.report, step.plan)
        what = f"it only moves the graph break to {new}" if new else "it only uncovers another graph break"
        return self._drop_from(best + 1, f"{what}, for which no fix was found" + ("" if self.found.is_complete else " in time"))

    def _settle(self) -> bool:
        """Prove all steps together; if that fails, drop the first that does not hold, and those after it, and return False."""
        if len(self._steps) < 2:
            return True
        self._on_progress("proving all changes together")
        try:
            self._proved(self._prove(self._steps[-1]))
            return True
        except (NotApplicable, Refused) as reason:
            failed: Exception = reason
        at = len(self._steps) - 1
        for number, step in enumerate(self._steps[1:-1], 1):
            try:
                self._prove(step)
            except (NotApplicable, Refused) as reason:
                at, failed = number, reason
                break
        dropped = self._steps[at].candidate
        if isinstance(failed, NoGradients) and dropped is not None:
            self._lost_to_gradients.append(dropped)
        self._drop_from(at, str(failed))
        return False

    def _leave_out(self) -> None:
        """Drop settings that later changes have made unnecessary."""
        last = self._steps[-1]
        for number, step in enumerate(self._steps[1:-1], 1):
            if step.candidate is None or step.fix is None or step.candidate.kind != "setting":
                continue
            kept = self._steps[:number]
            try:
                for other in self._steps[number + 1 :]:
                    assert other.candidate is not None
                    self._tick()
                    plan = kept[-1].plan.with_candidate(other.candidate)
                    kept.append(replace(other, plan=plan, ran=self._trials.run(plan, QUICK)))
                smaller = kept[-1]
                if (smaller.badness, -operations(smaller.ran.report)) > (last.badness, -operations(last.ran.report)):
                    continue
                self._prover.compare(smaller.plan, smaller.ran.observed)
                proof = self._prove(smaller)
            except (NotApplicable, Refused):
                continue
            step.fix.verdict, step.fix.chosen, step.fix.reason = "refused", False, "not needed with the changes after it"
            self._steps = kept
            self._proved(proof)  # what is taken for granted stands at the first step, which may be another one now
            self._leave_out()
            return

    def _prove(self, step: _Step) -> Proof:
        proof = self._prover.prove(step.plan, recompiles=True, gradients=self._gradients)
        if not self._gradients:
            self._how_gradients_fail(step)
        return proof

    def _how_gradients_fail(self, step: _Step) -> str:
        """How the program fails where gradients are asked for, "" if it does not; raises Refused if the gradients are wrong."""
        try:
            self._prover.prove(step.plan, recompiles=True)
        except NoGradients as reason:
            return str(reason)
        return ""

    def _proved(self, proof: Proof) -> None:
        failing, last = "", self._steps[-1]
        rewrites = [step for step in self._steps if step.fix is not None and step.fix.kind == "rewrite"]
        for step in self._steps[1:]:
            assert step.fix is not None
            assert step.candidate is not None
            step.fix.verdict, step.fix.chosen = "proved", True
            step.fix.reason = ". ".join(filter(None, [proof.words(), step.gain]))
            known, is_rewrite = step.candidate.assumption, not rewrites or step in rewrites
            remarks = setting_changes.remarks(step.candidate.settings, last.ran.report, last.plan.text)
            remarks += caught_in_graph(last.ran.report, last.plan.text) if step is self._steps[1] else []
            remarks += [
                r for r in proof.remarks
                if r.startswith((EMPTY, DIFFERS)) or (is_rewrite if r in (ZERO_GRADIENT, LOST_CHANGES) else not known)
            ]  # fmt: skip
            step.fix.assumption = ". ".join(filter(None, [known.rstrip("."), *remarks]))
            if not self._gradients and not failing:  # said only once, with the first step that fails
                failing = self._how_gradients_fail(step).rstrip(":")
                without = f"{_NO_GRADIENTS} ({failing})" if failing else ""
                step.fix.assumption = ". ".join(filter(None, [step.fix.assumption.rstrip("."), without]))

    def _drop_from(self, number: int, reason: str) -> bool:
        """Refuse a step and those after it, which build on it and may be tried again.

        Returns whether there are changes that were not tried because of these steps.
        """
        again = any(step.instead for step in self._steps[number:])
        for position, step in enumerate(self._steps[number:]):
            assert step.fix is not None
            step.fix.verdict, step.fix.chosen, step.fix.reason = "refused", False, reason
            if position == 0:
                self._banned.append(step.candidate)
                self._dropped.add((step.fix.break_, step.fix.title))
            else:
                step.fix.reason = f"tried on top of a change that does not hold: {reason}"
        if number < len(self._steps):
            self._given_up.clear()
        del self._steps[number:]
        return again

    def _confirm(self) -> None:
        """Run the calls with the run's backend, too; refuse all changes if the results differ.

        Does nothing if there are no changes, or if the backend is a callable or one that the search or the proof has used.
        """
        backend = self._trials.settings.backend
        if len(self._steps) == 1 or not isinstance(backend, str) or backend in (QUICK, THOROUGH):
            return
        self._on_progress(f"running the fixed program with {backend}")
        self._tick()
        plan = self._steps[-1].plan
        try:
            ran = self._trials.run(plan, backend)
            if not any(seen.drew for seen in ran.observed):  # random numbers may differ
                remarks = self._prover.compare(plan, ran.observed, backend)
                fix = self._steps[1].fix
                assert fix is not None
                fix.assumption = ". ".join(filter(None, [fix.assumption.rstrip("."), *remarks]))
        except (NotApplicable, Refused) as reason:
            self._drop_from(1, f"with the backend {backend}: {reason}")

    def _improved(self, step: _Step) -> _Step | None:
        """The next step, with one more break or recompile fixed; None if no other can be."""
        for b in self._ordered(step):
            key = break_key(b, step.plan)
            if key in self._given_up:
                continue
            better = self._fix(b, step)
            if better is not None:
                return better
            self._given_up.add(key)
        for recompile in step.ran.report.recompiles:
            key = recompile_key(recompile, step.ran.report, step.plan)
            if key not in self._given_up:
                better = self._fix_recompile(recompile, step)
                if better is not None:
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

    def _fix(self, b: Break, step: _Step) -> _Step | None:
        known = {break_key(other, Plan())[0]: other.id for other in self._report.breaks}
        id = known.get(break_key(b, step.plan)[0])
        candidates = self._candidates(problems_of(b, step.plan.text), step.plan)
        # by title, because the same change has other line numbers on top of another plan
        candidates = [c for c in candidates if (id, c.title) not in self._dropped]
        # a change that captures more but leaves its break could be made again and again, each time in its own lines
        repeated = {s.fix.title for s in self._steps[1:] if s.fix is not None and s.gain and (id is None or s.fix.break_ == id)}
        candidates = [c for c in candidates if c.title not in repeated]
        fixes = [self._fix_of(candidate, step) for candidate in candidates]
        for fix in fixes:
            fix.break_ = id
        return self._first_that_holds(
            candidates, fixes, step, lambda report, plan: why_no_better(report, step.ran.report, plan, step.plan, b)
        )

    def _fix_recompile(self, recompile: Recompile, step: _Step) -> _Step | None:
        frame = step.ran.report.frame(recompile.frame)
        problems = problems_of_recompile(recompile, frame, step.plan.text)
        made = self._made(setting_changes.for_recompile, frame.name, recompile, frame.name, step.plan.text(frame.file))
        made += (live_edit.without_known_import(c) for p in problems for c in self._made(counters.candidates, p.function, p))
        candidates = [c for c in made if c not in self._banned and (c, step.plan) not in self._refused]
        fixes = [self._fix_of(candidate, step) for candidate in candidates]
        known = {recompile_key(other, self._report, Plan()): other.frame for other in reversed(self._report.recompiles)}
        for fix in fixes:
            fix.recompile = known.get(recompile_key(recompile, step.ran.report, step.plan))
        return self._first_that_holds(
            candidates, fixes, step, lambda report, plan: why_recompiles_stay(report, step.ran.report)
        )

    def _first_that_holds(
        self, candidates: list[Candidate], fixes: list[Fix], step: _Step, why_worse: Callable[[Report, Plan], str | None]
    ) -> _Step | None:
        # some were listed before, but another change came first, which was dropped or did not remove this break or recompile
        listed = {(fix.break_, fix.recompile, fix.title) for fix in fixes if fix.break_ or fix.recompile}
        known = [x for x in self.found.fixes if x.reason or (x.break_, x.recompile, x.title) not in listed]
        self.found.fixes = [*known, *fixes]
        for number, (candidate, fix) in enumerate(zip(candidates, fixes, strict=True)):
            self._on_progress(f"trying change {self._tried + 1}: {candidate.title}")
            self._tried += 1
            self._tick()
            better = self._try(candidate, fix, step, why_worse)
            if better is not None:
                better.instead = fixes[number + 1 :]
                return better
        return None

    def _candidates(self, problems: list[Problem], plan: Plan) -> list[Candidate]:
        """The candidates for these problems that were neither dropped nor refused on top of this plan."""
        made: list[Candidate] = []
        for source in self._sources:
            for problem in problems:
                if source in self._not_for_entries and problem.function in self._entries:
                    continue
                made += self._made(source, problem.function, problem)
        known = map(live_edit.without_known_import, _distinct(made))
        return [c for c in known if c not in self._banned and (c, plan) not in self._refused]

    def _made(self, source: Callable[..., list[Candidate]], function: str, *args: object) -> list[Candidate]:
        """What a source makes for a function; none, and a note, if it raises an exception."""
        try:
            return list(source(*args))
        except Exception as error:
            name = source.__module__.rpartition(".")[2]
            note = f"No change by `{name}` was tried for {function}: it raised {type(error).__name__}"
            self.found.notes += [note] if note not in self.found.notes else []
            return []

    def _try(
        self, candidate: Candidate, fix: Fix, step: _Step, why_worse: Callable[[Report, Plan], str | None]
    ) -> _Step | None:
        """The step with this candidate; None if the candidate does not hold: then `fix` is refused, with the reason."""
        try:
            plan = step.plan.with_candidate(candidate)
            ran = self._trials.run(plan, QUICK)
            fix.breaks_after, fix.graphs_after = len(ran.report.breaks), ran.report.summary.graphs
            fix.recompiles_after = ran.report.summary.recompiles
            reason = why_worse(ran.report, plan)
            if reason is not None and not (candidate.kind == "rewrite" and captures_more(ran.report, step.ran.report)):
                raise Refused(reason)
            self._prover.compare(plan, ran.observed)
            self._prover.prove(plan, recompiles=False)
        except (NotApplicable, Refused) as reason:
            fix.verdict, fix.reason = "refused", str(reason)
            self._refused.append((candidate, step.plan))
            return None
        fix.reason = "proved on the inputs of the recorded sizes only"
        stays = "The graph break stays" if fix.recompile is None else "The recompiles stay"
        more = "" if reason is None else gain(ran.report, step.ran.report, stays)
        return _Step(plan, ran, candidate, fix, more, step.gains + bool(more))

    def _fix_of(self, candidate: Candidate, step: _Step) -> Fix:
        return Fix(
            id=f"x{next(self._ids)}", kind=candidate.kind, title=candidate.title, edits=list(candidate.edits),
            settings=dict(candidate.settings), assumption=candidate.assumption,  # type: ignore[arg-type]
            breaks_before=len(step.ran.report.breaks), graphs_before=step.ran.report.summary.graphs,
            recompiles_before=step.ran.report.summary.recompiles,
        )  # fmt: skip


def _distinct(candidates: Iterable[Candidate]) -> Iterable[Candidate]:
    seen: list[tuple[object, ...]] = []
    for candidate in candidates:
        what = (candidate.edits, dict(candidate.settings))
        if what not in seen:
            seen.append(what)
            yield candidate


def _entry_name(call: RecordedCall) -> str:
    """The qualified name of the compiled function, or of a module's `forward`."""
    target = marks.undecorated(marks.inner_function(call.target))
    return str(getattr(target, "__qualname__", None) or f"{type(target).__qualname__}.forward")
