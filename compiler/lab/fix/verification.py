"""Verifies that a plan does what eager does: on recorded inputs, on other ones, on both sides of each condition it changes.

Eager is the original program in eager mode, run from the same state.  The changed program is compiled with the backend
"aot_eager", so gradients, changes in place and side effects of tracing are checked too.  If its source is changed, it also runs
without torch.compile, because that source is what the user keeps.
"""

from __future__ import annotations

import ast
import contextlib
import itertools
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from dynascope.compiler.lab.comparison import difference
from dynascope.compiler.lab.experiment import Observation
from dynascope.compiler.lab.fix.candidate import Condition
from dynascope.compiler.lab.fix.difference import (
    Difference,
    differences,
    loses_changes,
    order_changed,
    own_rounding,
    without_zero_gradients,
)
from dynascope.compiler.lab.fix.plan import Plan
from dynascope.compiler.lab.fix.text_edits import edits_between
from dynascope.compiler.lab.fix.trial import TookTooLong, Trials
from dynascope.compiler.lab.fix.variations import Variation, recorded, tested_variations, variations
from dynascope.compiler.lab.recorded_call import RecordedCall
from dynascope.compiler.report import listed, plural
from dynascope.compiler.source.lines import split_lines

#: the backends with which `search` looks for breaks, and with which the changed program is verified
QUICK, THOROUGH = "eager", "aot_eager"
OTHER_ORDER = "Its output comes in a different order"
DIFFERS = "The unchanged program, too, differs from eager when it is compiled"
ZERO_GRADIENT = "An argument that only one side of a condition uses gets a gradient of zero where eager has none"
LOST_CHANGES = "What a call has changed before it raises an exception can be lost"
UNTRIED = "There was no time to compare it"
NO_GRADIENTS = "No gradients are asked for, as in the recorded calls"
#: called before each run; raises to end the search
Tick = Callable[[], None]
#: runs a call with a variation of its inputs
Run = Callable[[RecordedCall, Variation], Observation]
#: what the eager program does in float64 in a case, as recorded and with moved inputs; None: unknown
InFloat64 = Callable[["_Case"], "tuple[Observation, Observation] | None"]


class Refused(Exception):
    """The plan does not do what eager does, cannot be checked, or gives no better result; the message says why."""


class OutOfTime(Exception):
    """The time limit was reached."""


@dataclass
class Verification:
    """What was checked to verify a plan."""

    variations: int = 0
    forced: int = 0
    #: whether an argument gets a gradient of zero where eager has none
    zero_gradients: bool = False
    #: what only differs in a case that the sentence names: how it differs -> the sentence
    conditions: dict[str, str] = field(default_factory=dict)
    #: how the unchanged program differs from eager when it is compiled; "" if it was not seen to
    differs: str = ""
    #: the largest errors against float64, of a value that differs by the call's own rounding: name, the change's, eager's
    rounding: tuple[str, float, float] | None = None

    def under(self, where: str, difference: Difference) -> None:
        """Add a condition, once for each way to differ (what is quoted does not count); lost checks come first."""
        sentence, way = f"{where[:1].upper()}{where[1:]}, it {difference.text}".rstrip(":"), difference.text.partition(" (")[0]
        known = {way: self.conditions.get(way, sentence)}
        self.conditions = {**known, **self.conditions} if difference.is_lost_check else {**self.conditions, **known}

    def words(self) -> str:
        """One sentence for the report, and one more if the unchanged program differs from eager."""
        others = " (or with the unchanged compiled program, where that differs from eager)" if self.differs else ""
        text = f"agrees with eager{others} on the recorded inputs"
        text += f" and {plural(self.variations, 'other')}" if self.variations else ""
        text += f", {self.forced} of them with a condition forced" if self.forced else ""
        if self.rounding is not None:
            name, ours, eager = self.rounding
            errors = f"{name} is off by {ours:.1e} of its largest number, in eager by {eager:.1e}"
            text += f", to rounding: against float64, {errors}"
        return f"{text}. {DIFFERS} ({self.differs})" if self.differs else text


