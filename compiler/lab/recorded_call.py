"""Records a call so that it can be run again, and restores what the call changes.

A `RecordedCall` is made before the call and copies what the arguments hold, because the call may change them.  `with
recorded.replaying() as prepare:` then gives a function that prepares one more call: it restores the arguments, with clones of
their tensors, to what they were before the recorded call, and everything else to what it was at the `with`.  The output of the
replays is dropped.  After the block everything is as it was at the `with`, also after an error or an interrupt.  `side_effects`
and `notes` of the RecordedCall say what is not restored.

A clone of a tensor has its original's values, device, dtype, `requires_grad`, `is_leaf` and, for a leaf, `grad`.  Clones of
plain strided tensors also have the strides and offset, and share memory where the originals do.  A tensor that occurs twice has
one clone.  Parameters are not cloned, because compiled code is bound to them; their state is restored.  Tensors with a
`__del__` method are not cloned, either.
"""

from __future__ import annotations

import contextlib
import copy
import io
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from dynascope.compiler.lab import objects
from dynascope.compiler.lab.objects import GlobalName, states_of
from dynascope.compiler.lab.reachable import Reachable, is_spoiled
from dynascope.compiler.lab.snapshot import StateSnapshot, held_back


class NotRepeatable(Exception):
    """The call cannot be run twice; the message says why, as the end of a sentence."""


