"""Records a call so that it can be run again, and restores what the call changes.

A `RecordedCall` is made before the call and copies what the arguments hold, because the call may change them.  `with
recorded.replaying() as prepare:` then gives a function that prepares one more call: it restores the arguments, with clones of
their tensors, to what they were before the recorded call, and everything else to what it was at the `with`.  The output of the
replays is dropped.  The block runs in the gradient mode, inference mode and autocast of the recorded call, with the `training`
that its modules had.  After it everything is as it was at the `with`, also after an error or an interrupt.  `side_effects` and
`notes` of the RecordedCall say what is not restored.

A clone of a tensor has its original's values, device, dtype, `requires_grad`, `is_leaf` and, for a leaf, `grad`.  Clones of
plain strided tensors also have the strides and offset, and share memory where the originals do.  A tensor that occurs twice has
one clone.  Parameters are not cloned, because compiled code is bound to them; their state is restored.  Tensors with a
`__del__` method are not cloned, either.

Checking all state takes time and evicts the CPU's caches, which would make the next call slow.  So a `StateSnapshot` learns
what calls change, and `restore(only_changed=True)` checks nothing else.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
import io
import itertools
import logging
import operator
import os
import random
import sys
import threading
import types
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from dynascope.compiler.capture.torch_private import caches, config, hook_installer, marks
from dynascope.compiler.capture.torch_private.running import present_modes
from dynascope.compiler.lab import objects
from dynascope.compiler.lab.objects import PLAIN, GlobalName, NotRestored, Reachable, State, same_numbers, states_of
from dynascope.compiler.patching import ABSENT, interrupts_deferred, patched, put
from dynascope.compiler.source.code import globals_used
from dynascope.compiler.source.origin import in_torch, module_of

#: gets a sentence for the user
Say = Callable[[str], None]
_Setting = tuple[Callable[[], Any], Callable[[Any], Any]]


def process_states() -> Iterator[State]:
    """All state of the process and the thread that is restored."""
    settings: list[_Setting] = [
        (torch.is_grad_enabled, torch.set_grad_enabled),
        (torch.get_default_dtype, torch.set_default_dtype),
        (torch.get_num_threads, torch.set_num_threads),
        (torch.get_deterministic_debug_mode, torch.set_deterministic_debug_mode),
        (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
        (os.getcwd, os.chdir),
        (lambda: dict(os.environ), _set_environment),
        (lambda: list(sys.path), functools.partial(operator.setitem, sys.path, slice(None))),
    ]
    for read, write in settings:
        with contextlib.suppress(OSError, RuntimeError):  # if the directory was removed, or torch's newer API set the precision
            yield State(read, write, operator.eq)
    yield from random_states()


def _set_environment(kept: dict[str, str]) -> None:
    for name in {*os.environ, *kept}:
        put(os.environ, name, kept.get(name, ABSENT))


def random_states() -> list[State]:
    """The random state of Python, NumPy and torch, on every device that was used."""
    pairs: list[_Setting] = [(random.getstate, random.setstate)]
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        pairs.append((numpy.random.get_state, numpy.random.set_state))
    return [*(State(*pair, same_numbers) for pair in pairs), *torch_random_states()]


def torch_random_states() -> list[State]:
    """The states of torch's default generators, on every device that was used."""
    pairs: list[_Setting] = [(torch.get_rng_state, torch.set_rng_state)]
    used = [module for module in (torch.cuda, torch.xpu) if module.is_available() and module.is_initialized()]
    pairs += [(module.get_rng_state_all, module.set_rng_state_all) for module in used]
    if torch.backends.mps.is_available():
        pairs.append((torch.mps.get_rng_state, torch.mps.set_rng_state))
    return [State(*pair, same_numbers) for pair in pairs]


