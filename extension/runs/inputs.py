"""`--inputs NAME`: the list that the name stands for, checked before the cell runs and looked up again after it."""

from __future__ import annotations

import keyword
from typing import Any

from IPython.core.error import UsageError

from dynascope.cell.interrupts import interruptible
from dynascope.compiler.profile.inputs import try_inputs, wrong_with
from dynascope.selection.definitions import did_you_mean


def check_inputs(name: str, namespace: dict[str, Any], bound: set[str], *, takes_inputs: bool) -> None:
    """Raise UsageError, in one line, where it cannot work; the cell itself gives the names in `bound` their meaning."""
    if not name.isidentifier() or keyword.iskeyword(name):
        raise UsageError(f"--inputs {name}: not a name; bind the list of inputs to one")
    if not takes_inputs:
        raise UsageError("--inputs: statements take no inputs; define a function in the cell, or name one with -f")
    if name in bound:
        return
    if name not in namespace:
        raise UsageError(f"--inputs {name}: no {name!r} in the notebook{did_you_mean(name, namespace)}")
    wrong = wrong_with(namespace[name])
    if wrong is not None:
        raise UsageError(f"--inputs {name}: {wrong}")


def tried_inputs(name: str, namespace: dict[str, Any], last: Any, calls: int, notes: list[str]) -> Any:
    """What each input gave; None, and a note, where there was nothing to give or nobody to take it."""
    wrong = wrong_with(namespace.get(name))
    tried = None if wrong else interruptible(last.quietly, try_inputs, namespace[name], calls)
    if tried is None:
        notes.append(f"--inputs {name}: {wrong or 'not given to anything: nothing that this run compiles was called'}")
    return tried
