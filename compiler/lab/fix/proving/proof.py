"""Checks that a plan does what eager does: on the recorded inputs, on other ones, on both sides of each condition it changes.

Eager is the original program in eager mode, run from the same state.  The changed program is compiled with the backend
"aot_eager", so gradients, changes in place and side effects of tracing are checked too.  If its source is changed, it also runs
without torch.compile, because that source is what the user keeps.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from dynascope.compiler.lab.experiment import Observation
from dynascope.compiler.lab.fix.candidate import Condition
from dynascope.compiler.lab.fix.plan import Plan
from dynascope.compiler.lab.fix.proving import forcing, tested_values
from dynascope.compiler.lab.fix.proving.fake_check import checking_backend
from dynascope.compiler.lab.fix.proving.observed import (
    differences,
    loses_changes,
    order_changed,
    without_zero_gradients,
)
from dynascope.compiler.lab.fix.proving.time_limit import TookTooLong
from dynascope.compiler.lab.fix.proving.trial import Trials
from dynascope.compiler.lab.fix.proving.variations import Variation, recorded, variations
from dynascope.compiler.lab.fix.text_edits import edits_between
from dynascope.compiler.lab.recorded_call import RecordedCall

#: the backends with which `search` looks for breaks, and with which the proof runs
QUICK, THOROUGH = "eager", "aot_eager"
_OTHER_ORDER = "Its output comes in a different order"
DIFFERS = "The unchanged program, too, differs from eager when it is compiled"
ZERO_GRADIENT = "An argument that only one side of a condition uses gets a gradient of zero where eager has none"
LOST_CHANGES = "What a call has changed before it raises an exception can be lost"
#: called before each run; raises to end the search
Tick = Callable[[], None]
#: runs a call with a variation of its inputs
Run = Callable[[RecordedCall, Variation], Observation]


class Refused(Exception):
    """The plan does not do what eager does, cannot be checked, or gives no better result; the message says why."""


class NoGradients(Refused):
    """The changed program, or backward from its result, raises an exception on inputs that are made to require gradients."""


@dataclass
class Proof:
    """What was checked to prove a plan."""

    variations: int = 0
    forced: int = 0
    #: sentences on what changes, in addition to the candidates' own assumptions
    remarks: list[str] = field(default_factory=list)

    def words(self) -> str:
        """One sentence for the report."""
        compiled = any(remark.startswith(DIFFERS) for remark in self.remarks)
        others = " (or with the unchanged compiled program, where that differs from eager)" if compiled else ""
        text = f"agrees with eager{others} on the recorded inputs and {self.variations} others"
        return text + (f", {self.forced} of them with a condition forced" if self.forced else "")


@dataclass
class _Agreed:
    """The cases in which a plan has agreed with eager, and remarks on them."""

    plan: Plan
    #: (id of the call, name of the variation, how a refusal's sentence begins: with the forced conditions, with "without
    #: torch.compile, ", or with "")
    cases: set[tuple[int, str, str]] = field(default_factory=set)
    remarks: list[str] = field(default_factory=list)

    def remark(self, sentence: str) -> None:
        if sentence not in self.remarks:
            self.remarks.append(sentence)


@dataclass(frozen=True)
class _Case:
    """A call to be compared, with a variation of its inputs."""

    call: RecordedCall
    variation: Variation
    #: what to compare with: a run in eager mode or, if not `is_eager`, one of the compiled original
    expected: Observation
    #: how a refusal's sentence begins: with the forced conditions
    where: str = ""
    #: to which side each condition is forced
    sides: tuple[bool, ...] = ()
    is_eager: bool = True

    @property
    def key(self) -> tuple[int, str, str]:
        return (id(self.call), self.variation.name, self.where)


class Prover:
    """Keeps the eager program's results and compares plans with them."""

    def __init__(self, trials: Trials, tick: Tick = lambda: None) -> None:
        self._trials, self._tick = trials, tick
        self._variations: dict[tuple[int, str], list[Variation]] = {}
        self._expected: dict[tuple[int, str], Observation] = {}
        self._agreed: dict[int, _Agreed] = {}  # by the id of the plan
        #: (key of a case, backend, texts) where the compiled original agrees with eager
        self._agrees: set[tuple[tuple[int, str, str], str, str]] = set()

    def expected(self, call: RecordedCall, variation: Variation) -> Observation:
        """What the eager program does with this variation of a call."""
        key = (id(call), variation.name)
        if key not in self._expected:
            with self._trials.eagerly() as run:
                self._expected[key] = self._ended(run, call, variation)
        return self._expected[key]

    def _ended(self, run: Run, call: RecordedCall, variation: Variation) -> Observation:
        """Run a call in eager mode; if it takes too long, TookTooLong counts as an exception of the program."""
        self._tick()
        try:
            return run(call, variation)
        except TookTooLong as error:
            self._tick()
            return Observation(error=error)

    def compare(self, plan: Plan, observed: list[Observation], backend: Any = QUICK) -> list[str]:
        """Compare `observed`, the runs of all calls with their recorded inputs and this backend; raises Refused if they differ.

        They are compared with eager or, where the unchanged program differs from it, too, with that.  Returns remarks.
        """
        agreed = _Agreed(plan)
        cases = [_Case(call, recorded(), self.expected(call, recorded())) for call in self._trials.calls]
        for case, actual in zip(cases, observed, strict=True):
            try:
                _compare(actual, case.expected, agreed, case.variation)
            except Refused as refusal:
                [unchanged] = self._unchanged([case], Plan(), backend, agreed, refusal)
                _compare(actual, unchanged.expected, agreed, case.variation)
        return agreed.remarks

    def _unchanged(
        self,
        cases: list[_Case],
        original: Plan,
        backend: Any,
        agreed: _Agreed,
        refusal: Refused,
        sides: forcing.Sides | None = None,
    ) -> list[_Case]:
        """The cases, to be compared with the compiled original where it, too, differs from eager.

        Raises the refusal, that of the first case, if the compiled original agrees with eager in that case.
        """
        first = (cases[0].key, str(backend), repr(sorted(original.texts.items())))
        if first in self._agrees:
            raise refusal
        changed = list[_Case]()
        with self._trials.compiled(original, backend, sides.helpers if sides is not None else None) as run:
            for case in cases:
                self._tick()
                if sides is not None:
                    sides.force(case.sides)
                actual = run(case.call, case.variation)
                text = None if actual.error or case.expected.error else differences(actual, case.expected)
                if text is None and not changed:
                    self._agrees.add(first)
                    raise refusal
                if text is not None and not any(known.startswith(DIFFERS) for known in agreed.remarks):
                    agreed.remark(f"{DIFFERS} ({text})")
                changed.append(case if text is None else replace(case, expected=actual, is_eager=False))
        return changed

    def _run_cases(
        self, cases: list[_Case], plan: Plan, original: Plan, agreed: _Agreed, sides: forcing.Sides | None = None
    ) -> None:
        """Compare the compiled program in these cases; raises Refused if one differs."""
        while cases:
            refused: tuple[int, Refused] | None = None
            with self._trials.compiled(plan, THOROUGH, sides.helpers if sides is not None else None) as run:
                for number, case in enumerate(cases):
                    self._tick()
                    if sides is not None:
                        sides.force(case.sides)
                    actual = run(case.call, case.variation)
                    try:
                        _compare(actual, case.expected, agreed, case.variation, case.where)
                    except Refused as refusal:
                        refused = number, refusal
                        break
                    agreed.cases.add(case.key)
                    if order_changed(actual, case.expected):
                        agreed.remark(_OTHER_ORDER)
            if refused is None:
                return
            if not cases[refused[0]].is_eager:
                raise refused[1]
            cases = self._unchanged(cases[refused[0] :], original, THOROUGH, agreed, refused[1], sides)

    def asks_for_gradients(self) -> bool:
        """Whether any of the recorded calls computes something that has a gradient."""
        return any(self.expected(call, recorded()).parts.get("gradients") for call in self._trials.calls)

    def prove(self, plan: Plan, *, recompiles: bool, gradients: bool = True) -> Proof:
        """Compare on the recorded inputs, on variations and on the sides of conditions; raises Refused or NotApplicable.

        `recompiles`: also on variations that may need another compile, which takes longer; `gradients`: also, if `recompiles`,
        on inputs that are made to require gradients.
        """
        proof = Proof()

        def is_wanted(variation: Variation) -> bool:
            return recompiles and gradients if variation.gradients else recompiles or not variation.recompiles

        agreed = self._agreed.setdefault(id(plan), _Agreed(plan))
        proof.remarks = agreed.remarks
        cases = [(call, v) for call in self._trials.calls for v in self._of(call, plan) if is_wanted(v)]
        wanted = [(call, v, self.expected(call, v)) for call, v in cases]
        wanted = [(call, v, seen) for call, v, seen in wanted if not _says_nothing(v, seen)]
        todo = [_Case(call, variation, expected) for call, variation, expected in wanted]
        # the recorded sizes are always compiled first
        todo = [case for case in todo if case.key not in agreed.cases or case.variation.name == recorded().name]
        self._run_cases(todo, plan, Plan(), agreed)
        if any("custom_op" in text for text in plan.texts.values()):
            self._check_fakes(agreed, wanted)
        if plan.texts:
            self._check_uncompiled(agreed, wanted)
        proof.variations = sum(not v.remark for _, v, _ in wanted) - len(self._trials.calls)
        for tests in _forcings(plan):
            self._force(tests, proof, is_wanted, agreed)
        return proof

    def _of(self, call: RecordedCall, plan: Plan | None = None) -> list[Variation]:
        """The variations of a call; with a plan, also those for the conditions in the files that it edits."""
        key = (id(call), "" if plan is None else repr(sorted(plan.texts.items())))
        if key not in self._variations:
            with call.replaying(numbers=True) as prepare:
                given, holder = call.given(*prepare()), call.target if call.namespace is None else None
                if plan is None:
                    self._variations[key] = [recorded(), *variations(holder, *given)]
                else:
                    self._variations[key] = tested_values.variations_for(plan, call, *given)
        return self._variations[key] if plan is None else [*self._of(call), *self._variations[key]]

    def _check_fakes(self, agreed: _Agreed, wanted: list[tuple[RecordedCall, Variation, Observation]]) -> None:
        """Compare what custom operators return with what their fake implementations promise.

        The inputs are the recorded ones and those that may need another compile, such as other sizes.
        """
        plan = agreed.plan
        static = replace(plan, settings={**plan.settings, "dynamic": False})
        with self._trials.compiled(static, checking_backend) as run:
            for call, variation, expected in wanted:
                if variation.recompiles or variation.name == recorded().name:
                    self._tick()
                    _compare(run(call, variation), expected, agreed, variation)

    def _check_uncompiled(self, agreed: _Agreed, wanted: list[tuple[RecordedCall, Variation, Observation]]) -> None:
        """Compare the changed program without torch.compile: `torch.while_loop`, for one, may raise there."""
        where = "without torch.compile, "
        with self._trials.uncompiled(agreed.plan) as run:
            for call, variation, expected in wanted:
                case = (id(call), variation.name, where)
                if case not in agreed.cases:
                    self._tick()
                    _compare(run(call, variation), expected, agreed, variation, where)
                    agreed.cases.add(case)

    # -- conditions ---------------------------------------------------------------------------------------------------

    def _force(
        self, tests: tuple[Condition, ...], proof: Proof, is_wanted: Callable[[Variation], bool], agreed: _Agreed
    ) -> None:
        """Compare on all combinations of the sides of these one or two conditions."""
        pair = _forced_pair(agreed.plan, tests)
        if pair is None:  # one of the two conditions is part of the other, or they are in different files
            for test in tests if len(tests) > 1 else ():
                self._force((test,), proof, is_wanted, agreed)
            return
        original, changed = pair
        forced, new, seen = forcing.Sides(len(tests)), list[_Case](), []
        with self._trials.eagerly(original, forced.helpers) as run:
            for sides, call, variation in self._forced_cases(len(tests), is_wanted):
                where = f"where {' and '.join(f'`{test.before}` is {side}' for test, side in zip(tests, sides, strict=True))}, "
                case = _Case(call, variation, Observation(), where, sides)
                if case.key not in agreed.cases:
                    forced.force(sides)
                    new.append(replace(case, expected=self._ended(run, call, variation)))
                seen.append(case.key)
        new = [case for case in new if not _says_nothing(case.variation, case.expected)]
        self._run_cases(new, changed, original, agreed, forced)
        held = sum(case in agreed.cases for case in seen)
        proof.variations += held
        proof.forced += held

    def _forced_cases(
        self, count: int, is_wanted: Callable[[Variation], bool]
    ) -> Iterator[tuple[tuple[bool, ...], RecordedCall, Variation]]:
        """Combinations of sides, calls and variations, without other sizes and numbers; gradients come last for each call."""
        for call in self._trials.calls:
            for variation in self._of(call):
                if is_wanted(variation) and (variation.gradients or not variation.recompiles):
                    for sides in itertools.product((True, False), repeat=count):
                        yield sides, call, variation