class _Bytes:
    """What a text stream writes to: keeps the bytes of one thread and passes on the others', as all threads share `sys.stdout`.

    The text stream itself is one as Python makes it: Dynamo breaks at its methods as at those of the stream in its place.
    """

    def __init__(self, stream: Any, kept: io.BytesIO) -> None:
        self._stream, self._kept, self._thread = stream, kept, threading.get_ident()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kept if threading.get_ident() == self._thread else self._stream, name)

    def write(self, data: bytes) -> Any:
        is_own = threading.get_ident() == self._thread
        return self._kept.write(data) if is_own else self._stream.write(data.decode(errors="replace"))

    def close(self) -> None:
        """Nothing: whichever thread drops the text stream last, the stream in its place stays open."""


@dataclass
class HeldBack:
    """What a thread has written in a block."""

    #: 0 after the block: where blocks of several threads overlap, `logging` may still be patched
    thread: int = field(default_factory=threading.get_ident)
    printed: str = ""
    #: log records
    logged: list[str] = field(default_factory=list)


@contextlib.contextmanager
def held_back_output() -> Iterator[HeldBack]:
    """Keep back what the calling thread prints and logs; where there is no stream, what all threads print.

    What is printed is known at the end of the block.  Torch's own log records are not kept back.
    """
    held, handle = HeldBack(), logging.Logger.callHandlers
    written = io.BytesIO()
    kept: list[Any] = [written if stream is None else _Bytes(stream, written) for stream in (sys.stdout, sys.stderr)]
    out, err = [io.TextIOWrapper(data, "utf-8", "replace", newline="", write_through=True) for data in kept]

    def collect(logger: logging.Logger, record: logging.LogRecord) -> None:
        if threading.get_ident() != held.thread or record.name.partition(".")[0] == "torch":
            handle(logger, record)
            return
        try:
            message = record.getMessage()
        except Exception:  # the arguments do not fit: the program's own handlers would say so, and go on
            message = f"{record.msg!r} {record.args!r}"
        held.logged.append(f"{record.name} {record.levelname}: {message}")

    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), patched(logging.Logger, {"callHandlers": collect}):
        try:
            yield held
        finally:
            held.thread, held.printed = 0, written.getvalue().decode()


#: at most this many bytes of tensors and arrays are copied in all; the values of the rest are not restored
MOST_BYTES = 4 << 30
_TOO_LARGE = (
    "some of the tensors and arrays that the call can reach are not copied, because together they are too large: what the call "
    "changes there is not restored"
)


class StateSnapshot:
    """The state of these objects and of the process at the moment when the snapshot is made."""

    def __init__(self, values: Iterable[Any]) -> None:
        #: sentences on what will not be, or was not, restored
        self.notes: list[str] = []
        self._bytes = 0
        #: the tensors of each storage
        self._storages: dict[tuple[int, int], list[Any]] = {}
        self._states = [("the process", state) for state in process_states()]
        self._changing: set[int] | None = None  # positions in `_states`
        for value in values:
            self._states += [(f"a {type(value).__name__}", state) for state in self._states_of(value)]

    def _states_of(self, value: Any) -> Iterator[State]:
        storage: Any = objects.storage_of(value) if isinstance(value, torch.Tensor) else None
        if storage is not None and objects.has_memory(storage):
            tensors = self._storages.setdefault((storage.data_ptr(), storage.nbytes()), [])
            tensors.append(value)  # other views of it have no bytes of their own
            if len(tensors) == 1 and self._fits(storage.nbytes()):
                yield objects.storage_state(tensors)
        watched = objects.watched(value)
        if watched is not None:
            yield watched
        # a read-only array is not copied
        elif self._fits(value.nbytes if objects.is_array(value) and value.flags.writeable else 0):
            yield from states_of(value)

    def _fits(self, size: int) -> bool:
        """Whether this many more bytes may be kept; if so, they are counted as kept."""
        if self._bytes + size > MOST_BYTES:
            self.notes.append(_TOO_LARGE)
            return False
        self._bytes += size
        return True

    def restore(self, *, only_changed: bool = False) -> None:
        """Restore all state; with `only_changed`, check and restore only the state that earlier restores found changed.

        The first restore checks all state.
        """
        every = not only_changed or self._changing is None
        self._changing = self._changing or set()
        for number in range(len(self._states)) if every else sorted(self._changing):
            name, state = self._states[number]
            try:
                if state.restore():
                    self._changing.add(number)
            except NotRestored as reason:
                self.notes.append(str(reason))
            except Exception as error:
                self.notes.append(f"{name} could not be restored: {type(error).__name__}: {error}")