@dataclass(frozen=True)
class _Case:
    """A call to be compared, with a variation of its inputs."""

    call: RecordedCall
    variation: Variation
    #: what to compare with: a run in eager mode or, if not `is_eager`, one of the compiled original
    expected: Observation = field(default_factory=Observation)
    #: to which side each condition is forced, and how a refusal's sentence begins because of that
    sides: tuple[bool, ...] = ()
    where: str = ""
    is_eager: bool = True

    @property
    def key(self) -> tuple[int, str, str]:
        return (id(self.call), self.variation.name, self.where)


@dataclass
class _Comparison:
    """What is compared in one verification, and what it has shown so far."""

    plan: Plan
    #: whether the changed program must also run on inputs that are made to require gradients; else, that is a condition
    gradients: bool = True
    verification: Verification = field(default_factory=Verification)
    #: the keys of the cases, and the forced conditions, that the compiled program has passed
    passed: set[object] = field(default_factory=set)

    def check(self, actual: Observation, case: _Case, where: str = "", in_float64: InFloat64 = lambda case: None) -> None:
        """Raises Refused if a run differs from what is expected; differences that are allowed become remarks."""
        expected, variation = case.expected, case.variation
        if variation.gradients:
            kept = without_zero_gradients(actual, expected)
            if kept is not actual:
                self.verification.zero_gradients = True
            actual = kept
        made = variation.name != recorded().name or bool(case.sides)

        def is_own(what: str, index: int) -> bool:
            if (runs := in_float64(case)) is None:
                return False
            (name, one), (_, other) = actual.parts[what][index], expected.parts[what][index]
            exact, moved = (run.exact.get((what, index)) for run in runs)
            errors = own_rounding(one, other, exact, moved, expected.rounding(what, name))
            if errors is not None:
                self.verification.rounding = max((name, *errors), self.verification.rounding or ("", 0, 0), key=lambda r: r[1])
            return errors is not None

        found = differences(actual, expected, made=made, is_own=is_own)
        place, conditions = f"{where or case.where}with {variation.name}", self.verification.conditions
        is_backward = variation.gradients and (actual.error is not None or actual.backward_fails)
        if loses_changes(actual, expected):
            conditions.setdefault("changes", LOST_CHANGES)
        if found is None:
            if order_changed(actual, expected):
                conditions.setdefault("order", OTHER_ORDER)
        elif variation.remark:
            conditions.setdefault(variation.remark, variation.remark)
        elif found.is_condition:
            self.verification.under(place, found)
        elif is_backward and not self.gradients:
            conditions.setdefault("gradients", f"{NO_GRADIENTS} ({place}: {found.text.rstrip(':')})")
        else:
            raise Refused(f"{place}: {found.text}")


