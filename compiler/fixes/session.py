"""`report.fixed()`: the proved fixes in force in the running process."""

from __future__ import annotations

import contextlib
import types
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from dynascope.compiler.fixes.plan import Plan
from dynascope.compiler.fixes.proving.caller_changes import numbers_as_tensors
from dynascope.compiler.fixes.text_edits import NotApplicable
from dynascope.compiler.report import Report
from dynascope.compiler.torch_private import marks


@dataclass
class LiveFixes:
    """What a report keeps of its run: texts, settings, and a weak reference to what was compiled."""

    plan: Plan
    target: Callable[[], Any]


def live_fixes(plan: Plan, target: Any) -> LiveFixes:
    """The plan, and a reference that keeps nothing alive."""
    target = marks.inner_function(target)
    try:
        reference = weakref.WeakMethod(target) if isinstance(target, types.MethodType) else weakref.ref(target)
    except TypeError:  # its class allows no weak references
        return LiveFixes(plan, lambda: None)
    return LiveFixes(plan, reference)


@contextlib.contextmanager
def fixed(report: Report) -> Iterator[Any]:
    """The fixed function of a report, for the duration; raises ValueError if there is none."""
    live = report.live_fixes
    if report.fix_set is None or not report.fix_set.fixes:
        raise ValueError("the report has no proved fixes: run explain(f, fix=True)")
    if not isinstance(live, LiveFixes):
        raise ValueError("the report was read from a file: its functions are not here; use report.patch()")
    target = live.target()
    if target is None:
        raise ValueError("the function that was explained does not exist any more")
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(live.plan.in_force())
            stack.enter_context(numbers_as_tensors(target, live.plan.tensors))
        except NotApplicable as reason:
            raise ValueError(f"the fixes do not fit any more: {reason}") from None
        yield target