# -- a call --------------------------------------------------------------------------------------------------------------


#: at most this many bytes of tensors are copied before each call in case it changes them
_MOST_SMALL = 1 << 16


class NotRepeatable(Exception):
    """The call cannot be run twice; the message says why, as the end of a sentence."""


class Clones:
    """Clones tensors, and rebuilds the tuples and frozensets that hold them; returns every other object unchanged."""

    def __init__(self) -> None:
        #: id of an original -> (the original, to keep it alive; its clone)
        self.made: dict[int, tuple[Any, Any]] = {}
        self._memo: dict[int, Any] = {}  # `copy.deepcopy`'s memo: each storage is cloned once

    def __call__(self, value: Any) -> Any:
        """Clone one value; raises NotRepeatable for a tensor whose copy is of another class."""
        if isinstance(value, (tuple, frozenset)):
            parts = [self(part) for part in value]
            return value if objects.identical(parts, tuple(value)) else _rebuilt(value, parts)
        is_cloned = isinstance(value, torch.Tensor) and not isinstance(value, torch.nn.Parameter)
        if not is_cloned or any("__del__" in vars(c) for c in type(value).__mro__):
            return value
        if id(value) not in self.made:
            self.made[id(value)] = (value, self._tensor(value))
        return self.made[id(value)][1]

    def _tensor(self, value: Any) -> Any:
        is_plain = type(value) is torch.Tensor and value.layout is torch.strided
        with torch.no_grad(), torch.inference_mode(value.is_inference()):
            if is_plain and not (value.is_quantized or value.is_neg() or value.is_conj()):  # the same view on a cloned storage
                storage = copy.deepcopy(value.untyped_storage(), self._memo)
                made: Any = torch.empty(0, dtype=value.dtype, device=value.device)
                made.set_(storage, value.storage_offset(), value.size(), value.stride())
            else:
                made = value.detach().clone()
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


def _rebuilt(value: Any, parts: list[Any]) -> Any:
    """A tuple or frozenset of the same class and with the same attributes, but with these parts."""
    if hasattr(type(value), "n_sequence_fields"):  # torch.return_types: only its own constructor can make it
        return type(value)(parts)
    base: Any = tuple if isinstance(value, tuple) else frozenset
    made = base.__new__(type(value), parts)
    getattr(made, "__dict__", {}).update(getattr(value, "__dict__", {}))
    return made


#: torch's name of what `computed` leaves in a tensor's history
COMPUTED = "ComputedBackward"


def computed(tensor: Any) -> Any:
    """Make this tensor the result of an operation, so that it can be changed in place: a leaf that requires grad cannot be."""

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


Args = tuple[Any, ...]
Kwargs = dict[str, Any]
Arguments = tuple[Args, Kwargs]

#: restores everything and returns the arguments of one more call; with `only_changed`, these are the same objects again, as in
#: a loop, and only what earlier replays changed is checked and restored, which is fast
Prepare = Callable[..., Arguments]
#: makes other arguments from a call's arguments, possibly in place
Vary = Callable[[Args, Kwargs], Arguments]


