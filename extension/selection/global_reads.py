"""Which global names the functions that a statement mentions may read: see `statements`."""

from __future__ import annotations

from collections.abc import Iterator
from types import FunctionType
from typing import Any

from dynascope.cell.source import Namespace
from dynascope.compiler.replay.reachable import names_used


class Callees:
    """Which global names of the notebook may be read by the functions that a statement mentions."""

    def __init__(self, namespace: Namespace) -> None:
        self.namespace = namespace
        self._by_function: dict[str, set[str]] = {}
        self._all: set[str] | None = None

    def read(self, names: set[str]) -> set[str]:
        """Every name that may be read where these names are used: the functions' own, and those of what they use."""
        found: set[str] = set()
        todo, done = list(names), set(names)
        while todo:
            for name in self._of(todo.pop()):
                found.add(name)
                if name not in done:
                    done.add(name)
                    todo.append(name)
        return found

    def _of(self, name: str) -> set[str]:
        value = self.namespace.get(name)
        if isinstance(value, FunctionType):
            return names_used(value.__code__) if value.__globals__ is self.namespace else set()
        if _is_inert(value):
            return set()
        if self._all is None:  # an object of the user's, or a container: it may lead to any of them
            self._all = set()
            for function in _functions(self.namespace):
                self._all |= names_used(function.__code__)
        return self._all


def _is_inert(value: Any, depth: int = 0) -> bool:
    """Whether nothing of the user's can run by using this value."""
    if isinstance(value, (list, tuple, set, frozenset)):
        return depth < 3 and len(value) < 100 and all(_is_inert(v, depth + 1) for v in value)
    if isinstance(value, dict):
        return depth < 3 and len(value) < 100 and all(_is_inert(v, depth + 1) for v in value.values())
    kind = value if isinstance(value, type) else type(value)
    return kind.__module__.partition(".")[0] in ("builtins", "torch", "numpy")


def _functions(namespace: Namespace) -> Iterator[FunctionType]:
    for value in list(namespace.values()):
        for function in list(vars(value).values()) if isinstance(value, type) else [value]:
            if isinstance(function, FunctionType) and function.__globals__ is namespace:
                yield function