class Verifier:
    """Keeps the eager program's results and compares plans with them."""

    def __init__(self, trials: Trials, tick: Tick = lambda: None) -> None:
        self._trials, self._tick_of_search = trials, tick
        #: when the verification that is running has to end, what it has passed, and what it must pass before it ends
        self._until, self._passed, self._needed = math.inf, set[object](), set[object]()
        self._comparisons: list[_Comparison] = []
        self._variations: dict[tuple[int, str], list[Variation]] = {}
        self._expected: dict[tuple[int, str], Observation] = {}
        self._float64: dict[tuple[int, str, str], tuple[Observation, Observation]] = {}
        #: (key of a case, backend, texts) where the compiled original agrees with eager
        self._agrees: set[tuple[tuple[int, str, str], str, str]] = set()

    def _tick(self) -> None:
        self._tick_of_search()
        if time.perf_counter() > self._until and self._needed <= self._passed:
            raise OutOfTime

    def _eager(self, call: RecordedCall, variation: Variation) -> Observation:
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

    def compare(self, plan: Plan, observed: list[Observation], backend: Any = QUICK) -> Verification:
        """Compare `observed`, the runs of all calls with their recorded inputs and this backend; raises Refused if they differ.

        They are compared with eager or, where the unchanged program differs from it, too, with that.
        """
        comparison = _Comparison(plan)
        for call, actual in zip(self._trials.calls, observed, strict=True):
            case = _Case(call, recorded(), self._eager(call, recorded()))
            try:
                comparison.check(actual, case)
            except Refused as refusal:
                with contextlib.suppress(Refused):
                    [case] = self._unchanged([case], Plan(), backend, comparison, refusal)
                comparison.check(actual, case, in_float64=self._in_float64)
        return comparison.verification

    def _in_float64(self, case: _Case) -> tuple[Observation, Observation] | None:
        """What the eager program does in float64, also with moved inputs; None if that is unknown."""
        if case.sides or not case.is_eager:
            return None
        if case.key not in self._float64:
            self._tick()
            self._float64[case.key] = self._trials.in_float64(case.call, case.variation)
        runs = self._float64[case.key]
        return None if any(run.error or run.limits or run.decided for run in runs) else runs

    def _unchanged(
        self,
        cases: list[_Case],
        original: Plan,
        backend: Any,
        comparison: _Comparison,
        refusal: Refused,
        sides: _Sides | None = None,
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
                if text is not None:
                    comparison.verification.differs = comparison.verification.differs or text.text
                changed.append(case if text is None else replace(case, expected=actual, is_eager=False))
        return changed

    def verify(self, plan: Plan, *, seconds: float = math.inf) -> Verification:
        """Compare on the recorded inputs, on variations and on the sides of conditions; raises Refused or NotApplicable.

        Cases for which `seconds` do not do are a condition; the recorded inputs are compared in any case.  Called again for the
        same plan, it goes on with these cases.  Where the recorded calls ask for no gradients, the program may fail where
        inputs are made to require them: that is a condition, too.
        """
        self._until, forcings = time.perf_counter() + seconds, _forcings(plan)
        comparison = next((known for known in self._comparisons if known.plan == plan), None)
        if comparison is None:
            gradients = any(self._eager(call, recorded()).parts.get("gradients") for call in self._trials.calls)
            comparison = _Comparison(plan, gradients)
            self._comparisons.append(comparison)
        every = [(call, variation) for call in self._trials.calls for variation in self._of(call, plan)]
        every.sort(key=lambda one: (one[1].name != recorded().name, one[1].recompiles))  # what needs another compile is last
        self._passed, self._needed = comparison.passed, {_Case(call, recorded()).key for call in self._trials.calls}
        verification = comparison.verification
        verification.conditions[UNTRIED] = _untried(every, forcings, comparison)  # should it end from outside
        try:
            self._compare(every, forcings, comparison)
            del verification.conditions[UNTRIED]
        except (OutOfTime, TookTooLong):
            if not self._needed <= comparison.passed:
                raise
            verification.conditions[UNTRIED] = _untried(every, forcings, comparison)
        finally:
            self._until = math.inf
        return verification

    def _compare(
        self, every: list[tuple[RecordedCall, Variation]], forcings: list[tuple[Condition, ...]], comparison: _Comparison
    ) -> None:
        plan, verification = comparison.plan, comparison.verification
        every = [(call, variation) for call, variation in every if _Case(call, variation).key not in comparison.passed]
        while every:
            self._tick()
            cases, every = self._chunk(every, comparison)
            if any("custom_op" in text for text in plan.texts.values()):
                self._check_fakes(comparison, cases)
            self._run_cases(cases, plan, Plan(), comparison)
            if plan.texts:  # `torch.while_loop`, for one, may raise there
                uncompiled, keys = list[Observation](), {case.key for case in cases}
                comparison.passed -= keys
                with self._trials.uncompiled(plan) as run:
                    for case in cases:
                        self._tick()
                        uncompiled.append(run(case.call, case.variation))
                for case, actual in zip(cases, uncompiled, strict=True):
                    comparison.check(actual, case, "without torch.compile, ", self._in_float64)
                comparison.passed |= keys
            verification.variations += sum(not c.variation.remark and c.variation.name != recorded().name for c in cases)
        for tests in (tests for tests in forcings if tests not in comparison.passed):
            forced = self._force(tests, comparison)
            verification.forced, verification.variations = verification.forced + forced, verification.variations + forced
            comparison.passed.add(tests)

    def _chunk(
        self, every: list[tuple[RecordedCall, Variation]], comparison: _Comparison
    ) -> tuple[list[_Case], list[tuple[RecordedCall, Variation]]]:
        """Cases with what eager does, as many as a quarter of the time that is left allows; and what is left of `every`."""
        started, cases = time.perf_counter(), list[_Case]()
        longest = (self._until - started) / 4
        for number, (call, variation) in enumerate(every):
            if time.perf_counter() - started > longest and variation.name != recorded().name:
                return cases, every[number:]
            case = _Case(call, variation, self._eager(call, variation))
            if _says_nothing(case):
                comparison.passed.add(case.key)
            else:
                cases.append(case)
        return cases, []

    def _of(self, call: RecordedCall, plan: Plan | None = None) -> list[Variation]:
        """The variations of a call; with a plan, also those for the conditions in the files that it edits."""
        key = (id(call), "" if plan is None else repr(sorted(plan.texts.items())))
        if key not in self._variations:
            with call.replaying(numbers=True) as prepare:
                given, holder = call.given(*prepare()), call.target if call.namespace is None else None
                if plan is None:
                    self._variations[key] = [recorded(), *variations(holder, *given)]
                else:
                    self._variations[key] = tested_variations(plan, call, *given)
        return self._variations[key] if plan is None else [*self._of(call), *self._variations[key]]

    def _run_cases(
        self, cases: list[_Case], plan: Plan, original: Plan, comparison: _Comparison, sides: _Sides | None = None
    ) -> None:
        """Compare the compiled program in these cases; raises Refused if one differs."""
        while cases:
            refused: tuple[int, Observation, Refused] | None = None
            with self._trials.compiled(plan, THOROUGH, sides.helpers if sides is not None else None) as run:
                for number, case in enumerate(cases):
                    self._tick()
                    if sides is not None:
                        sides.force(case.sides)
                    actual = run(case.call, case.variation)
                    try:
                        comparison.check(actual, case)
                    except Refused as refusal:
                        refused = number, actual, refusal
                        break
                    comparison.passed.add(case.key)
            if refused is None:
                return
            number, actual, reason = refused
            if not cases[number].is_eager:
                raise reason
            try:
                cases = self._unchanged(cases[number:], original, THOROUGH, comparison, reason, sides)
            except Refused:
                comparison.check(actual, cases[number], in_float64=self._in_float64)
                comparison.passed.add(cases[number].key)
                cases = cases[number + 1 :]

    def _check_fakes(self, comparison: _Comparison, cases: list[_Case]) -> None:
        """Compare what custom operators return with what their fake implementations promise.

        The inputs are the recorded ones and those that may need another compile, such as other sizes.
        """
        static = replace(comparison.plan, settings={**comparison.plan.settings, "dynamic": False})
        with self._trials.compiled(static, _checking_backend) as run:
            for case in cases:
                if case.variation.recompiles or case.variation.name == recorded().name:
                    self._tick()
                    comparison.check(run(case.call, case.variation), case)

    def _force(self, tests: tuple[Condition, ...], comparison: _Comparison) -> int:
        """Compare on all combinations of the sides of these one or two conditions; returns the number of cases."""
        pair = _forced_pair(comparison.plan, tests)
        if pair is None:  # one of the two conditions is part of the other, or they are in different files
            return sum(self._force((test,), comparison) for test in tests) if len(tests) > 1 else 0
        (original, changed), forced, cases = pair, _Sides(len(tests)), list[_Case]()
        with self._trials.eagerly(original, forced.helpers) as run:
            # without other sizes and numbers; gradients come last for each call
            for call, variation in ((c, v) for c in self._trials.calls for v in self._of(c) if v.gradients or not v.recompiles):
                for sides in itertools.product((True, False), repeat=len(tests)):
                    forced.force(sides)
                    where = " and ".join(f"`{t.before}` is {side}" for t, side in zip(tests, sides, strict=True))
                    case = _Case(call, variation, self._ended(run, call, variation), sides, f"where {where}, ")
                    cases += [] if _says_nothing(case) else [case]
        self._run_cases(cases, changed, original, comparison, forced)
        return len(cases)


def _untried(
    every: list[tuple[RecordedCall, Variation]], forcings: list[tuple[Condition, ...]], comparison: _Comparison
) -> str:
    names = [f"with {v.name}" for call, v in every if _Case(call, v).key not in comparison.passed]
    names += [f"with `{test.before}` forced" for tests in forcings for test in tests if tests not in comparison.passed]
    return f"{UNTRIED} {listed(list(dict.fromkeys(names)), 3)}"


def _says_nothing(case: _Case) -> bool:
    """Whether there is nothing to compare with: the eager program refuses these inputs, or does not end in time."""
    error = case.expected.error
    return isinstance(error, TookTooLong) or (case.variation.may_fail and error is not None)


# -- conditions ----------------------------------------------------------------------------------------------------------
#
# In the edited text and in the original, each occurrence of a condition in a top-level statement that the edits touch, except
# in the condition of a `while`, is wrapped in a call to a helper that replaces the condition's value.  If the edits rewrite the
# condition, only those in changed lines are: elsewhere, one text would have it and the other would not.


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
        original = _with_forced(plan.originals[file], [(t.before, t.before != t.after) for t in tests], before)
        changed = _with_forced(text, [(t.after, t.before != t.after) for t in tests], after)
        if original is not None and changed is not None:
            return Plan({file: original}, {}, {file: plan.originals[file]}), plan.with_texts({file: changed})
    return None


def _is_loop(plan: Plan, test: Condition) -> bool:
    """Whether this is the condition of a `while` in changed lines, or part of one."""
    wanted = ast.dump(ast.parse(test.before, mode="eval").body)
    for file, original in plan.originals.items():
        changed = _changed_lines(file, original, plan.texts.get(file, original))
        asked = [t for t in _while_conditions(ast.parse(original)) if _overlaps(t, changed)]
        if any(ast.dump(part) == wanted for t in asked for part in ast.walk(t)):
            return True
    return False


def _changed_lines(file: str, text: str, other: str) -> list[tuple[int, int]]:
    """The first and the last line, in `text`, of each place where two texts of a file differ."""
    return [(edit.first_line, edit.last_line) for edit in edits_between(file, text, other)]


_HELPER = "_dynascope_force_{}"  # not with two underscores, which mean another name in a class


class _Sides:
    """The side to which each condition is forced, by number.  Switching the side of a tensor condition needs no recompile."""

    def __init__(self, count: int) -> None:
        self._flags = [torch.zeros((), dtype=torch.bool) for _ in range(count)]
        self._values = [False] * count
        #: the helpers that forced texts call, by name
        self.helpers: Mapping[str, Any] = {
            _HELPER.format(number): _helper(flag, self._values, number) for number, flag in enumerate(self._flags)
        }

    def force(self, sides: tuple[bool, ...]) -> None:
        """Force the conditions to these sides from now on."""
        for number, side in enumerate(sides):
            self._values[number] = side
            self._flags[number].fill_(side)


def _helper(flag: Any, values: list[bool], number: int) -> Callable[[Any], Any]:
    def force(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return torch.zeros_like(value, dtype=torch.bool) | flag
        return values[number]

    return force


def _with_forced(text: str, conditions: Sequence[tuple[str, bool]], changed: list[tuple[int, int]]) -> str | None:
    """The text with conditions forced in the top-level statements that contain changed lines, or in these lines alone.

    Args:
        text: the original or the edited text.
        conditions: the text of each, and whether the edits rewrite it.
        changed: the first and the last line of each change, counted from 1.

    Returns:
        None if a condition does not occur there outside of `while` conditions (a forced loop might not end) or occurs in a
        changed one, or if the text cannot be parsed.
    """
    made: str | None = text
    for number, (condition, is_rewritten) in enumerate(conditions):
        made = None if made is None else _with_one_forced(made, condition, changed, is_rewritten, _HELPER.format(number))
    return made


def _with_one_forced(text: str, condition: str, changed: list[tuple[int, int]], is_rewritten: bool, helper: str) -> str | None:
    """`_with_forced` for one condition."""
    try:
        tree, wanted = ast.parse(text), ast.dump(ast.parse(condition.strip(), mode="eval").body)
    except (SyntaxError, ValueError):
        return None
    touched = [(n.lineno, n.end_lineno or n.lineno) for n in tree.body if _overlaps(n, changed)]
    spans = changed if is_rewritten else touched
    tests = _while_conditions(tree)
    in_loops = {id(part) for test in tests for part in ast.walk(test)}
    edited = {id(part) for test in tests if _overlaps(test, changed) for part in ast.walk(test)}
    found = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.expr)
        and _overlaps(node, spans)
        and not isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del))
        and ast.dump(node) == wanted
    ]
    forced = [node for node in found if id(node) not in in_loops]
    if not forced or any(id(node) in edited for node in found):
        return None
    return _wrapped(text, forced, helper)


