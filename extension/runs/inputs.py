"""`--inputs NAME`: checks the list of this name before the cell runs, and looks it up again afterwards."""

from __future__ import annotations

import keyword
from typing import Any

from IPython.core.error import UsageError

from dynascope.compiler.lab.inputs import wrong_with
from dynascope.compiler.validate import did_you_mean


def check_inputs(name: str, namespace: dict[str, Any], bound: list[str], *, takes_inputs: bool) -> None:
    """Raise UsageError, with a one-line message, if `--inputs` cannot work.

    `bound`: the names that the cell itself binds; their values are not known yet.  `takes_inputs`: whether the cell compiles
    something that can be called.
    """
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


def inputs_named(name: str | None, namespace: dict[str, Any], notes: list[str]) -> Any:
    """The list that has this name after the cell; if it cannot be used, None, and a note says why."""
    if name is None:
        return None
    wrong = wrong_with(namespace.get(name))
    if wrong is None:
        return namespace[name]
    notes.append(f"--inputs {name}: {wrong}")
    return None
