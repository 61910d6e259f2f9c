"""Verifies that a plan does what eager does: on recorded inputs, on other ones, on both sides of each condition it changes.

Eager is the original program in eager mode, run from the same state.  The changed program is compiled with the backend
"aot_eager" (LSTMs: "eager"), so gradients, changes in place and side effects of tracing are checked too.  If its source is
changed, it also runs without torch.compile, because that source is what the user keeps.
"""

from __future__ import annotations

import ast
import functools
import itertools
import math
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from dynascope.compiler.capture.torch_private.tensors import may_lose_a_device
from dynascope.compiler.lab.comparison import difference
from dynascope.compiler.lab.experiment import Observation
from dynascope.compiler.lab.fix.candidate import Condition
from dynascope.compiler.lab.fix.difference import Difference, differences, own_rounding, remarks, without_zero_gradients
from dynascope.compiler.lab.fix.plan import Plan
from dynascope.compiler.lab.fix.text_edits import edits_between
from dynascope.compiler.lab.fix.trial import Run, TookTooLong, Trials
from dynascope.compiler.lab.fix.variations import RECORDED, Variation, tested_variations, variations
from dynascope.compiler.lab.recorded_call import RecordedCall
from dynascope.compiler.parsing import parsed
from dynascope.compiler.report import listed, plural
from dynascope.compiler.source.lines import split_lines

#: the backends with which `search` looks for breaks, and with which the changed program is verified
QUICK, THOROUGH = "eager", "aot_eager"
DIFFERS = "The unchanged program, too, differs from eager when it is compiled with"
_FOR_EXAMPLE = "For example"
_ZERO_GRADIENT = "A tensor that takes no part, as on one side of a condition, gets a gradient of zero where eager has none"
UNTRIED = "There was no time to compare it"
NO_GRADIENTS = "No gradients are asked for, as in the recorded calls"
#: called before each run; raises to end the search
Tick = Callable[[], None]


class Refused(Exception):
    """The plan does not do what eager does, cannot be checked, or gives no better result; the message says why."""


class OutOfTime(Exception):
    """The time limit was reached."""


@dataclass
class Verification:
    """What was checked to verify a plan."""

    variations: int = 0
    #: what else it assumes: `_ZERO_GRADIENT`, or nothing
    assumption: str = ""
    #: what only differs in a case that the sentence names: how it differs -> the sentence
    conditions: dict[str, str] = field(default_factory=dict)
    #: with which backend and inputs the unchanged program differs from eager when compiled, and how; "" if not seen to
    differs: str = ""
    #: the largest errors against float64, of a value that differs by the call's own rounding: name, the change's, eager's
    rounding: tuple[str, float, float] | None = None

    def under(self, where: str, difference: Difference) -> None:
        """Add a condition, once for each way to differ (what is quoted does not count); lost checks come first.

        A case is an example if the program differs in that way in others, too; the recorded inputs are none.
        """
        way, case = difference.text.partition(" (")[0], where[:1].upper() + where[1:]
        known = {way: self.conditions.get(way) or f"{case}, it {difference.text}".rstrip(":")}
        if known[way].partition(", ")[0] not in (case.partition(", ")[0], f"With {RECORDED.name}", _FOR_EXAMPLE):
            known[way] = f"{_FOR_EXAMPLE}, {known[way][:1].lower()}{known[way][1:]}"
        self.conditions = {**known, **self.conditions} if difference.is_lost_check else {**self.conditions, **known}

    def words(self) -> str:
        """One sentence for the report, and one more if the unchanged program differs from eager."""
        others = " (or with the unchanged compiled program, where that differs from eager)" if self.differs else ""
        text = f"{'compared' if self.conditions else 'agrees'} with eager{others} on the recorded inputs"
        text += f" and {plural(self.variations, 'other')}" if self.variations else ""
        if self.rounding is not None:
            name, ours, eager = self.rounding
            errors = f"{name} is off by {ours:.1e} of its largest number, in eager by {eager:.1e}"
            text += f", to rounding: against float64, {errors}"
        return f"{text}. {DIFFERS} {self.differs}" if self.differs else text