def _overlaps(node: ast.stmt | ast.expr, spans: list[tuple[int, int]]) -> bool:
    return any(node.lineno <= last and first <= (node.end_lineno or node.lineno) for first, last in spans)


def _while_conditions(tree: ast.AST) -> list[ast.expr]:
    return [node.test for node in ast.walk(tree) if isinstance(node, ast.While)]


def _wrapped(text: str, nodes: list[ast.expr], helper: str) -> str:
    """The text with each of these expressions as the argument of a call; line numbers stay the same."""
    lines = [line.encode() for line in split_lines(text)]
    places = [(n.lineno, n.col_offset, b"%s(" % helper.encode()) for n in nodes]
    places += [(n.end_lineno or n.lineno, n.end_col_offset or 0, b")") for n in nodes]
    for line, column, inserted in sorted(places, reverse=True):
        lines[line - 1] = lines[line - 1][:column] + inserted + lines[line - 1][column:]
    return b"".join(lines).decode()


# -- custom operators ------------------------------------------------------------------------------------------------------


class WrongFake(Exception):
    """An operator returned something other than its fake implementation promised, or changed an argument."""


def _checking_backend(graph: Any, inputs: list[Any]) -> Callable[..., Any]:
    """A callable that runs the graph node by node; it raises WrongFake at the first mismatch."""
    # OpOverloadPacket and OpOverload
    operators = (type(torch.ops.aten.sin), type(torch.ops.aten.sin.default))

    class Checking(torch.fx.Interpreter):
        def run_node(self, node: Any) -> Any:
            args, kwargs = self.fetch_args_kwargs_from_env(node)
            given = [*args, *kwargs.values()] if str(node.target).startswith("dynascope.") else []
            before = [a.clone() if isinstance(a, torch.Tensor) else a for a in given]
            result = super().run_node(node)
            if any(difference(now, then) for now, then in zip(given, before, strict=True)):
                raise WrongFake(f"{node.target} changes an argument in place")
            if isinstance(node.target, operators):
                promised = node.meta.get("example_value", node.meta.get("val"))
                text = _fake_difference(result, promised)
                if text is not None:
                    raise WrongFake(f"{node.target}: {text}")
            return result

    return Checking(graph).run


def _fake_difference(real: Any, fake: Any) -> str | None:
    if isinstance(real, (list, tuple)) and isinstance(fake, (list, tuple)):
        if len(real) != len(fake):
            return f"returned {len(real)} values, but its fake implementation says {len(fake)}"
        return next(filter(None, map(_fake_difference, real, fake)), None)
    if not isinstance(real, torch.Tensor) or not isinstance(fake, torch.Tensor):
        return None
    if real.dtype != fake.dtype:
        return f"returned {real.dtype}, but its fake implementation says {fake.dtype}"
    if len(real.shape) != len(fake.shape):
        return f"returned {len(real.shape)} dimensions, but its fake implementation says {len(fake.shape)}"
    for one, other in zip(real.shape, fake.shape, strict=True):
        if isinstance(other, int) and one != other:
            return f"returned shape {tuple(real.shape)}, but its fake implementation says {tuple(fake.shape)}"
    for size, one, other in zip(real.shape, real.stride(), fake.stride(), strict=True):
        if isinstance(other, int) and size > 1 and real.numel() and one != other:
            return f"returned strides {real.stride()}, but its fake implementation says {tuple(fake.stride())}"
    return None
