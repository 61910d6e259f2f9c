"""Replaces attributes, dict entries and environment variables temporarily, then restores the old values or their absence.

An interrupt waits until what is set up or restored is complete (`interrupts_deferred`).
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

#: stands for the value of a name that does not exist, or of a slot or closure cell that is empty
ABSENT: Any = object()
_MAPPINGS = (dict, type(os.environ))


def own(owner: Any, name: str) -> Any:
    """The value of a dict's key or of an object's own attribute, class attributes excluded; ABSENT if there is none."""
    return (owner if isinstance(owner, _MAPPINGS) else vars(owner)).get(name, ABSENT)


def put(owner: Any, name: str, value: Any) -> None:
    """Set an entry of a dict or an attribute of an object; ABSENT deletes it."""
    if isinstance(owner, _MAPPINGS):
        if value is ABSENT:
            owner.pop(name, None)
        else:
            owner[name] = value
    elif value is not ABSENT:
        setattr(owner, name, value)
    elif own(owner, name) is not ABSENT:
        delattr(owner, name)


def value_or_absent(get: Callable[[], Any]) -> Any:
    """The result of `get`; ABSENT if the name, the slot or the closure cell that it reads is empty."""
    try:
        return get()
    except (AttributeError, KeyError, ValueError):
        return ABSENT


@contextlib.contextmanager
def patched(owner: Any, values: dict[str, Any]) -> Iterator[None]:
    """Set these entries or attributes of `owner` for the duration."""
    before = {name: own(owner, name) for name in values}
    try:
        for name, value in values.items():
            put(owner, name, value)
        yield
    finally:
        for name, value in before.items():
            put(owner, name, value)


@contextlib.contextmanager
def interrupts_deferred() -> Iterator[None]:
    """Keep SIGINT pending during the block, which sets something up or restores it, and deliver it at its end."""
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    pending: list[int] = []
    signal.signal(signal.SIGINT, lambda number, frame: pending.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if pending:
            handler(pending[0], sys._getframe())