class Clones:
    """Clones tensors, and rebuilds the tuples and frozensets that hold them; returns every other object unchanged."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[Any, Any]] = {}  # id of an original -> (the original, to keep it alive; its clone)
        self._memo: dict[int, Any] = {}  # `copy.deepcopy`'s memo: each storage is cloned once

    def __call__(self, value: Any) -> Any:
        """Clone one value; raises NotRepeatable for a tensor whose copy is of another class."""
        import torch

        if isinstance(value, (tuple, frozenset)):
            parts = [self(part) for part in value]
            if objects.identical(parts, tuple(value)):
                return value
            return _rebuilt(value, parts)
        if not isinstance(value, torch.Tensor) or isinstance(value, torch.nn.Parameter):
            return value
        if any("__del__" in vars(c) for c in type(value).__mro__):
            return value
        if id(value) not in self._made:
            self._made[id(value)] = (value, self._tensor(value))
        return self._made[id(value)][1]

    @property
    def originals(self) -> set[int]:
        """Ids of the tensors that were cloned."""
        return set(self._made)

    @property
    def made(self) -> list[Any]:
        """The clones."""
        return [clone for _, clone in self._made.values()]

    def _tensor(self, value: Any) -> Any:
        import torch

        with torch.no_grad(), torch.inference_mode(value.is_inference()):
            made = self._strided(value) if _is_plain(value) else value.detach().clone()
        if type(made) is not type(value):
            raise NotRepeatable(f"one of its arguments is a {type(value).__name__}, which torch cannot copy")
        # attributes set by mark_dynamic and the like; a cloned tensor subclass keeps its own inner tensors
        vars(made).update({name: inner for name, inner in vars(value).items() if name not in vars(made)})
        if value.requires_grad and not value.is_leaf:
            return computed(made)
        made.requires_grad_(value.requires_grad)
        if value.is_leaf and value.grad is not None:
            made.grad = self(value.grad)
        return made

    def _strided(self, value: Any) -> Any:
        """A tensor with the same view on a clone of the storage."""
        import torch

        storage = copy.deepcopy(value.untyped_storage(), self._memo)
        made = torch.empty(0, dtype=value.dtype, device=value.device)
        return made.set_(storage, value.storage_offset(), value.size(), value.stride())


def _rebuilt(value: Any, parts: list[Any]) -> Any:
    """A tuple or frozenset of the same class and with the same attributes, but with these parts."""
    if hasattr(type(value), "n_sequence_fields"):  # torch.return_types: only its own constructor can make it
        return type(value)(parts)
    base: Any = tuple if isinstance(value, tuple) else frozenset
    made = base.__new__(type(value), parts)
    getattr(made, "__dict__", {}).update(getattr(value, "__dict__", {}))
    return made


def computed(tensor: Any) -> Any:
    """Make this tensor the result of an operation, so that it can be changed in place: a leaf that requires grad cannot be."""
    import torch

    class Computed(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, tensor: Any, seed: Any) -> Any:
            ctx.mark_dirty(tensor)
            return tensor

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            return None, None

    compute: Any = Computed.apply
    with torch.enable_grad():
        return compute(tensor, torch.zeros((), requires_grad=True))


def _is_plain(value: Any) -> bool:
    import torch

    if type(value) is not torch.Tensor or value.layout is not torch.strided:
        return False
    return not (value.is_quantized or value.is_neg() or value.is_conj())


Arguments = tuple[tuple[Any, ...], dict[str, Any]]


class Prepare(Protocol):
    """Restores everything and returns the arguments of one more call.

    With `only_changed`, the arguments are the same objects again, as in a loop, and only what earlier replays changed is
    checked and restored, which is fast.
    """

    def __call__(self, *, only_changed: bool = False) -> Arguments: ...


class RecordedCall:
    """One call of `function`; must be created before the call, because it copies the arguments' contents."""

    def __init__(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], names: dict[str, Any] | None = None
    ) -> None:
        """`names`: the namespace whose names are restored before each replay (that of a cell's statements)."""
        self.function = function
        self._namespace = names
        self._refusal: str | None = None
        self._fragile: list[tuple[Any, Any]] = []
        self._globals: list[GlobalName] = []
        self._arguments: _ArgumentState | None = None
        #: sentences on effects of a replay that are not undone; known before the first replay
        self.side_effects: list[str] = []
        #: sentences on changes that could not be restored; known after the replays
        self.notes: list[str] = []
        try:
            self._record(args, kwargs)
        except NotRepeatable as reason:
            self._refusal = str(reason)
        except Exception as error:  # inspecting the user's objects can run their code
            self._refusal = f"inspecting the objects that it can reach raised {type(error).__name__}: {error}"

    def _record(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        reached = Reachable([self.function, args, kwargs])
        self.side_effects, self._fragile = reached.side_effects(), reached.fragile
        if reached.waiting:
            raise NotRepeatable(f"it calls {', '.join(sorted(reached.waiting))}, which waits for you")
        for value in reached.single_use:
            raise NotRepeatable(f"it can reach a {type(value).__name__}, which can be used only once")
        self._globals = [value for value in reached.objects if isinstance(value, GlobalName)]
        names = self._namespace or {}
        before = {name: names[name] for name in reached.names_in(names) if name in names}
        self._arguments = _ArgumentState(args, kwargs, before)

    @property
    def refusal(self) -> str | None:
        """Why the call cannot be replayed, as the end of a sentence; None if it can be."""
        if self._refusal is None:
            return next(filter(None, (is_spoiled(*item) for item in self._fragile)), None)
        return self._refusal

    @property
    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The recorded call's own arguments, not clones; empty if the call could not be recorded."""
        return self._arguments.originals[:2] if self._arguments is not None else ((), {})

    @contextlib.contextmanager
    def replaying(self) -> Iterator[Prepare]:
        """Prepare replays; on exit, everything is restored to its state on entry.

        Raises NotRepeatable if the call could not be recorded.
        """
        arguments = self._arguments
        if arguments is None:
            raise NotRepeatable(self.refusal)
        # recorded names are also roots: the function's code may have been edited since, and may no longer use all of them
        names = [GlobalName(self._namespace, name) for name in arguments.names] if self._namespace is not None else []
        reached = Reachable([self.function, *self._globals, *names])
        reached.add(arguments.originals, without=arguments.cloned)
        snapshot = StateSnapshot(reached.objects)
        given: tuple[Any, ...] = ()
        #: the state of the given arguments before the first call with them; None: they are for one call
        before_calls: StateSnapshot | None = None
        is_first = False

        def prepare(*, only_changed: bool = False) -> Arguments:
            nonlocal given, before_calls, is_first
            snapshot.restore(only_changed=only_changed)
            if only_changed and before_calls is not None:
                before_calls.restore(only_changed=not is_first)
                is_first = False
            if not only_changed or before_calls is None or before_calls.notes:  # notes: not all can be restored
                given, clones = arguments.restore()
                before_calls, is_first = StateSnapshot(arguments.changeable(clones)) if only_changed else None, True
            args, kwargs, before = given
            if self._namespace is not None:
                self._namespace.update(before)
            return args, kwargs

        out, err = held_back(sys.stdout), held_back(sys.stderr)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                try:
                    yield prepare
                finally:
                    snapshot.restore()
            finally:
                if not snapshot.is_restored:  # an interrupt came during `restore`
                    snapshot.restore()
                self.notes = list(dict.fromkeys([*self.notes, *snapshot.notes]))


class _ArgumentState:
    """The contents of a call's arguments before the call; `restore` writes them, and returns the arguments with new clones."""

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any], names: dict[str, Any]) -> None:
        keep = Clones()
        self.originals, self.names = (args, kwargs, names), list(names)
        reached = Reachable(self.originals, _is_data)
        if any(isinstance(value, io.IOBase) for value, _ in reached.fragile):
            raise NotRepeatable("one of its arguments is a file")
        self._objects = reached.objects
        self._states = [state for value in reached.objects for state in states_of(value)]
        for state in self._states:
            state.before = keep(state.before)
        self._kept = keep(self.originals)
        #: ids of the tensors for which replays get clones
        self.cloned = keep.originals

    def restore(self) -> tuple[tuple[tuple[Any, ...], dict[str, Any], dict[str, Any]], list[Any]]:
        """The arguments and the names of one more call, and the clones in them."""
        clone = Clones()
        for state in self._states:
            state.set(clone(state.before))
        args, kwargs, names = clone(self._kept)
        return (args, dict(kwargs), names), clone.made

    def changeable(self, clones: list[Any]) -> list[Any]:
        """The objects that a call with these clones can change in its arguments."""
        import torch

        return [*self._objects, *Reachable(clones, lambda value: isinstance(value, torch.Tensor)).objects]


_CODE = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, type)


def _is_data(value: Any) -> bool:
    """Whether an object's contents belong to the arguments.

    Those of code, modules, and objects of torch or dynascope do not: except for cloned tensors, they stay as the recorded call
    left them.
    """
    import torch

    if isinstance(value, (*_CODE, torch.Tensor, torch.nn.Module)):
        return False
    return type(value).__module__.partition(".")[0] not in ("torch", "dynascope")


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