class RecordedCall:
    """One call of a function, a module or a cell's statements; must be created before the call: it copies the inputs."""

    def __init__(
        self, target: Callable[..., Any], args: Args, kwargs: Kwargs, *, namespace: Kwargs | None = None, entry: Any = None
    ) -> None:
        """`namespace`: that of a cell's statements, whose names each replay restores; `entry`: the compiled target."""
        self.target, self.namespace = target, namespace
        self.modes, self.generation = present_modes(), caches.generation()
        #: when functions that are not traced, such as those of graphs, were last called before
        self._ran_before, self.entry = dict(hook_installer.HOOKS.ran), target if entry is None else entry
        #: the cell's statements that made the call; they were given up, or broke at it
        self.outer: RecordedCall | None = None
        #: for a cell's statements: the names that they use
        self.names = () if namespace is None else tuple(sorted(globals_used(target.__code__)))
        #: whether the call returned; False if it raised, or is still running
        self.returned = False
        #: what it returned, which replays may change as they may change any state
        self.result: Any = None
        self._refusal: str | None = None
        self._arguments: _ArgumentState | None = None
        self._hooks: list[tuple[dict[int, Any], int]] = []
        #: sentences on effects of a replay that are not undone; known before the first replay
        self.side_effects: list[str] = []
        #: sentences on changes that could not be restored; known after the replays
        self.notes: list[str] = []
        try:
            reached = Reachable([target, args, kwargs])
            self.side_effects, self._fragile = reached.side_effects(), reached.fragile
            if reached.refusals:
                raise NotRepeatable(reached.refusals[0])
            self._globals = [value for value in reached.objects if isinstance(value, GlobalName)]
            names = namespace or {}
            before = {g.name: names[g.name] for g in self._globals if g.namespace is names and g.name in names}
            self._arguments = _ArgumentState(args, kwargs, before)
            modules = [value for value in reached.objects if isinstance(value, torch.nn.Module)]
            self._hooks = [hook for module in modules for hook in _hooks(module)]
            self._training = [state for module in modules for state in states_of(GlobalName(vars(module), "training"))]
            # the names of a cell's statements are restored in any case
            self._small = list(_small(reached, self._arguments.cloned)) if namespace is None else []
        except NotRepeatable as reason:
            self._refusal = str(reason)
        except Exception as error:  # inspecting the user's objects can run their code
            self._refusal = f"inspecting the objects that it can reach raised {type(error).__name__}: {error}"

    @property
    def refusal(self) -> str | None:
        """Why the call cannot be replayed, as the end of a sentence; None if it can be."""
        if self._refusal is None:
            try:
                for state in self._fragile:
                    state.restore()
            except NotRestored as reason:
                return str(reason)
        return self._refusal

    @property
    def outdated(self) -> str | None:
        """Why what is compiled for the call cannot be run again, as the end of a sentence; None if it can be."""
        if self.returned and self.generation is not None and self.generation is not caches.generation():
            return "torch._dynamo.reset() was called after the call, and has dropped what was compiled"
        return self.refusal if self.returned else "the last call raised"

    @property
    def may_have_run_graphs(self) -> bool:
        """Whether compiled graphs have run since, in any thread, or may have."""
        hooks, graphs = hook_installer.HOOKS, caches.held_graphs()
        ran = (function for function, time in hooks.ran.items() if self._ran_before.get(function) != time)
        return hooks.status.get("entries") is not True or graphs is None or not graphs.isdisjoint(ran)

    @property
    def lacks_hooks(self) -> bool:
        """Whether the program's hooks of modules that were there before the call are not all there any more."""
        return any(id not in hooks for hooks, id in self._hooks)

    @property
    def arguments(self) -> Arguments:
        """The recorded call's own arguments, not clones; empty if the call could not be recorded."""
        return self._arguments.originals[:2] if self._arguments is not None else ((), {})

    def given(self, args: Args, kwargs: Kwargs) -> Arguments:
        """The call's inputs: its arguments; for a cell's statements, the values of the names that they use."""
        return (args, kwargs) if self.namespace is None else ((), self.bound())

    def bound(self) -> dict[str, Any]:
        """For a cell's statements, the present values of the names that they use; otherwise {}."""
        namespace = self.namespace or {}
        return {name: namespace[name] for name in self.names if name in namespace}

    def varied(self, vary: Vary, args: Args, kwargs: Kwargs) -> Arguments:
        """Change the call's inputs with `vary`; returns the arguments with which to make the call."""
        if self.namespace is None:
            return vary(args, kwargs)
        self.namespace.update(vary((), self.bound())[1])
        return args, kwargs

    @contextlib.contextmanager
    def replaying(self, *, numbers: bool = False) -> Iterator[Prepare]:
        """Prepare replays; on exit, everything is restored to its state on entry.

        `numbers`: whether numbers, strings and small tensors in modules, globals and closures, too, are for each replay what
        they were before the recorded call, and not what it left; `training` of modules always is.  Raises NotRepeatable if the
        call could not be recorded.
        """
        arguments = self._arguments
        if arguments is None:
            raise NotRepeatable(self.refusal)
        # recorded names are also roots: the function's code may have been edited since, and may no longer use all of them
        names = [GlobalName(self.namespace, name) for name in arguments.names] if self.namespace is not None else []
        reached = Reachable([self.target, self.result, *self._globals, *names])
        reached.add(arguments.originals, without=arguments.cloned)

        def prepare(*, only_changed: bool = False) -> Arguments:
            torch.clear_autocast_cache()  # it has copies of the parameters
            snapshot.restore(only_changed=only_changed)
            args, kwargs, before = arguments.restore(only_changed=only_changed)
            if self.namespace is not None:
                self.namespace.update(before)
            return args, kwargs

        with self.modes(), contextlib.ExitStack() as stack:
            with interrupts_deferred():
                for state in (*self._training, *(self._small if numbers else ())):
                    stack.callback(state.write, state.keep(state.read()))
                    state.restore()
            snapshot = StateSnapshot(reached.objects)  # it has the gradient mode, and what was restored here, too
            stack.enter_context(held_back_output())
            stack.enter_context(config.quiet_compiler())
            stack.enter_context(warnings.catch_warnings())
            warnings.simplefilter("ignore")
            try:
                yield prepare
            finally:
                with interrupts_deferred():
                    snapshot.restore()
                    arguments.release()
                    stack.close()
                self.notes = list(dict.fromkeys([*self.notes, *snapshot.notes]))