@dataclass(frozen=True)
class _Case:
    """A call to be compared, with a variation of its inputs."""

    call: RecordedCall
    variation: Variation = RECORDED
    #: what to compare with: a run in eager mode or, if not `is_eager`, one of the compiled original
    expected: Observation = field(default_factory=Observation)
    #: to which side each condition is forced, and how a refusal's sentence begins because of that
    sides: tuple[bool, ...] = ()
    where: str = ""
    is_eager: bool = True
    #: the class of the exception that the compiled original raises where eager raises none: the changed program may, too
    may_raise: str | None = None

    @property
    def key(self) -> tuple[int, str, str]:
        return (id(self.call), self.variation.name, self.where)

    @property
    def is_recorded(self) -> bool:
        return self.variation is RECORDED

    @property
    def says_nothing(self) -> bool:
        """Whether there is nothing to compare with: the eager program refuses these inputs, or does not end in time."""
        error = self.expected.error
        return isinstance(error, TookTooLong) or (self.variation.may_fail and error is not None)


@dataclass
class _Comparison:
    """What is compared in one verification, and what it has shown so far."""

    plan: Plan
    #: whether the changed program must also run on inputs that are made to require gradients; else, that is a condition
    gradients: bool = True
    verification: Verification = field(default_factory=Verification)
    #: the keys of the cases, and the forced conditions, that the compiled program has passed, and those still to be compared
    passed: set[object] = field(default_factory=set)
    untried: set[object] = field(default_factory=set)
    #: the program before the changes, and the sides to which conditions are forced in both
    original: Plan = field(default_factory=Plan)
    sides: _Sides = field(default_factory=lambda: _Sides(0))

    def check(self, actual: Observation, case: _Case, where: str = "", eager: Verifier | None = None) -> None:
        """Raises Refused if a run differs from what is expected; differences that are allowed become remarks.

        `eager`: runs the eager program again, to tell rounding, and inputs that say nothing because it varies itself.
        Without it, also if it lacks a warning of eager's, or raises another exception: so may the unchanged program.
        """
        expected, variation, verification = case.expected, case.variation, self.verification
        if variation.gradients or not case.is_eager:
            kept = without_zero_gradients(actual, expected, parameters=not case.is_eager)
            verification.assumption = verification.assumption if kept is actual else _ZERO_GRADIENT
            actual = kept

        def is_own(what: str, index: int) -> bool:
            if eager is None or (runs := eager.in_float64(case)) is None:
                return False
            (name, one), (_, other) = actual.parts[what][index], expected.parts[what][index]
            exact, moved = (run.exact.get((what, index)) for run in runs)
            errors = own_rounding(one, other, exact, moved, expected.rounding(what, name))
            if errors is not None:
                verification.rounding = max((name, *errors), verification.rounding or ("", 0, 0), key=lambda r: r[1])
            return errors is not None

        found = differences(actual, expected, made=bool(case.sides) or not case.is_recorded, is_own=is_own)
        place, conditions = f"{where or case.where}with {variation.name}", verification.conditions
        is_backward = variation.gradients and (actual.error_type or (actual.backward_error and not expected.backward_error))
        conditions |= {remark: remark for remark in remarks(actual, expected, is_same=found is None)}
        if found is None or case.may_raise == actual.error_type is not None:
            return
        words = "warns" if may_lose_a_device() else ("warns", "raises")  # an assertion in a graph may cost the device
        is_first = eager is None and case.is_eager and found.text.startswith(words)
        if found.is_condition and not is_first:
            # the backend of the run may keep a check that this one drops
            verification.under(f"{place}, compiled with {THOROUGH}" if found.is_lost_check and not where else place, found)
        elif variation.remark and not is_first:
            conditions.setdefault(variation.remark, variation.remark)
        elif is_backward and not self.gradients:
            conditions.setdefault("gradients", f"{NO_GRADIENTS} ({place}: {found.text.rstrip(':')})")
        elif eager is None or case.is_recorded or not case.is_eager or eager.varies(case, self) is None:
            raise Refused(f"{place}: {found.text}")


