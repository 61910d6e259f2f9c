"""Replacing attributes and dict entries for a while; what is restored is the very same object, or its absence."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

#: stands for what is not there
ABSENT: Any = object()


def own(owner: Any, name: str) -> Any:
    """What a dict, or an object itself (not its class or bases), has under a name; ABSENT where there is nothing."""
    return (owner if isinstance(owner, dict) else vars(owner)).get(name, ABSENT)


def put(owner: Any, name: str, value: Any) -> None:
    """Set an entry of a dict or an attribute of an object; ABSENT deletes it."""
    if isinstance(owner, dict):
        if value is ABSENT:
            owner.pop(name, None)
        else:
            owner[name] = value
    elif value is not ABSENT:
        setattr(owner, name, value)
    elif own(owner, name) is not ABSENT:
        delattr(owner, name)


class Patch:
    """One name of a dict or of an object itself, with what is there and its replacement."""

    def __init__(self, owner: Any, name: str, replacement: Any) -> None:
        self.owner, self.name, self.replacement = owner, name, replacement
        self.original = own(owner, name)

    def apply(self) -> None:
        """Put the replacement there."""
        put(self.owner, self.name, self.replacement)

    def restore(self) -> None:
        """Put the very same object back, or remove the name; what somebody else has put there since is left alone."""
        if own(self.owner, self.name) is self.replacement:
            put(self.owner, self.name, self.original)


@contextlib.contextmanager
def patched(owner: Any, values: dict[str, Any]) -> Iterator[None]:
    """These names of `owner` replaced for the duration."""
    before = {name: own(owner, name) for name in values}
    try:
        for name, value in values.items():
            put(owner, name, value)
        yield
    finally:
        for name, value in before.items():
            put(owner, name, value)
