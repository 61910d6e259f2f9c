"""Keeps the calls of a run that made the compiler work, so that fixes can be tried on them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from dynascope.compiler.replay.last_call import watching
from dynascope.compiler.replay.replay import RecordedCall
from dynascope.compiler.source.origin import in_torch
from dynascope.compiler.torch_private import caches, hooks, marks

#: calls that are kept: their arguments are copied
MOST_CALLS = 8


@dataclass(frozen=True)
class KeptCall:
    """One call of what a run compiles."""

    target: Any
    recorded: RecordedCall
    #: of a cell's statements: where they bind their names
    namespace: dict[str, Any] | None = None


class KeptCalls:
    """The first call of each target, and the later ones in which something was compiled."""

    def __init__(self) -> None:
        self.calls: list[KeptCall] = []
        #: why calls could not be kept, as the end of a sentence
        self.refusals: list[str] = []
        #: whether a call was not looked at because enough were kept
        self.is_full = False
        self._targets: set[int] = set()

    def watch(self, target: Any, entry: Callable[..., Any], namespace: dict[str, Any] | None = None) -> Callable[..., Any]:
        """`entry`, the compiled `target`, with its calls kept."""

        def call(*args: Any, **kwargs: Any) -> Any:
            if len(self.calls) >= MOST_CALLS:
                self.is_full = True
                return entry(*args, **kwargs)
            kept = KeptCall(target, RecordedCall(target, args, kwargs, namespace), namespace)
            before = caches.compiles()
            try:
                return entry(*args, **kwargs)
            finally:
                self._keep(kept, compiled=caches.compiles() != before)

        return watching(call, entry)

    @contextlib.contextmanager
    def watching_compiled_code(self) -> Iterator[None]:
        """Keep the first call of everything that the program compiles itself, for the duration of a recording."""
        hooks.HOOKS.call_watchers.append(self._called)
        try:
            yield
        finally:
            hooks.HOOKS.call_watchers.remove(self._called)

    def _called(self, entered: Any, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        import torch

        target = target if isinstance(target, torch.nn.Module) else marks.undecorated(entered)
        key = id(getattr(target, "__func__", target))
        if key not in self._targets and len(self.calls) < MOST_CALLS and not in_torch(_file_of(target)):
            self._targets.add(key)
            self._add(KeptCall(target, RecordedCall(target, args, kwargs)))

    def _keep(self, kept: KeptCall, *, compiled: bool) -> None:
        is_first = id(kept.target) not in self._targets
        if not (compiled or is_first):
            return
        self._targets.add(id(kept.target))
        self._add(kept)

    def _add(self, kept: KeptCall) -> None:
        if kept.recorded.refusal is not None:
            self.refusals.append(kept.recorded.refusal)
        else:
            self.calls.append(kept)


def _file_of(target: Any) -> str:
    function = getattr(target, "__func__", target)
    code = getattr(function, "__code__", None) or getattr(getattr(type(target), "forward", None), "__code__", None)
    return code.co_filename if code is not None else ""