class Verifier:
    """Keeps the eager program's results and compares plans with them."""

    def __init__(self, trials: Trials, tick: Tick = lambda: None) -> None:
        self._trials, self._tick_of_search = trials, tick
        #: when the verification that is running has to end, once it has passed the recorded inputs
        self._until, self._passed = math.inf, set[object]()
        self._comparisons: list[_Comparison] = []
        self._expected: dict[tuple[int, str], Observation] = {}
        #: how the eager program varies from run to run, in the cases where that was asked
        self._varying: dict[tuple[int, str, str], Difference | None] = {}
        self._float64: dict[tuple[int, str, str], tuple[Observation, Observation]] = {}
        #: (key of a case, backend, texts) where the compiled original agrees with eager
        self._agrees: set[tuple[tuple[int, str, str], str, str]] = set()

    def in_eager_mode(self, call: RecordedCall) -> Observation:
        """What the eager program does with the recorded inputs."""
        return self._with_eager(_Case(call)).expected

    @property
    def _recorded(self) -> set[object]:
        return {_Case(call).key for call in self._trials.calls}

    def _tick(self) -> None:
        self._tick_of_search()
        if time.perf_counter() > self._until and self._recorded <= self._passed:
            raise OutOfTime

    def _with_eager(self, case: _Case) -> _Case:
        """The case with what the eager program does in it."""
        key = (id(case.call), case.variation.name)
        if key not in self._expected:
            with self._trials.eagerly() as run:
                self._expected[key] = self._ended(run, case)
        return replace(case, expected=self._expected[key])

    def _ended(self, run: Run, case: _Case) -> Observation:
        """Run a call in eager mode; if it takes too long, TookTooLong counts as an exception of the program."""
        self._tick()
        try:
            return run(case.call, case.variation)
        except TookTooLong as error:
            self._tick()
            return Observation(error=error)

    def compare(self, plan: Plan, observed: list[Observation], backend: Any = QUICK) -> Verification:
        """Compare `observed`, the runs of all calls with their recorded inputs and this backend; raises Refused if they differ.

        They are compared with eager or, where the unchanged program differs from it, too, with that.
        """
        comparison, where = _Comparison(plan), "" if backend == QUICK else f"compiled with {backend}, "
        for call, actual in zip(self._trials.calls, observed, strict=True):
            case = self._with_eager(_Case(call))
            try:
                comparison.check(actual, case, where)
            except Refused:
                [case] = self._unchanged([case], backend, comparison)
                comparison.check(actual, case, where, self)
        return comparison.verification

    def in_float64(self, case: _Case) -> tuple[Observation, Observation] | None:
        """What the eager program does in float64, also with moved inputs; None if that is unknown."""
        if case.sides or not case.is_eager:
            return None
        if case.key not in self._float64:
            self._tick()
            self._float64[case.key] = self._trials.in_float64(case.call, case.variation)
        runs = self._float64[case.key]
        return None if any(run.error or run.limits or run.decided for run in runs) else runs

    def varies(self, case: _Case, comparison: _Comparison) -> Difference | None:
        """How the original differs from what it did in a case, run again in eager mode up to four times; None if never."""
        if case.key not in self._varying:
            with self._trials.eagerly(comparison.original, comparison.sides.helpers) as run:
                again = (differences(self._observed(run, case, comparison.sides), case.expected) for _ in range(4))
                self._varying[case.key] = next(filter(None, again), None)
        return self._varying[case.key]

    def _observed(self, run: Run, case: _Case, sides: _Sides) -> Observation:
        self._tick()
        sides.force(case.sides)
        return run(case.call, case.variation)

    def _unchanged(self, cases: list[_Case], backend: Any, comparison: _Comparison) -> list[_Case]:
        """The cases, to be compared with the compiled original where it, too, differs from eager, if it does in the first."""
        original, sides, changed, differs = comparison.original, comparison.sides, list[_Case](), ""
        first = (cases[0].key, str(backend), repr(sorted(original.texts.items())))
        if first in self._agrees:
            return cases
        with self._trials.compiled(original, backend, sides.helpers) as run:
            for case in cases:
                actual = self._observed(run, case, sides)
                if actual.error and not case.expected.error and not changed:
                    return [replace(case, may_raise=actual.error_type), *cases[1:]]
                found = None if actual.error and not case.expected.error else differences(actual, case.expected)
                if found is None and not changed:
                    self._agrees.add(first)
                    return cases
                if found is not None:  # the zeros that AOTAutograd gives parameters which take no part are nobody's wish
                    differs = differs or f"{backend} ({case.where}with {case.variation.name}: {found.text})"
                    compiled = without_zero_gradients(actual, case.expected, parameters=True)
                    case = replace(case, expected=compiled, is_eager=False)
                changed.append(case)
        # what earlier runs left in a cache, say, is not the compiler's doing
        if again := self.varies(cases[0], comparison):
            if cases[0].is_recorded:
                raise Refused(f"with {RECORDED.name}: run again in eager mode, the original differs ({again.text})")
            return cases
        comparison.verification.differs = comparison.verification.differs or differs
        return changed

    def verify(self, plan: Plan, *, seconds: float = math.inf, before: Plan | None = None) -> Verification:
        """Compare on the recorded inputs, on variations and on the sides of conditions; raises Refused or NotApplicable.

        Cases for which `seconds` do not do are a condition; the recorded inputs are compared in any case.  Called again for the
        same plan, it goes on with these cases.  Cases in which the plan `before` the last change was not compared are left out,
        too: what is wrong in them may be the fault of either.  Where the recorded calls ask for no gradients, the program may
        fail where inputs are made to require them: that is a condition, too.
        """
        self._until, forcings = time.perf_counter() + seconds, _forcings(plan)
        comparison = next((known for known in self._comparisons if known.plan == plan), None)
        if comparison is None:
            gradients = any(self.in_eager_mode(call).parts.get("gradients") for call in self._trials.calls)
            comparison = _Comparison(plan, gradients)
            self._comparisons.append(comparison)
        every = [_Case(call, v) for call in self._trials.calls for v in (*self._variations[id(call)], *_tested(plan, call))]
        every.sort(key=lambda case: (not case.is_recorded, case.variation.recompiles))  # what needs another compile is last
        verification, self._passed = comparison.verification, comparison.passed
        done = self._passed.union(*(known.untried for known in self._comparisons if known.plan == before))
        try:
            forced = [tests for tests in forcings if tests not in done]
            self._compare([case for case in every if case.key not in done], forced, comparison)
        except (OutOfTime, TookTooLong):
            if not self._recorded <= self._passed:
                raise
        finally:  # also if it is ended from outside
            self._until = math.inf
            verification.conditions.pop(UNTRIED, None)
            named: list[tuple[object, str]] = [(case.key, f"with {case.variation.name}") for case in every]
            named += [(tests, f"with `{test.before}` forced") for tests in forcings for test in tests]
            comparison.untried = {key for key, _ in named} - self._passed
            if names := dict.fromkeys(name for key, name in named if key in comparison.untried):
                verification.conditions[UNTRIED] = f"{UNTRIED} {listed([*names], 3)}"
        return verification

    @functools.cached_property
    def _variations(self) -> dict[int, list[Variation]]:
        """The variations of each call, also the recorded one."""
        found = {}
        for call in self._trials.calls:
            with call.replaying(numbers=True) as prepare:
                found[id(call)] = [RECORDED, *variations(call, *call.given(*prepare()))]
        return found

    def _compare(self, every: list[_Case], forcings: list[tuple[Condition, ...]], comparison: _Comparison) -> None:
        plan, verification, passed = comparison.plan, comparison.verification, comparison.passed
        while every:
            self._tick()
            # as many cases as eager mode runs in a quarter of the time that is left
            started, cases = time.perf_counter(), list[_Case]()
            longest = (self._until - started) / 4
            while every and (every[0].is_recorded or time.perf_counter() - started <= longest):
                case = self._with_eager(every.pop(0))
                if case.says_nothing or self._varying.get(case.key):
                    passed.add(case.key)
                else:
                    cases.append(case)
            if any("custom_op" in text for text in plan.texts.values()):
                # do custom operators return what their fake implementations promise, also with what needs another compile?
                static = replace(plan, settings={**plan.settings, "dynamic": False})
                resized = [case for case in cases if case.variation.recompiles or case.is_recorded]
                self._check(self._trials.compiled(static, _checking_backend), resized, comparison)
            self._run_cases(cases, comparison)
            if plan.texts:  # `torch.while_loop`, for one, may raise there
                keys = {case.key for case in cases}
                passed -= keys
                self._check(self._trials.uncompiled(plan), cases, comparison, "without torch.compile, ")
                passed |= keys
            others = [case for case in cases if not (case.variation.remark or case.is_recorded)]
            verification.variations += sum(not self._varying.get(case.key) for case in others)
        for tests in forcings:
            verification.variations += self._force(tests, comparison)
            passed.add(tests)

    def _run_cases(self, cases: list[_Case], comparison: _Comparison) -> None:
        """Compare the compiled program in these cases; raises Refused if one differs."""
        while cases:
            with self._trials.compiled(comparison.plan, THOROUGH, comparison.sides.helpers) as run:
                for number, case in enumerate(cases):
                    actual = self._observed(run, case, comparison.sides)
                    try:
                        comparison.check(actual, case)
                    except Refused:
                        if not case.is_eager:
                            raise
                        cases = cases[number:]
                        break
                    comparison.passed.add(case.key)
                else:
                    return
            first, *cases = self._unchanged(cases, THOROUGH, comparison)
            comparison.check(actual, first, eager=self)
            comparison.passed.add(first.key)

    def _check(self, runs: AbstractContextManager[Run], cases: list[_Case], comparison: _Comparison, where: str = "") -> None:
        """Compare what is run in this way in these cases; raises Refused if it differs in one."""
        with runs as run:
            observed = [self._observed(run, case, comparison.sides) for case in cases]
        for case, actual in zip(cases, observed, strict=True):
            comparison.check(actual, case, where, self)

    def _force(self, tests: tuple[Condition, ...], comparison: _Comparison) -> int:
        """Compare on all combinations of the sides of these one or two conditions; returns the number of cases."""
        pair = _forced_pair(comparison.plan, tests)
        if pair is None:  # one of the two conditions is part of the other, or they are in different files
            return sum(self._force((test,), comparison) for test in tests) if len(tests) > 1 else 0
        (original, changed), forced, cases = pair, _Sides(len(tests)), list[_Case]()
        with self._trials.eagerly(original, forced.helpers) as run:
            # without other sizes and numbers; gradients come last for each call
            calls = ((c, v) for c in self._trials.calls for v in self._variations[id(c)] if v.gradients or not v.recompiles)
            for (call, variation), sides in itertools.product(calls, list(itertools.product((True, False), repeat=len(tests)))):
                forced.force(sides)
                where = " and ".join(f"`{t.before}` is {side}" for t, side in zip(tests, sides, strict=True))
                case = _Case(call, variation, sides=sides, where=f"where {where}, ")
                cases.append(replace(case, expected=self._ended(run, case)))
        cases = [case for case in cases if not case.says_nothing]
        self._run_cases(cases, replace(comparison, plan=changed, original=original, sides=forced))
        return sum(not self._varying.get(case.key) for case in cases)