def _small(reached: Reachable, without: Collection[int]) -> Iterator[State]:
    """The numbers, strings and small tensors that modules, globals and closures have, and the values of these tensors.

    `without`: ids of tensors that are restored in another way.
    """
    left, kept = _MOST_SMALL, set[int]()
    for value in reached.objects:
        if isinstance(value, torch.Tensor) and not isinstance(value, torch.nn.Parameter) and id(value) not in without:
            storage = objects.storage_of(value)
            if storage is not None and storage.nbytes() <= left:
                left -= storage.nbytes()
                kept.add(id(value))
                yield objects.storage_state([value])
    for value in reached.objects:
        places: list[Any] = [value] if isinstance(value, (GlobalName, types.CellType)) else []
        for names in (vars(value), value._buffers) if isinstance(value, torch.nn.Module) else ():
            places += [GlobalName(names, name) for name, v in names.items() if type(v) in PLAIN or id(v) in kept]
        for state in itertools.chain.from_iterable(map(states_of, places)):
            if type(state.before) in PLAIN or id(state.before) in kept:
                yield state


def _hooks(module: torch.nn.Module) -> Iterator[tuple[dict[int, Any], int]]:
    """(hooks, id in it) of the hooks before and after a module's `forward` that are not torch's, as those of lazy modules."""
    for hooks in (module._forward_pre_hooks, module._forward_hooks):
        yield from ((hooks, id) for id, hook in hooks.items() if not in_torch(_file_of(hook)))