def _says_nothing(variation: Variation, expected: Observation) -> bool:
    """Whether there is nothing to compare with: the eager program refuses these inputs, or does not end in time."""
    return isinstance(expected.error, TookTooLong) or (variation.may_fail and expected.error is not None)


def _compare(actual: Observation, expected: Observation, agreed: _Agreed, variation: Variation, where: str = "") -> None:
    if variation.gradients:
        kept = without_zero_gradients(actual, expected)
        if kept is not actual:
            agreed.remark(ZERO_GRADIENT)
        actual = kept
    text = differences(actual, expected, " ".join(agreed.plan.assumptions))
    if text is not None and variation.remark:
        agreed.remark(variation.remark)
    elif text is not None:
        refused = NoGradients if variation.gradients and (actual.error or actual.backward_fails) else Refused
        raise refused(f"{where}with {variation.name}: {text}")
    elif loses_changes(actual, expected):
        agreed.remark(LOST_CHANGES)


def _forcings(plan: Plan) -> list[tuple[Condition, ...]]:
    """The conditions to force, each with the next one, or the only one by itself; raises Refused if one cannot be forced."""
    tests = []
    for test in dict.fromkeys(plan.tests):
        if _forced_pair(plan, (test,)) is not None:
            tests.append(test)
        elif not _is_loop(plan, test):  # the condition of a changed `while` is not forced, because the loop would not end
            raise Refused(f"`{test.before}` cannot be forced, so its other side was not compared")
    return [(test,) for test in tests] if len(tests) < 2 else list(itertools.pairwise(tests))


def _forced_pair(plan: Plan, tests: tuple[Condition, ...]) -> tuple[Plan, Plan] | None:
    """Plans for the original and the changed program with the conditions forced; None unless both texts of a file have them."""
    for file, text in plan.texts.items():
        before, after = _changed_lines(file, plan.originals[file], text), _changed_lines(file, text, plan.originals[file])
        original = forcing.with_forced(plan.originals[file], [(t.before, t.before != t.after) for t in tests], before)
        changed = forcing.with_forced(text, [(t.after, t.before != t.after) for t in tests], after)
        if original is not None and changed is not None:
            return Plan({file: original}, {}, {file: plan.originals[file]}), plan.with_texts({file: changed})
    return None


def _is_loop(plan: Plan, test: Condition) -> bool:
    return any(
        forcing.is_in_while_condition(original, test.before, _changed_lines(file, original, plan.texts.get(file, original)))
        for file, original in plan.originals.items()
    )


def _changed_lines(file: str, text: str, other: str) -> list[tuple[int, int]]:
    """The first and the last line, in `text`, of each place where two texts of a file differ."""
    return [(edit.first_line, edit.last_line) for edit in edits_between(file, text, other)]