def _tested(plan: Plan, call: RecordedCall) -> list[Variation]:
    """The variations of a call for the conditions in the files that a plan edits."""
    if not plan.texts:
        return []
    with call.replaying(numbers=True) as prepare:
        return tested_variations(plan, call, *call.given(*prepare()))


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
        forced = list[str | None]()
        for which, (now, other) in enumerate([(plan.originals[file], text), (text, plan.originals[file])]):
            changed = _changed_lines(file, now, other)
            made: str | None = now
            for number, test in enumerate(tests):
                made = made and _with_forced(made, test[which], changed, test.before != test.after, _HELPER.format(number))
            forced.append(made)
        original, new = forced
        if original is not None and new is not None:
            return Plan({file: original}, {}, {file: plan.originals[file]}), replace(plan, texts={**plan.texts, file: new})
    return None


def _is_loop(plan: Plan, test: Condition) -> bool:
    """Whether this is the condition of a `while` in changed lines, or part of one."""
    for file, original in plan.originals.items():
        changed = _changed_lines(file, original, plan.texts.get(file, original))
        if any(_overlaps(loop, changed) and _same(loop, test.before) for loop in _while_conditions(ast.parse(original))):
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


def _with_forced(text: str, condition: str, changed: list[tuple[int, int]], is_rewritten: bool, helper: str) -> str | None:
    """The text with a condition forced in the top-level statements that contain changed lines, or in these lines alone.

    Args:
        text: the original or the edited text.
        condition: the text of the condition.
        changed: the first and the last line of each change, counted from 1.
        is_rewritten: whether the edits rewrite the condition.
        helper: the name of the function that forces it.

    Returns:
        None if the condition does not occur there outside of `while` conditions (a forced loop might not end) or occurs in a
        changed one, or if the text cannot be parsed.
    """
    tree = parsed(text)
    if tree is None:
        return None
    touched = [(n.lineno, n.end_lineno or n.lineno) for n in tree.body if _overlaps(n, changed)]
    found = [node for node in _same(tree, condition) if _overlaps(node, changed if is_rewritten else touched)]
    in_loops = {node: loop for loop in _while_conditions(tree) for node in _same(loop, condition) if node in found}
    forced = [node for node in found if node not in in_loops]
    if not forced or any(_overlaps(loop, changed) for loop in in_loops.values()):
        return None
    return _wrapped(text, forced, helper)