class _ArgumentState:
    """The contents of a call's arguments before the call; `restore` writes them, and returns the arguments with clones."""

    def __init__(self, args: Args, kwargs: Kwargs, names: dict[str, Any]) -> None:
        keep = Clones()
        self.originals, self.names = (args, kwargs, names), list(names)
        reached = Reachable(self.originals, _is_data)
        if reached.has_files:
            raise NotRepeatable("one of its arguments is a file")
        self._objects = reached.objects
        self._states = [state for value in reached.objects for state in states_of(value)]
        for state in self._states:
            state.before = keep(state.before)
        self._kept = keep(self.originals)
        self._given: Any = None
        #: the state of the given arguments before the first call with them; None: they are for one call
        self._before_calls: StateSnapshot | None = None
        #: ids of the tensors for which replays get clones
        self.cloned = keep.made.keys()

    def restore(self, *, only_changed: bool) -> tuple[Args, Kwargs, Kwargs]:
        """The arguments and the names of one more call; with `only_changed`, the same ones again, if they can be restored."""
        if only_changed and self._before_calls is not None:
            self._before_calls.restore(only_changed=True)
        if not only_changed or self._before_calls is None or self._before_calls.notes:  # notes: not all can be restored
            clone = Clones()
            for state in self._states:
                state.restore(clone)
            self._given = clone(self._kept)
            clones = Reachable([made for _, made in clone.made.values()], lambda value: isinstance(value, torch.Tensor)).objects
            self._before_calls = StateSnapshot([*self._objects, *clones]) if only_changed else None
        args, kwargs, names = self._given
        return args, dict(kwargs), names

    def release(self) -> None:
        """Forget the clones."""
        self._given = self._before_calls = None


def _is_data(value: Any) -> bool:
    """Whether an object's contents belong to the arguments.

    Those of code, modules, and objects of torch or dynascope do not: except for cloned tensors, they stay as the recorded call
    left them.
    """
    code = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, type)
    is_library = module_of(type(value)).partition(".")[0] in ("torch", "dynascope")
    return not (is_library or isinstance(value, (*code, torch.Tensor, torch.nn.Module)))


#: name of the attribute in which a wrapper that watches an entry point keeps the entry point
_ENTRY = "_dynascope_entry"


#: at most this many calls are kept, and this many more of each target that compiled nothing
MOST_CALLS, MOST_LATER = 8, 3
#: the arguments of at most this many calls are copied, in case the call compiles something
MOST_COPIED = 50


