"""Keeps the state of many objects at one moment, and restores it.

Checking all of it takes time and evicts the CPU's caches, which would make the next call slow.  So `restore()` learns what
calls change, and `restore(only_changed=True)` checks nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from dynascope.compiler.lab.replay import object_state, process_state, side_effects
from dynascope.compiler.lab.replay.object_state import NotRestored, State

#: at most this many bytes of tensors and arrays are copied in all; the values of the rest are not restored
MOST_BYTES = 4 << 30


class StateSnapshot:
    """The state of these objects and of the process at the moment when the snapshot is made."""

    def __init__(self, objects: Iterable[Any]) -> None:
        #: sentences on what will not be, or was not, restored
        self.notes: list[str] = []
        self._bytes = self._too_large = 0
        self._storages: set[tuple[int, int]] = set()
        self._states = [("the process", state) for state in process_state.states()]
        self._changing: set[int] = set()  # positions in `_states`
        #: whether the latest `restore` ran to its end and checked all state
        self.is_restored = False
        for value in objects:
            self._states += [(f"a {type(value).__name__}", state) for state in self._states_of(value)]
        if self._too_large:
            are = "is" if self._too_large == 1 else "are"
            self.notes.append(
                f"{self._too_large} of the tensors and arrays that the call can reach {are} not copied, because together they "
                "are too large: what the call changes there is not restored"
            )

    def _states_of(self, value: Any) -> Iterator[State]:
        import torch

        storage = object_state.storage_of(value) if isinstance(value, torch.Tensor) else None
        if storage is not None:
            key = (storage.data_ptr(), storage.nbytes())
            known = key in self._storages  # from another view of it
            self._storages.add(key)
            if not known and self._fits(storage.nbytes()):
                yield object_state.storage_state(storage)
        watched = side_effects.watched(value)
        if watched is not None:
            yield watched
        elif self._fits(object_state.size_of(value)):
            yield from object_state.states_of(value)

    def _fits(self, size: int) -> bool:
        """Whether this many more bytes may be kept; if so, they are counted as kept."""
        fits = self._bytes + size <= MOST_BYTES
        self._bytes += size if fits else 0
        self._too_large += not fits
        return fits

    def restore(self, *, only_changed: bool = False) -> None:
        """Restore all state; with `only_changed`, check and restore only the state that earlier restores found changed."""
        self.is_restored = False
        for number in sorted(self._changing) if only_changed else range(len(self._states)):
            name, state = self._states[number]
            try:
                if state.restore():
                    self._changing.add(number)
            except NotRestored as reason:
                self.notes.append(str(reason))
            except Exception as error:
                self.notes.append(f"{name} could not be restored: {type(error).__name__}: {error}")
        self.is_restored = not only_changed
