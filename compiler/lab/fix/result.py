"""Adds the outcome of a search to the Report: all fixes that were considered, the set of the chosen ones, and the patch."""

from __future__ import annotations

import contextlib
import inspect
import types
import weakref
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType
from typing import Any

from dynascope.compiler.capture.torch_private import marks
from dynascope.compiler.lab.fix import patch
from dynascope.compiler.lab.fix.plan import Plan
from dynascope.compiler.lab.fix.search import FixedProgram, SearchResult
from dynascope.compiler.lab.fix.text_edits import NotApplicable, edits_between
from dynascope.compiler.lab.recorded_call import CallRecorder, target_id
from dynascope.compiler.parsing import errors_as, parsed
from dynascope.compiler.report import FixSet, Report, plural
from dynascope.compiler.source.lines import CellResolver
from dynascope.compiler.source.origin import is_users


def annotate_fixes(report: Report, found: SearchResult, kept: CallRecorder, cells: CellResolver | None) -> None:
    """Set `report.fixes`, `report.fix_set` and `report.conditional_fix_set`, and, if a call was kept, `report.live_fixes`."""
    targets = list({id(call.target): call.target for call in kept.kept}.values())
    found.notes += [f"A call was not repeated: {reason}" for reason in dict.fromkeys(kept.refusals)]
    total = sum(kept.calls[id] for id in {*map(target_id, targets)})
    repeated = len(kept.kept) + len(kept.later)
    if (repeated < total or not kept.is_whole) and any(fix.chosen for fix in found.fixes):
        found.notes.append(f"{plural(repeated, 'call')} repeated: with the fixes, others may break or compile again")
    programs = found.fixed or [FixedProgram(Plan(), found.before.counts)]
    sets = [_fix_set(program, found, report, targets, cells) for program in programs]
    report.fixes, report.fix_set, report.conditional_fix_set = found.fixes, sets[0], sets[1] if len(sets) > 1 else None
    if targets:
        report.live_fixes = [program.plan for program in programs], _reference(marks.inner_function(targets[0]))


def _reference(target: Any) -> Callable[[], Any]:
    """A function that returns the target; it returns None if that is gone, or if its class allows no weak references."""
    try:
        return weakref.WeakMethod(target) if isinstance(target, types.MethodType) else weakref.ref(target)
    except TypeError:  # the target's class allows no weak references
        return lambda: None


def _fix_set(
    program: FixedProgram, found: SearchResult, report: Report, targets: list[Any], cells: CellResolver | None
) -> FixSet:
    """The fixes of one program, as texts of files and with the figures of its repeated calls."""
    before, plan = found.before.counts, program.plan
    compiled = [one for one in dict.fromkeys(map(_function_of, targets)) if one is not None]
    removed = {id for fix in program.fixes if fix.settings for id in (fix.recompile, *fix.removes)}
    recompiled = {(f.file, f.name) for f in report.frames if f.id in removed}
    # arguments of torch.compile and marks are for what recompiles, or for what calls that, if they are for one function
    asked = [(f, of) for f, of in compiled if (f.__code__.co_filename, f.__code__.co_name) in recompiled] or compiled
    name, kind = (asked[0][0].__code__.co_name, asked[0][1]) if len(asked) == 1 else ("", "")
    function = next((f for f, _ in asked), None)
    settings_file = _file_of(function, plan)
    is_cell = cells is not None and settings_file is not None and cells(settings_file) is not None
    names = function.__globals__ if is_cell and function is not None else {}
    packages = {value.__name__: n for n, value in names.items() if isinstance(value, ModuleType) and not n.startswith("_")}
    texts = patch.final_texts(plan, settings_file, name, kind, packages, program.conditions)
    originals = {file: plan.originals.get(file) or Plan().text(file) for file in texts}
    return FixSet(
        fixes=[fix.id for fix in program.fixes],
        edits=[edit for file, text in texts.items() for edit in edits_between(file, originals[file], text)],
        settings=dict(plan.settings),  # type: ignore[arg-type]
        patch=patch.unified(plan, texts, settings_file, cells, program.conditions),
        cells={file: text for file, text in texts.items() if cells is not None and cells(file) is not None},
        search_seconds=round(found.seconds, 3), is_complete=found.is_complete, notes=found.notes,
        before=before, after=program.after,
    )  # fmt: skip


def _function_of(target: Any) -> tuple[FunctionType, str] | None:
    """The Python function of a target, and ""; of a module, its `forward`, and its class; None if there is none."""
    target = inspect.unwrap(marks.undecorated(marks.inner_function(target)))
    function = getattr(target, "__func__", target)
    if isinstance(function, FunctionType):
        return function, ""
    function = inspect.unwrap(getattr(type(target), "forward", function))
    return (function, type(target).__name__) if isinstance(function, FunctionType) else None


def _file_of(function: FunctionType | None, plan: Plan) -> str | None:
    """The user's file that the settings go into: the compiled function's, else one that is edited; None if there is none.

    A file whose text is unknown, or is not valid Python, is left out.
    """
    files = [*([function.__code__.co_filename] if function is not None else []), *plan.texts]
    return next((file for file in files if is_users(file) and (text := plan.text(file)) and parsed(text) is not None), None)


@contextlib.contextmanager
def fixed(report: Report, *, conditional: bool = False) -> Iterator[Any]:
    """Yields the function or module of a report, with the edits and the settings of Dynamo in force for the duration.

    Arguments of torch.compile, and marks on arguments, are left to the caller.  Raises ValueError if they cannot be applied.
    """
    fixes = report.fixes_to_apply(conditional=conditional)
    if fixes is None or not fixes.fixes:
        if report.conditional_fix_set is not None:
            raise ValueError("all fixes of the report hold under a condition only: use fixed(conditional=True)")
        raise ValueError("no fixes were looked for: run explain(f, fix=True)" if fixes is None else "no fix was found")
    if report.live_fixes is None:
        raise ValueError("the report was read from a file: its functions are not here; use report.patch()")
    plans, target_of = report.live_fixes
    target = target_of()
    if target is None:
        raise ValueError("the explained function no longer exists, or allows no weak references: use report.patch()")
    with contextlib.ExitStack() as stack:
        with errors_as(ValueError, "the fixes do not fit any more: ", (NotApplicable,)):
            stack.enter_context(plans[-1 if conditional else 0].in_force())
        yield target
