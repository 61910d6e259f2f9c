"""Replacing an attribute or a dictionary entry for a while, and restoring exactly what was there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_ABSENT = object()


class Patch:
    """One name of an object's own attributes, or of a dictionary, with its original value and the replacement."""

    def __init__(self, owner: Any, name: str, replacement: Any) -> None:
        self.owner, self.name, self.replacement = owner, name, replacement
        self.original = self._current()

    def apply(self) -> None:
        """Put the replacement there."""
        self._set(self.replacement)

    def restore(self) -> None:
        """Put the original object back, or remove the name; somebody else's change since is left alone."""
        if self._current() is self.replacement:
            self._set(self.original)

    def _current(self) -> Any:
        own = self.owner if isinstance(self.owner, dict) else vars(self.owner)  # not what it inherits
        return own.get(self.name, _ABSENT)

    def _set(self, value: Any) -> None:
        if isinstance(self.owner, dict):
            if value is _ABSENT:
                self.owner.pop(self.name, None)
            else:
                self.owner[self.name] = value
        elif value is _ABSENT:
            delattr(self.owner, self.name)
        else:
            setattr(self.owner, self.name, value)


@contextmanager
def patched(owner: Any, **replacements: Any) -> Iterator[None]:
    """Replace these names of `owner` for the duration."""
    patches = [Patch(owner, name, replacement) for name, replacement in replacements.items()]
    try:
        for patch in patches:
            patch.apply()
        yield
    finally:
        for patch in reversed(patches):
            patch.restore()
