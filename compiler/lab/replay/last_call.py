"""Watches the entry points of a run, and keeps their last call, which `--check` and `--profile` repeat."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dynascope.compiler.lab.replay.replay import RecordedCall

#: name of the attribute in which a wrapper that watches an entry point keeps the entry point
_ENTRY = "_dynascope_entry"


@dataclass
class WatchedCall:
    """A call of `entry`, the compiled `target`."""

    target: Any
    entry: Callable[..., Any]
    recorded: RecordedCall
    #: the namespace of a cell's statements, whose names replays restore; None for any other target
    namespace: dict[str, Any] | None
    #: whether the call returned; False if it raised, or is still running
    returned: bool = False


class LastCall:
    """Watches entry points; before a call, `warn` gets each new sentence on what cannot be undone when the call is repeated."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        self._warn = warn
        self._warned: set[str] = set()
        #: the last call; None if there was none
        self.call: WatchedCall | None = None

    def watch(self, target: Any, entry: Callable[..., Any], namespace: dict[str, Any] | None = None) -> Callable[..., Any]:
        """Wrap `entry`, the compiled `target`, so that its calls are watched."""

        def watched(*args: Any, **kwargs: Any) -> Any:
            call = self.call = WatchedCall(target, entry, RecordedCall(target, args, kwargs, namespace), namespace)
            for sentence in call.recorded.side_effects:
                if sentence not in self._warned:
                    self._warned.add(sentence)
                    self._warn(sentence)
            result = entry(*args, **kwargs)
            call.returned = True
            self.call = call  # again, because the call may have made other watched calls
            return result

        return watching(watched, entry)


def watching(watched: Callable[..., Any], entry: Callable[..., Any]) -> Callable[..., Any]:
    """Mark `watched` as the wrapper that watches the calls of `entry`; returns it."""
    vars(watched)[_ENTRY] = entry
    return watched


def unwatched(entry: Callable[..., Any]) -> Callable[..., Any]:
    """The entry point without the wrappers that watch its calls."""
    while _ENTRY in getattr(entry, "__dict__", {}):
        entry = vars(entry)[_ENTRY]
    return entry
