"""Keeps the calls that `--fix` and `--second-call` repeat: the first of each target, and those that compile something."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from dynascope.compiler.capture.torch_private import caches, hook_installer, marks
from dynascope.compiler.lab.objects import GlobalName
from dynascope.compiler.lab.reachable import Reachable
from dynascope.compiler.lab.recorded_call import Arguments, Prepare, RecordedCall, watching
from dynascope.compiler.source.code import names_used
from dynascope.compiler.source.origin import in_torch

#: at most this many calls are kept
MOST_CALLS = 8
#: the arguments of at most this many calls are copied, in case the call compiles something
MOST_COPIED = 50
_PLAIN = (bool, int, float, str)
#: makes other arguments from a call's arguments, possibly in place
Vary = Callable[[tuple[Any, ...], dict[str, Any]], Arguments]


@dataclass(frozen=True)
class KeptCall:
    """A recorded call of a function, a module or a cell's statements that the run compiled."""

    target: Any
    recorded: RecordedCall
    #: for a cell's statements: their namespace, and the names that they use
    namespace: dict[str, Any] | None = None
    names: tuple[str, ...] = ()

    def given(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
        """The call's inputs: its arguments; for a cell's statements, the values of the names that they use."""
        if self.namespace is None:
            return args, kwargs
        return (), {name: self.namespace[name] for name in self.names if name in self.namespace}

    def varied(self, vary: Vary, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
        """Change the call's inputs with `vary`; returns the arguments with which to make the call."""
        if self.namespace is None:
            return vary(args, kwargs)
        self.namespace.update(vary(*self.given(args, kwargs))[1])
        return args, kwargs


class _CallWithNumbers(RecordedCall):
    """A recorded call that also restores numbers and strings in modules and globals to their values before the call.

    For a cell's statements, it restores no more than `RecordedCall`, which restores their names.
    """

    def __init__(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], names: dict[str, Any] | None = None
    ) -> None:
        super().__init__(function, args, kwargs, names)
        self._numbers = list(_numbers(function, args, kwargs)) if names is None and self.refusal is None else []

    @contextlib.contextmanager
    def replaying(self) -> Iterator[Prepare]:
        with super().replaying() as prepare:
            changed = [(o, name, value) for o, name, value in self._numbers if name in o and _differs(o[name], value)]
            before = [(owner, name, owner[name]) for owner, name, _ in changed]

            def prepared(*, only_changed: bool = False) -> Arguments:
                arguments = prepare(only_changed=only_changed)
                for owner, name, value in changed:
                    owner[name] = value
                return arguments

            try:
                yield prepared
            finally:
                for owner, name, value in before:
                    owner[name] = value


def _differs(now: Any, value: Any) -> bool:
    """Whether a number or string has been replaced by another value.  `now` may be anything, so types are compared first."""
    return type(now) is not type(value) or bool(now != value)


def _numbers(*roots: Any) -> Iterator[tuple[dict[str, Any], str, Any]]:
    """(namespace, name, value) of the numbers and strings in modules and globals that can be reached."""
    import torch

    for value in Reachable(roots).objects:
        if isinstance(value, torch.nn.Module):
            yield from ((vars(value), name, v) for name, v in vars(value).items() if type(v) in _PLAIN)
        elif isinstance(value, GlobalName) and type(found := value.namespace.get(value.name)) in _PLAIN:
            yield value.namespace, value.name, found


class KeptCalls:
    """The first call of each target, and the later calls that compile something."""

    def __init__(self) -> None:
        self.calls: list[KeptCall] = []
        #: why calls could not be kept, as the end of a sentence
        self.refusals: list[str] = []
        #: whether a call through `watch` compiled something but was not copied, because a limit was reached
        self.is_full = False
        self._targets: set[int] = set()
        self._copied = 0
        #: the latest call that `_called` has copied but not kept, and the number of compiles before it
        self._latest: tuple[KeptCall, int] | None = None

    def watch(self, target: Any, entry: Callable[..., Any], namespace: dict[str, Any] | None = None) -> Callable[..., Any]:
        """Wrap `entry`, the compiled `target`, so that its calls are kept."""

        names = () if namespace is None else tuple(sorted(names_used(target.__code__)))

        def call(*args: Any, **kwargs: Any) -> Any:
            may_copy = self._count_and_may_copy()
            kept = KeptCall(target, _CallWithNumbers(target, args, kwargs, namespace), namespace, names) if may_copy else None
            before = caches.compiles()
            try:
                return entry(*args, **kwargs)
            finally:
                compiled = caches.compiles() != before
                if kept is not None:
                    self._keep(kept, compiled=compiled)
                else:
                    self.is_full |= compiled

        return watching(call, entry)

    @contextlib.contextmanager
    def watching_compiled_code(self) -> Iterator[None]:
        """During a recording, also keep calls of what the program compiles itself, except torch's functions."""
        hook_installer.HOOKS.call_watchers.append(self._called)
        try:
            yield
        finally:
            hook_installer.HOOKS.call_watchers.remove(self._called)
            self._keep_latest()

    def _called(self, entered: Any, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        import torch

        target = target if isinstance(target, torch.nn.Module) else marks.undecorated(entered)
        self._keep_latest()
        key = id(getattr(target, "__func__", target))
        if in_torch(_file_of(target)) or not self._count_and_may_copy():
            return
        kept = KeptCall(target, _CallWithNumbers(target, args, kwargs))
        if key not in self._targets:
            self._targets.add(key)
            self._add(kept)
        else:
            self._latest = (kept, caches.compiles())

    def _keep_latest(self) -> None:
        """Keep the latest call if it compiled something."""
        latest, self._latest = self._latest, None
        if latest is not None and caches.compiles() != latest[1]:
            self._add(latest[0])

    def _count_and_may_copy(self) -> bool:
        """Count one more call; returns whether its arguments may be copied."""
        self._copied += 1
        return len(self.calls) < MOST_CALLS and self._copied <= MOST_COPIED

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
    """The file of a function, under its decorators; "" for a module: one with torch's `forward` can hold the user's modules."""
    function = getattr(target, "__func__", target)
    code = getattr(inspect.unwrap(function), "__code__", None) if isinstance(function, FunctionType) else None
    return code.co_filename if code is not None else ""
