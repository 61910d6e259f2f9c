"""State that a call may change besides its arguments: globals, closures, containers, generators of random numbers, attributes.

`accuracy.outcome` compares the arguments, and the parameters, buffers, numbers, strings and bytes of modules.  This module adds
other state, so that a change that drops `stats["loss"] = ...` or `self.seen.append(...)` is refused.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from types import BuiltinFunctionType, CellType, FunctionType, MethodType
from typing import Any

from dynascope.compiler.lab import objects as state
from dynascope.compiler.lab.comparison import OWN, PLAIN, Rounding, difference, is_array, parts_of
from dynascope.compiler.lab.objects import GlobalName
from dynascope.compiler.lab.reachable import Reachable
from dynascope.compiler.patching import value_or_absent

#: prefixes of attributes that torch sets on functions and classes, and that Python sets on classes
_OWN = ("_dynamo_", "_torch", "__")
#: inside a value, tuples, lists and dicts are compared down to this many levels, and only those of at most this many items
_DEEPEST, _LONGEST = 3, 1000
#: tensors and arrays with more elements are not compared
_LARGEST = 1 << 20


class SideState:
    """The state that a target and its arguments can reach; must be created before anything is edited.

    Of the attributes of a module, numbers, strings and bytes are left out here.
    """

    def __init__(self, target: Any, arguments: Any = ()) -> None:
        import torch

        objects = Reachable([target, arguments]).objects
        left_out = {
            id(value)
            for module in objects
            if isinstance(module, torch.nn.Module)
            for name, value in vars(module).items()
            if name in _of_every_module()
        }
        parameters = [o for o in objects if isinstance(o, torch.nn.Parameter)]
        self._fingerprints = {id(p): state.fingerprint(p) for p in parameters}
        kinds = (GlobalName, CellType, *state.CONTAINERS)
        self._owners = [
            o
            for o in objects
            if id(o) not in left_out and (isinstance(o, kinds) or state.is_generator(o) or _has_attributes(o))
        ]

    def read(self) -> dict[str, Any]:
        """The values that can be compared, each under a name that is the same in each run.

        Of a set, only the length is read; of a dict, the length and the entries whose keys are numbers, strings or bytes.
        """
        values: dict[str, Any] = {}
        known = set(map(id, self._owners))
        for number, owner in enumerate(self._owners):
            for name, value in _entries(owner):
                for inner_name, inner in _flat(name, value, known):
                    if (kept := self._kept(inner)) is not None:
                        values[f"{_name(owner, number)}{inner_name}"] = kept
        return values

    def read_after_error(self, arguments: list[Any]) -> dict[str, Any]:
        """What `read` returns, and most of what `accuracy.outcome` compares if there is no exception.

        That is: the arguments, and the parameters, buffers, numbers and strings of modules.
        """
        import torch

        parts = [*parts_of("argument 0 ", arguments)]
        for number, owner in enumerate(self._owners):
            if isinstance(owner, torch.nn.Module):
                held = {**vars(owner), **owner._parameters, **owner._buffers}
                parts += [(f"{_name(owner, number)}.{name}", value) for name, value in held.items()]
        return self.read() | {name: kept for name, value in parts if (kept := self._kept(value)) is not None}

    def _kept(self, value: Any) -> Any:
        """A copy of a value that can be compared: a number, string, bytes, a tensor or an array; None for any other value.

        Parameters that have not changed, what has more than `_LARGEST` elements, and meta and sparse tensors are left out.
        """
        import torch

        if is_array(value):
            return value.copy() if value.size <= _LARGEST else None
        if not isinstance(value, torch.Tensor):
            return value if isinstance(value, PLAIN) else None
        if value.numel() > _LARGEST or value.layout is not torch.strided or value.device.type == "meta":
            return None
        before = self._fingerprints.get(id(value)) if isinstance(value, torch.nn.Parameter) else None
        is_unchanged = before is not None and before == state.fingerprint(value)
        return None if is_unchanged else value.detach().clone()


def state_difference(actual: dict[str, Any], expected: dict[str, Any], rounding: Rounding = OWN) -> str | None:
    """How the state after two runs differs, in words; None if it does not."""
    for name in expected:
        if name not in actual:
            return f"{_shown(name)} is not set by the changed program"
        text = difference(actual[name], expected[name], rounding)
        if text is not None:
            return f"{_shown(name)}: {text}"
    added = [name for name in actual if name not in expected]
    return f"{_shown(added[0])} is set only by the changed program" if added else None


@functools.cache
def _of_every_module() -> frozenset[str]:
    """Attributes of each module: what `accuracy.outcome` compares, and hooks and submodules' names, which nothing compares."""
    import torch

    return frozenset(vars(torch.nn.Module()))


def _has_attributes(value: Any) -> bool:
    if isinstance(value, (BuiltinFunctionType, MethodType)):
        return False
    return isinstance(value, type) or state.attributes_of(value) is not None or bool(state.slots_of(type(value)))


def _entries(owner: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(owner, GlobalName):
        yield "", owner.namespace.get(owner.name)
    elif isinstance(owner, CellType):
        yield "", value_or_absent(functools.partial(getattr, owner, "cell_contents"))
    elif isinstance(owner, state.CONTAINERS):
        contents = state.contents_of(owner)
        yield ".length", len(contents) // (2 if isinstance(owner, dict) else 1)
        if isinstance(owner, dict):
            yield from ((f"[{key!r}]", value) for key, value in list(dict.items(owner)) if isinstance(key, PLAIN))
        elif not isinstance(owner, set):
            yield from ((f"[{i}]", value) for i, value in enumerate(contents))
    elif state.is_generator(owner):
        yield from ((".state", state.digest(kept.read())) for kept in state.library_states(owner))
    else:
        import torch

        attributes = vars(owner) if isinstance(owner, type) else state.attributes_of(owner) or {}
        own = [*attributes.items(), *state.slot_values(owner)]
        if isinstance(owner, torch.nn.Module):
            own = [(name, value) for name, value in own if not (isinstance(value, PLAIN) or name in _of_every_module())]
        yield from ((f".{name}", value) for name, value in own if not name.startswith(_OWN))


def _flat(name: str, value: Any, known: set[int], depth: int = 0) -> Iterator[tuple[str, Any]]:
    """A value, and what tuples, lists and dicts in it hold; `known`: ids of owners, whose contents are read elsewhere."""
    yield name, value
    if isinstance(value, (tuple, list, dict)) and id(value) not in known and depth < _DEEPEST and len(value) <= _LONGEST:
        items = dict.items(value) if isinstance(value, dict) else enumerate(value)
        for key, inner in [item for item in items if isinstance(item[0], PLAIN)]:
            yield from _flat(f"{name}[{key!r}]", inner, known, depth + 1)


def _name(owner: Any, number: int) -> str:
    """A unique name for an owner; `_shown` leaves out the number."""
    named = owner.name if isinstance(owner, GlobalName) else owner.__name__ if isinstance(owner, (type, FunctionType)) else ""
    return f"{named or type(owner).__name__} {number} "


def _shown(name: str) -> str:
    kind, _, rest = name.split(" ", 2)
    return f"{kind}{rest}" if len(rest) <= 200 else f"{kind}{rest[:199]}…"
