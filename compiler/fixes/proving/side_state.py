"""State that a call may change besides its arguments: globals, closures, containers, and attributes of objects.

`accuracy.outcome` compares the arguments, and the parameters, buffers, numbers and strings of modules.  This module adds other
state, so that a change that drops `stats["loss"] = ...` or `self.seen.append(...)` is refused.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from types import BuiltinFunctionType, CellType, FunctionType, MethodType
from typing import Any

from dynascope.compiler.accuracy.compare import PLAIN, difference
from dynascope.compiler.replay import object_state
from dynascope.compiler.replay.object_state import GlobalName
from dynascope.compiler.replay.reachable import Reachable

#: attributes of a module whose contents `accuracy.outcome` compares
_COMPARED_ELSEWHERE = frozenset(("_parameters", "_buffers", "_modules"))
_FUNCTIONS = (FunctionType, BuiltinFunctionType, MethodType)
#: tensors with more elements are not compared
_LARGEST = 1 << 20


class SideState:
    """The state that a target and its arguments can reach; must be created before anything is edited.

    Of the attributes of a module, only tensors are read here.
    """

    def __init__(self, target: Any, arguments: Any = ()) -> None:
        import torch

        objects = Reachable([target, arguments]).objects
        # what `accuracy.outcome` compares, and the registries of hooks, which nothing compares
        left_out = {
            id(value)
            for module in objects
            if isinstance(module, torch.nn.Module)
            for name, value in vars(module).items()
            if name in _COMPARED_ELSEWHERE or name.endswith("_hooks")
        }
        kinds = (GlobalName, CellType, *object_state.CONTAINERS)
        self._owners = [o for o in objects if id(o) not in left_out and (isinstance(o, kinds) or _has_attributes(o))]

    def read(self) -> dict[str, Any]:
        """The values that can be compared, each under a name that is the same in each run.

        Of a set, only the length is read; of a dict, only the entries whose keys are numbers, strings or bytes.
        """
        values: dict[str, Any] = {}
        for number, owner in enumerate(self._owners):
            for name, value in _entries(owner):
                if (kept := _kept(value)) is not None:
                    values[f"{_name(owner, number)}{name}"] = kept
        return values


def state_difference(actual: dict[str, Any], expected: dict[str, Any]) -> str | None:
    """How the state after two runs differs, in words; None if it does not."""
    for name in expected:
        if name not in actual:
            return f"{_shown(name)} is not set by the changed program"
        text = difference(actual[name], expected[name])
        if text is not None:
            return f"{_shown(name)}: {text}"
    added = [name for name in actual if name not in expected]
    return f"{_shown(added[0])} is set only by the changed program" if added else None


def _has_attributes(value: Any) -> bool:
    return not isinstance(value, (type, *_FUNCTIONS)) and object_state.attributes_of(value) is not None


def _entries(owner: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(owner, GlobalName):
        yield "", owner.namespace.get(owner.name)
    elif isinstance(owner, CellType):
        yield "", object_state.value_or_absent(functools.partial(getattr, owner, "cell_contents"))
    elif isinstance(owner, dict):
        yield from ((f"[{key!r:.60}]", value) for key, value in list(dict.items(owner)) if isinstance(key, PLAIN))
    elif isinstance(owner, set):
        yield "", len(owner)
    elif isinstance(owner, object_state.CONTAINERS):
        yield from ((f"[{i}]", value) for i, value in enumerate(object_state.contents_of(owner)))
    else:
        import torch

        attributes = object_state.attributes_of(owner) or {}
        kinds = torch.Tensor if isinstance(owner, torch.nn.Module) else object
        own = [(name, value) for name, value in attributes.items() if isinstance(value, kinds)]
        yield from ((f".{name}", value) for name, value in own if not name.startswith("_dynamo_"))


def _kept(value: Any) -> Any:
    """A copy of a value that can be compared: a number, string or tensor; None for any other value.

    Parameters, tensors with more than `_LARGEST` elements, and meta and sparse tensors are not compared.
    """
    import torch

    if isinstance(value, torch.Tensor):
        is_skipped = isinstance(value, torch.nn.Parameter) or value.numel() > _LARGEST or value.layout is not torch.strided
        return None if is_skipped or value.device.type == "meta" else value.detach().clone()
    return value if isinstance(value, PLAIN) else None


def _name(owner: Any, number: int) -> str:
    """A unique name for an owner; `_shown` leaves out the number."""
    return f"{owner.name if isinstance(owner, GlobalName) else type(owner).__name__} {number} "


def _shown(name: str) -> str:
    kind, _, rest = name.split(" ", 2)
    return f"{kind}{rest}"
