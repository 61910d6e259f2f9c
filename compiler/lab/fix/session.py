"""Implements `report.fixed()`, which applies the proved fixes in the running process for the duration of a block."""

from __future__ import annotations

import contextlib
import types
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from dynascope.compiler.capture.torch_private import marks
from dynascope.compiler.lab.fix.plan import Plan
from dynascope.compiler.lab.fix.text_edits import NotApplicable
from dynascope.compiler.report import Report


@dataclass
class LiveFixes:
    """What a report keeps for `fixed()`: the plan, and a function that returns what was compiled.

    The function returns None if that object is gone, or if its class allows no weak references.
    """

    plan: Plan
    target: Callable[[], Any]


def live_fixes(plan: Plan, target: Any) -> LiveFixes:
    """The LiveFixes of a plan; they do not keep the target alive."""
    target = marks.inner_function(target)
    try:
        reference = weakref.WeakMethod(target) if isinstance(target, types.MethodType) else weakref.ref(target)
    except TypeError:  # the target's class allows no weak references
        return LiveFixes(plan, lambda: None)
    return LiveFixes(plan, reference)


@contextlib.contextmanager
def fixed(report: Report) -> Iterator[Any]:
    """Yields the function or module of a report, with the edits and the settings of Dynamo in force for the duration.

    Arguments of torch.compile, and marks on arguments, are left to the caller.  Raises ValueError if they cannot be applied.
    """
    live = report.live_fixes
    if report.fix_set is None or not report.fix_set.fixes:
        raise ValueError("the report has no proved fixes: run explain(f, fix=True)")
    if not isinstance(live, LiveFixes):
        raise ValueError("the report was read from a file: its functions are not here; use report.patch()")
    target = live.target()
    if target is None:
        raise ValueError("the explained function no longer exists, or allows no weak references: use report.patch()")
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(live.plan.in_force())
        except NotApplicable as reason:
            raise ValueError(f"the fixes do not fit any more: {reason}") from None
        yield target
