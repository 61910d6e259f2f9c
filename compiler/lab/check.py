"""`--check`: compares what compiled code does with what eager code does.

The last call of a compiled function is replayed twice, compiled and with torch's stance "force_eager", from the same state and
with the same random seeds, and where these differ, a second time in eager mode.  The outcomes are compared with the tolerances
of `torch.testing.assert_close` for their dtypes, or, where less precision was used on the way, with the rounding of the lowest
one.

A backend may draw other random numbers than eager code (Inductor does, "eager" does not), so if any were drawn, only a
difference that is rounding shows anything.
"""

from __future__ import annotations

import sys
from collections.abc import Container
from dataclasses import replace

from dynascope.compiler.capture.torch_private import config, hook_installer
from dynascope.compiler.lab.comparison import NOT_COMPARABLE, difference
from dynascope.compiler.lab.experiment import Experiment, Observation, SideState, Variant
from dynascope.compiler.lab.numbers import verdict
from dynascope.compiler.lab.recorded_call import RecordedCall
from dynascope.compiler.report import Check, error_words, listed, plural

#: at most this many differences are reported
MOST_DIFFERENCES = 5
#: what may have changed, one and several: that it was compared does not say that the call changed it
_STATE = ("argument, attribute or variable after the call", "arguments, attributes or variables after the call")


def words(checked: Check, *, is_located: bool) -> list[str]:
    """The verdict as sentences for the report's notes: the second says which is right, if they differ.

    `is_located`: whether the place where it begins is searched, too.
    """
    if checked.numbers is None or checked.agrees is not False:
        return [_agreement(checked)]
    searched = {"unknown": "", "rounding": "; `--check=where` tries settings with which they agree"}
    more = "" if is_located else searched.get(checked.numbers.verdict, "; `--check=where` looks for the line where it begins")
    return [_agreement(checked), f"check: {checked.numbers.sentence}{more}"]


def _agreement(checked: Check) -> str:
    if checked.agrees is None:
        unknown = "unknown whether compiled and eager agree" if checked.differences else "nothing was compared"
        return f"check: {unknown}: {checked.why_not}."
    if not checked.agrees:
        first, *others = checked.differences
        also = f"; also {listed([other.partition(': ')[0] for other in others], 3)}" if others else ""
        return f"check: compiled and eager differ: {first}{also}."
    found = ((what.removesuffix("s"), many) for what, many in checked.compared.items() if many)
    compared = ", ".join(f"{many} {_STATE[many > 1]}" if what == "effect" else plural(many, what) for what, many in found)
    for precision in dict.fromkeys(checked.judged_by.values()):
        names = [name for name, used in checked.judged_by.items() if used == precision]
        compared += f"; only within the rounding of {precision}, which was used on the way: {listed(names, 3)}"
    if checked.not_compared:
        compared += f"; not compared: {', '.join(checked.not_compared[:3])}"
    return f"check: compiled and eager agree ({compared})."


def compare(call: RecordedCall | None, backend: object = None) -> Check:
    """Run the call again, compiled and eagerly, and compare the observations; `backend`: what it is compiled with."""
    if call is None:
        return Check(why_not="nothing that dynascope itself compiles was called")
    if (outdated := call.outdated) or call.lacks_hooks:
        return Check(why_not=outdated or "hooks of its modules have been removed since")
    if not call.may_have_run_graphs:
        return Check(why_not="no compiled graph ran in the last call")  # perhaps as the recompile limit was reached
    try:
        # at the recompile limit, the compiled call would run eagerly, and agree
        unlimited = config.dynamo_config(recompile_limit=sys.maxsize, accumulated_recompile_limit=sys.maxsize)
        with hook_installer.HOOKS.paused(), unlimited, Experiment(call, state=SideState(call)) as experiment:
            compiled, eager = (experiment.run(Variant(call.entry, is_eager)) for is_eager in (False, True))
            if backend == "eager":  # it draws the numbers of eager code, which then explain nothing
                compiled.drew = eager.drew = False
            if (error := compiled.error or eager.error) is not None:
                if compiled.error is None:
                    only = f"the eager call raises {error_words(error)}; the compiled call does not"
                    return Check(agrees=False, differences=[only])
                raise error
            checked, varying = outcome(compiled, eager), set[str]()
            if checked.differences:
                varying = _varying(eager, experiment.run(Variant(call.entry, True)))
                checked = outcome(compiled, eager, varying)
            raised = len(_raised(compiled, eager))  # which no numbers explain
            if len(checked.differences) > raised:

                def in_float64(moved: float) -> Observation:
                    return experiment.run(Variant(call.entry, True, follows_float64=moved))

                exact = in_float64(0.0)  # perhaps they differ because of a precision that is lower than that of the values
                if exact.error is None:
                    checked = outcome(compiled, replace(eager, precisions=exact.precisions), varying)
                if (count := len(checked.differences) - raised) > 0:
                    checked.numbers = verdict.compare(compiled, eager, exact, in_float64, count)
                    if checked.numbers.verdict == "rounding":  # other numbers do not come that near
                        checked.agrees, checked.why_not = False, ""
    except Exception as error:
        return Check(why_not=f"when repeated, it raised {error_words(error)}")
    del checked.differences[MOST_DIFFERENCES:]
    return checked


