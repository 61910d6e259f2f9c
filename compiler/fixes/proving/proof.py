"""Holds a plan to eager: on the recorded inputs, on other ones, and on both sides of every condition that it changes.

Eager is the original program in eager mode, run from the same state.  The changed program runs with the backend "aot_eager",
which shows also what becomes of gradients, of changes in place, and of code that runs only while tracing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from dynascope.compiler.fixes.calls import KeptCall
from dynascope.compiler.fixes.plan import Plan
from dynascope.compiler.fixes.proving import forcing
from dynascope.compiler.fixes.proving.fake_check import checking_backend
from dynascope.compiler.fixes.proving.observed import Observed, differences, order_changed
from dynascope.compiler.fixes.proving.trial import Trials
from dynascope.compiler.fixes.proving.variations import Variation, recorded, variations
from dynascope.compiler.fixes.text_edits import edits_between

#: the backend that looks for breaks, and the one that the proof runs
QUICK, THOROUGH = "eager", "aot_eager"
#: called before each run; raises to end the search
Tick = Callable[[], None]


class Refused(Exception):
    """The plan does not do what eager does; the message says where."""


class NoGradients(Refused):
    """Asking for gradients is an error, on inputs that were made to require them; a wrong gradient is never that."""


@dataclass
class Proof:
    """What a plan was held against."""

    variations: int = 0
    forced: int = 0
    #: sentences on what changes, beside what the candidates say themselves
    remarks: list[str] = field(default_factory=list)

    def words(self) -> str:
        """One sentence for the report."""
        text = f"agrees with eager on the recorded inputs and {self.variations} others"
        return text + (f", {self.forced} of them with a condition forced" if self.forced else "")


class Prover:
    """The eager program's results, and what compares with them."""

    def __init__(self, trials: Trials, tick: Tick = lambda: None) -> None:
        self._trials, self._tick = trials, tick
        self._variations: dict[int, list[Variation]] = {}
        self._expected: dict[tuple[int, str], Observed] = {}

    def expected(self, call: KeptCall, variation: Variation) -> Observed:
        """What the eager program does with this variation of a call."""
        key = (id(call), variation.name)
        if key not in self._expected:
            self._tick()
            self._expected[key] = self._trials.eager(call, variation)
        return self._expected[key]

    def compare(self, plan: Plan, observed: list[Observed]) -> None:
        """Compare runs of all calls with their recorded inputs; raises Refused."""
        for call, actual in zip(self._trials.calls, observed, strict=True):
            _compare(actual, self.expected(call, recorded()), plan, recorded())

    def asks_for_gradients(self) -> bool:
        """Whether any of the recorded calls computes something that has a gradient."""
        outcomes = [self.expected(call, recorded()).outcome for call in self._trials.calls]
        return any(outcome is not None and outcome.parts["gradients"] for outcome in outcomes)

    def prove(self, plan: Plan, *, recompiles: bool, gradients: bool = True) -> Proof:
        """Compare on all variations and on both sides of all conditions; raises Refused, or NotApplicable.

        `recompiles`: also on variations for which the compiler works again, which takes longer; `gradients`: also on inputs
        that are made to require gradients.
        """
        proof = Proof()
        levels = {False: (True, recompiles), True: (recompiles and gradients,) * 2}

        def is_wanted(variation: Variation) -> bool:
            return levels[variation.gradients][variation.recompiles]

        cases = [(call, v) for call in self._trials.calls for v in self._of(call) if is_wanted(v)]
        wanted = [(call, v, self.expected(call, v)) for call, v in cases]
        wanted = [(call, v, seen) for call, v, seen in wanted if not (v.may_fail and seen.error is not None)]
        with self._trials.compiled(plan, THOROUGH) as run:
            for call, variation, expected in wanted:
                self._tick()
                actual = run(call, variation)
                _compare(actual, expected, plan, variation)
                if order_changed(actual, expected):
                    _remark(proof, "What it prints comes in another order")
        if any("custom_op" in text for text in plan.texts.values()):
            self._check_fakes(plan, wanted)
        proof.variations = len(wanted) - len(self._trials.calls)
        for test in dict.fromkeys(plan.tests):
            self._force(plan, test, proof, is_wanted)
        return proof

    def _of(self, call: KeptCall) -> list[Variation]:
        if id(call) not in self._variations:
            with call.recorded.replaying() as prepare:
                args, kwargs = prepare()
                self._variations[id(call)] = [recorded(), *variations(call.target, args, kwargs)]
        return self._variations[id(call)]

    def _check_fakes(self, plan: Plan, wanted: list[tuple[KeptCall, Variation, Observed]]) -> None:
        """Compare what custom operators return with what they say that they return, for every size."""
        static = Plan(plan.texts, {**plan.settings, "dynamic": False}, plan.originals, plan.assumptions, plan.tests)
        with self._trials.compiled(static, checking_backend) as run:
            for call, variation, expected in wanted:
                if variation.recompiles or variation.name == recorded().name:
                    self._tick()
                    _compare(run(call, variation), expected, plan, variation)

    # -- conditions ---------------------------------------------------------------------------------------------------

    def _force(self, plan: Plan, test: str, proof: Proof, is_wanted: Callable[[Variation], bool]) -> None:
        for side in (True, False):
            pair = _forced_pair(plan, test, side)
            if pair is None:
                if _is_loop(plan, test):
                    return  # every run that ends has seen both sides
                raise Refused(f"the other side of `{test}` cannot be tried")
            original, changed = pair
            for call in self._trials.calls:
                cases = [v for v in self._of(call) if is_wanted(v) and (v.gradients or not v.recompiles)]
                expected = []
                for variation in cases:
                    self._tick()
                    expected.append(self._trials.eager(call, variation, original, forcing.HELPERS))
                with self._trials.compiled(changed, THOROUGH, forcing.HELPERS) as run:
                    for variation, seen in zip(cases, expected, strict=True):
                        if variation.may_fail and seen.error is not None:
                            continue
                        self._tick()
                        actual = run(call, variation)
                        _compare(actual, seen, plan, variation, f"where `{test}` is {side}, ")
                        proof.variations += 1
                        proof.forced += 1


def _compare(actual: Observed, expected: Observed, plan: Plan, variation: Variation, where: str = "") -> None:
    text = differences(actual, expected, " ".join(plan.assumptions))
    if text is not None:
        refused = NoGradients if variation.gradients and (actual.error or actual.backward_fails) else Refused
        raise refused(f"{where}with {variation.name}: {text}")


def _remark(proof: Proof, sentence: str) -> None:
    if sentence not in proof.remarks:
        proof.remarks.append(sentence)


def _forced_pair(plan: Plan, test: str, side: bool) -> tuple[Plan, Plan] | None:
    """The original and the plan with a condition forced; None if it is not in both."""
    for file, text in plan.texts.items():
        before, after = [], []
        for edit in edits_between(file, plan.originals[file], text):
            before.append((edit.first_line, edit.last_line))
        for edit in edits_between(file, text, plan.originals[file]):
            after.append((edit.first_line, edit.last_line))
        original = forcing.forced(plan.originals[file], test, before, to=side)
        changed = forcing.forced(text, test, after, to=side)
        if original is not None and changed is not None:
            return Plan({file: original}, {}, {file: plan.originals[file]}), plan.with_texts({file: changed})
    return None


def _is_loop(plan: Plan, test: str) -> bool:
    return any(forcing.is_loop(text, test) for text in plan.originals.values())