def _same(tree: ast.AST, condition: str) -> list[ast.expr]:
    """The expressions in a tree that are the same as a condition."""
    wanted = ast.parse(f"({condition}\n)", mode="eval").body
    return [node for node in ast.walk(tree) if type(node) is type(wanted) and ast.dump(node) == ast.dump(wanted)]


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

    class Checking(torch.fx.Interpreter):
        def run_node(self, node: Any) -> Any:
            args, kwargs = self.fetch_args_kwargs_from_env(node)
            given = [*args, *kwargs.values()] if str(node.target).startswith("dynascope.") else []
            before = [a.clone() if isinstance(a, torch.Tensor) else a for a in given]
            result = super().run_node(node)
            if any(difference(now, then) for now, then in zip(given, before, strict=True)):
                raise WrongFake(f"{node.target} changes an argument in place")
            # OpOverloadPacket and OpOverload
            if isinstance(node.target, (type(torch.ops.aten.sin), type(torch.ops.aten.sin.default))):
                promised = node.meta.get("example_value", node.meta.get("val"))
                if (text := _fake_difference(result, promised)) is not None:
                    raise WrongFake(f"{node.target}: {text}")
            return result

    return Checking(graph).run


def _fake_difference(real: Any, fake: Any) -> str | None:
    if isinstance(real, (list, tuple)) and isinstance(fake, (list, tuple)):
        if len(real) == len(fake):
            return next(filter(None, map(_fake_difference, real, fake)), None)
        found: list[tuple[bool, str, Any]] = [(True, f"{len(real)} values", len(fake))]
    elif isinstance(real, torch.Tensor) and isinstance(fake, torch.Tensor):
        # sizes that the fake implementation leaves open are no ints; the stride of a dimension of one element is arbitrary
        shapes = [isinstance(other, int) and one != other for one, other in zip(real.shape, fake.shape, strict=False)]
        sizes, strides = real.shape, zip(real.stride(), fake.stride(), strict=False)
        laid_out = [isinstance(b, int) and n > 1 and a != b for n, (a, b) in zip(sizes, strides, strict=False)]
        found = [
            (real.dtype != fake.dtype, f"{real.dtype}", fake.dtype),
            (len(real.shape) != len(fake.shape), f"{len(real.shape)} dimensions", len(fake.shape)),
            (any(shapes), f"shape {tuple(real.shape)}", tuple(fake.shape)),
            (any(laid_out) and real.numel() > 0, f"strides {real.stride()}", tuple(fake.stride())),
        ]
    else:
        return None
    return next((f"returned {one}, but its fake implementation says {other}" for differs, one, other in found if differs), None)
