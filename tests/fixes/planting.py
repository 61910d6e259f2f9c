"""Plants changes and faults in the search: the one place where the tests of fixes reach into the product."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import pytest

from dynascope.compiler.lab.fix import search, trial
from dynascope.compiler.lab.fix.candidate import Candidate, Condition, Problem
from dynascope.compiler.lab.fix.plan import Plan
from dynascope.compiler.lab.fix.verification import Verification, Verifier
from dynascope.compiler.report import FixEdit


@dataclass(frozen=True)
class Planted:
    """A change: `text` becomes `changed`, in any file in which it is."""

    title: str
    text: str
    changed: str
    #: conditions that it takes over into a tensor operation: the comparison forces them
    tests: tuple[str, ...] = ()
    settings: Mapping[str, object] = field(default_factory=dict)

    def candidates(self, problem: Problem) -> list[Candidate]:
        new = problem.source.replace(self.text, self.changed)
        if new == problem.source:
            return []
        edits = (FixEdit(problem.file, 1, len(problem.source.splitlines(keepends=True)), problem.source, new),)
        tests = tuple(Condition(test, test) for test in self.tests)
        return [Candidate("rewrite", self.title, edits, self.settings, tests=tests)]


def only(*changes: Planted) -> contextlib.AbstractContextManager[object]:
    """The search knows these changes, and no other."""
    return mock.patch.object(search, "CANDIDATE_SOURCES", tuple(change.candidates for change in changes))


@contextlib.contextmanager
def counted_verifications() -> Iterator[list[Plan]]:
    """Yields the plans that are compared with eager: the first one to agree comes twice, for a first answer and the rest."""
    plans: list[Plan] = []
    verify = Verifier.verify

    def counted(self: Verifier, plan: Plan, **options: Any) -> Verification:
        plans.append(plan)
        return verify(self, plan, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Verifier, "verify", counted)
        yield plans


@contextlib.contextmanager
def interrupted_after_an_answer() -> Iterator[list[str]]:
    """The first trial after a verification has begun to compare is interrupted; yields what the search says."""
    said: list[str] = []
    init, trace, verify = search.Search.__init__, trial.Trials.run, Verifier.verify
    compared: list[Plan] = []

    def made(self: search.Search, *args: Any, on_progress: Any, **options: Any) -> None:
        init(self, *args, on_progress=said.append, **options)

    def run(self: trial.Trials, plan: Plan, *rest: Any) -> trial.TrialResult:
        if compared:
            raise KeyboardInterrupt
        return trace(self, plan, *rest)

    def verified(self: Verifier, plan: Plan, **options: Any) -> Verification:
        if plan in compared:
            raise KeyboardInterrupt
        compared.append(plan)
        return verify(self, plan, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search.Search, "__init__", made)
        patch.setattr(trial.Trials, "run", run)
        patch.setattr(Verifier, "verify", verified)
        yield said


@contextlib.contextmanager
def time_for_one_input(times: int) -> Iterator[None]:
    """In the first so many verifications, the time is over after the first input."""
    run_cases, left = Verifier._run_cases, [None] * times

    def run(self: Verifier, cases: list[Any], *rest: Any) -> None:
        run_cases(self, cases[:1] if left else cases, *rest)
        if left:
            left.pop()
            raise search.OutOfTime

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Verifier, "_run_cases", run)
        yield


def failing_source(error: Exception) -> contextlib.AbstractContextManager[object]:
    """One kind of change fails for every break."""

    def candidates(problem: Problem) -> list[Candidate]:
        raise error

    return mock.patch.object(search, "CANDIDATE_SOURCES", (candidates, *search.CANDIDATE_SOURCES))


def failing_search(error: Exception) -> contextlib.AbstractContextManager[object]:
    """The search itself fails."""
    return mock.patch.object(search.Search, "run", side_effect=error)


def longest_call(seconds: float) -> contextlib.AbstractContextManager[object]:
    """A trial's call may take so long."""
    return mock.patch.object(trial, "LONGEST_CALL", seconds)