def outcome(compiled: Observation, eager: Observation, varying: Container[str] = ()) -> Check:
    """Compare two observations of one call; `varying`: what is not compared, as it is another in each eager call: a time."""
    raised = _raised(compiled, eager)
    checked = Check(not_compared=list(dict.fromkeys([*eager.opaque, *compiled.opaque])), differences=[*raised])
    if eager.backward_error and not compiled.backward_error:
        checked.not_compared.append(f"gradients: autograd.grad in the eager call raises {eager.backward_error}")
    for what in eager.parts:
        if what == "gradients" and raised:
            continue
        actual, expected = compiled.beside(eager, what)
        checked.compared[what] = sum(name not in eager.unchanged for name, _ in expected)
        found, wanted = ({name for name, _ in parts} for parts in (actual, expected))
        here = "is new or changed" if what == "effects" else "exists"  # parameters that have not changed are left out
        only = [f"{n} {here} only in the {'eager' if n in wanted else 'compiled'} call" for n in sorted(found ^ wanted)]
        if only or len(actual) != len(expected):
            checked.differences += only or [f"{len(actual)} parts among the {what}, eager {len(expected)}"]
            continue
        for (name, a), (_, b) in zip(actual, expected, strict=True):
            rounding = eager.rounding(what, name)
            text = difference(a, b, rounding)
            if text is None and rounding.precision is not None and difference(a, b) is not None:
                checked.judged_by[name] = str(rounding.precision).removeprefix("torch.")
            if text is None:
                continue
            if (part := f"{name} ({what})") in varying or text.startswith(NOT_COMPARABLE):  # nested tensors, for example
                checked.compared[what] -= name not in eager.unchanged
                checked.not_compared.append(f"{part}, another in each eager call" if part in varying else part)
            else:
                checked.differences.append(f"{part}: {text}")
    if checked.differences and (compiled.drew or eager.drew) and not raised:
        setting = "torch._inductor.config.fallback_random = True can make Inductor's the same"
        checked.why_not = f"{verdict.DRAWS}; {setting} (they differ: {checked.differences[0]})"
    elif not checked.differences and not any(checked.compared.values()):
        which = f" ({', '.join(checked.not_compared[:3])})" if checked.not_compared else ""
        checked.why_not = f"the call returns and changes nothing that can be compared{which}"
    else:
        checked.agrees = not checked.differences
    return checked


def _varying(eager: Observation, again: Observation) -> set[str]:
    """The parts that are others when the call is made once more in eager mode: times, for example."""
    parts = [(w, zip(parts, again.parts.get(w, ()), strict=False)) for w, parts in eager.parts.items()]
    pairs = [(w, name, a, b) for w, pair in parts for (name, a), (_, b) in pair]
    return {f"{name} ({w})" for w, name, a, b in pairs if difference(a, b) is not None or (isinstance(a, float) and a != b)}


def _raised(compiled: Observation, eager: Observation) -> list[str]:
    """That going backward from the results raises in the compiled call only."""
    if eager.backward_error or not compiled.backward_error:
        return []
    raises = f"backward() in the compiled call raises {compiled.backward_error}"
    return [f"{raises}; the eager call gives {plural(len(eager.parts['gradients']), 'gradient')}"]