class CallRecorder:
    """Records calls of entry points: the last one, and those that may be kept to be traced again.

    These are the first call of each target, and the later ones that compile something; `later` has the next that do not.
    """

    def __init__(self, warn: Say, *, keeps: bool, has_last: bool) -> None:
        """`warn`: before a call, gets each new sentence on what cannot be undone when the call is repeated.

        `keeps`: whether calls are kept; `has_last`: whether the last call is recorded, too.
        """
        self._warn, self._keeps, self._has_last = warn, keeps, has_last
        self._warned: set[str] = set()
        #: the last call; None if there was none
        self.last: RecordedCall | None = None
        #: the latest cell's statements, while they run
        self.outer: RecordedCall | None = None
        self.kept: list[RecordedCall] = []
        self.later: list[RecordedCall] = []
        #: why calls could not be kept, as the end of a sentence
        self.refusals: list[str] = []
        #: the numbers of the compiles, counted from Dynamo's last reset, that need not be repeated or that a copied call made
        self.repeatable: set[int] = set()
        self._started, self._generation, self._was_reset = caches.compiles(), caches.generation(), False
        #: whether the kept calls are all that compiled something, once `choose` has been called
        self.is_whole = False
        #: how many calls through `watch` there were
        self.count = 0
        #: id of a target -> how many calls there were, if calls are kept
        self.calls: Counter[int] = Counter()
        #: the latest call that `_called` has copied, the id of its target, and the number of compiles before it
        self._latest: tuple[RecordedCall, int, int] | None = None

    def watch(self, target: Any, entry: Callable[..., Any], namespace: dict[str, Any] | None = None) -> Callable[..., Any]:
        """Wrap `entry`, the compiled `target`, so that its calls are recorded.

        `namespace`: for a cell's statements, the namespace whose names are restored before each replay.
        """
        if not (self._keeps or self._has_last):
            return entry

        def watched(*args: Any, **kwargs: Any) -> Any:
            self._look_for_reset()
            self.count += 1
            may_keep = self._keeps and self._count_and_may_copy(target)
            call = None
            if may_keep or self._has_last:
                self.last = call = RecordedCall(target, args, kwargs, namespace=namespace, entry=entry)
                call.outer, self.outer = self.outer, self.outer if namespace is None else call
                for sentence in call.side_effects:
                    if sentence not in self._warned:
                        self._warned.add(sentence)
                        self._warn(sentence)
            latest = call if may_keep else None, target_id(target), caches.compiles()
            try:
                result = entry(*args, **kwargs)
                if call is not None:
                    call.returned, call.result = True, result
                    self.last = call  # again, because the call may have made other watched calls
                return result
            finally:
                self._keep(*latest)

        vars(watched)[_ENTRY] = entry
        return watched

    @contextlib.contextmanager
    def watching_compiled_code(self) -> Iterator[None]:
        """During a recording, also keep calls of what the program compiles itself, except torch's functions."""
        hook_installer.HOOKS.call_watchers.append(self._called)
        try:
            yield
        finally:
            hook_installer.HOOKS.call_watchers.remove(self._called)
            self._keep_latest()

    def _called(self, entered: Any, target: Any, args: Args, kwargs: Kwargs) -> None:
        target = target if isinstance(target, torch.nn.Module) else marks.undecorated(entered)
        self._look_for_reset()
        self._keep_latest()
        if not in_torch(_file_of(target)) and self._count_and_may_copy(target):
            self._latest = RecordedCall(target, args, kwargs), target_id(target), caches.compiles()

    def _keep_latest(self) -> None:
        latest, self._latest = self._latest, None
        if latest is not None:
            # nothing tells when such a call ends: one whose exception the program has caught counts as returned
            latest[0].returned = sys.exc_info()[0] is None
            self._keep(*latest)

    def _keep(self, call: RecordedCall | None, target: int, compiles: int) -> None:
        """Keep the first call of a target, or one that compiled something; None: its arguments were not copied."""
        self._look_for_reset()
        compiled = range(compiles, caches.compiles())
        if call is not None and (compiled or self.calls[target] == 1):
            self.repeatable.update(compiled)
            if call.refusal is not None:
                self.refusals.append(call.refusal)
            else:
                self.kept.append(call)
        elif call is not None and sum(other.target is call.target for other in self.later) < MOST_LATER:
            self.later.append(call)

    def choose(self, *, statements: bool) -> None:
        """End the run: repeat what statements that were given up have called, or else the statements themselves, not both."""
        self._look_for_reset()
        self.is_whole = not self._was_reset and self.repeatable.issuperset(range(self._started, caches.compiles()))
        outer = [call.outer for call in self.kept]
        self.kept = [call for call in self.kept if (call.outer not in self.kept if statements else call not in outer)]
        targets = [call.target for call in self.kept]
        self.later = [call for call in self.later if call.refusal is None and call.target in targets]

    def _look_for_reset(self) -> None:
        """Compiles are numbered anew after a reset; if calls went before it, what each compiled can no longer be told."""
        before, self._generation = self._generation, caches.generation()
        if before is not None and before is not self._generation:
            self._started, self._was_reset = 0, self._was_reset or self.calls.total() > 0

    def _count_and_may_copy(self, target: Any) -> bool:
        """Count one more call; returns whether its arguments may be copied."""
        self.calls[target_id(target)] += 1
        return len(self.kept) < MOST_CALLS and self.calls.total() <= MOST_COPIED


def target_id(target: Any) -> int:
    return id(getattr(target, "__func__", target))


def _file_of(target: Any) -> str:
    """The file of a function, under its decorators; "" for a module: one with torch's `forward` can hold the user's modules."""
    function = getattr(target, "__func__", target)
    code = getattr(inspect.unwrap(function), "__code__", None) if isinstance(function, types.FunctionType) else None
    return code.co_filename if code is not None else ""


def unwatched(entry: Callable[..., Any]) -> Callable[..., Any]:
    """The entry point without the wrapper that watches its calls."""
    unwatched: Callable[..., Any] = getattr(entry, "__dict__", {}).get(_ENTRY, entry)
    return unwatched
