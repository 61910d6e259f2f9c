"""What a call may change beside its arguments, remembered so that it can be put back.

From a function and its arguments `World` follows what the function's own code can reach: closure cells, defaults, the
globals that it names (and those of the user's functions among them), modules, optimizers, containers, objects and the
user's classes.  `restore()` puts back tensors, gradients, arrays, the contents of containers, attributes, names, the
state of random generators, and some of Python's machinery (`outward`).  What is too large to keep a copy of, has state that
Python does not show, or is seen by others, cannot be put back: `notes` says so.  Iterators that the call could use up are
in `once`.

Looking at all of it takes time and turns the processor's caches over, which would make the next call slow.  So
`restore()` learns what calls change, and `restore(lightly=True)` puts only that back.
"""

from __future__ import annotations

import functools
import sys
import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from types import CellType, CodeType, FunctionType
from typing import Any

from dynascope.compiler.replay import process_state, restore, side_effects, states
from dynascope.compiler.source.origin import is_users
from dynascope.compiler.torch_private import marks, surroundings

#: bytes of tensors of which values are kept
MOST_BYTES = 4 << 30
#: objects that are looked at
MOST_OBJECTS = 200_000

_LEAVES = (
    type(None),
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    range,
    slice,
    types.ModuleType,
    CodeType,
)
_LIBRARY_MODULES = frozenset(("builtins", "torch", "collections", "typing", "numpy", *sys.builtin_module_names)) - {"__main__"}
#: packages whose objects are machinery, not the program's state
_MACHINERY = frozenset((
    "IPython", "ipykernel", "traitlets", "zmq", "logging", "threading", "asyncio", "_io", "io", "weakref", "matplotlib",
    "dynascope", "ipywidgets", "anywidget", "contextlib", "subprocess", "socket", "concurrent", "queue", "multiprocessing",
))  # fmt: skip


class World:
    """The state of everything that can be reached from `roots`, as it is now; objects whose id is in `spared` aside.

    Without `values` no tensor's values are kept: enough to look at what can be reached, not to restore it.
    """

    def __init__(self, roots: Iterable[Any], spared: Iterable[int] = (), *, values: bool = True) -> None:
        self._spared = frozenset(spared)
        self._values = values
        self._seen: dict[int, Any] = {}
        self._tensors: list[tuple[Any, Any, tuple[Any, ...], bool]] = []
        self._storages: dict[tuple[int, int], Any] = {}
        self._gradients: list[tuple[Any, Any]] = []
        self._versions: list[tuple[Any, int]] = []
        self._graphs: dict[int, Any] = {}
        self._containers: list[tuple[Any, Any]] = []
        self._attributes: list[tuple[Any, dict[str, Any]]] = []
        self._cells: list[tuple[CellType, Any]] = []
        self._names: list[tuple[dict[str, Any], str, Any]] = []
        self._codes: dict[int, CodeType] = {}
        self._bytes = 0
        self._unkept = 0
        self._putters: list[tuple[type, Callable[[], Any]]] = process_state.putters() if values else []
        self._hidden: dict[str, None] = {}
        self._told: dict[str, None] = {}
        self._concerned: dict[type, bool] = {}
        self._lost: set[type] = set()
        #: what was found changed: places in the order of `_everything`
        self._changing: dict[int, Callable[[], Any]] = {}
        #: generators and other iterators that can be reached
        self.once: list[Any] = []
        #: locks and semaphores, and how each is
        self.locks: list[tuple[Any, Any]] = []
        self.notes: list[str] = []
        todo = deque(roots)
        while todo and len(self._seen) < MOST_OBJECTS:
            value = todo.popleft()
            if isinstance(value, _LEAVES) or id(value) in self._seen:
                continue
            inside = self._outward(value)
            if inside is not None:
                self._seen[id(value)] = value
                todo.extend(inside)
                continue
            if _is_machinery(type(value)) and states.size_of(value) is None:
                todo.append(_inner(value))  # a compiled module is machinery, too
                continue
            self._seen[id(value)] = value
            todo.extend(self._remember(value))
        if todo:
            self.notes.append("the call reaches very many objects: not all that it changes could be put back")
        self.notes += self._not_undone()

    def _not_undone(self) -> Iterator[str]:
        if self._unkept:
            many = f"{self._unkept} of the tensors and arrays" if self._unkept > 1 else "one of the tensors and arrays"
            yield f"{many} that the call reaches: too large to be kept: what it changes there stays changed"
        if self._told:
            yield f"the call can reach {_some(self._told)}: what goes out of the program there is not undone"
        if self._hidden:
            yield f"the call can reach objects whose state Python does not show ({_some(self._hidden)}): it is not put back"

    # -- remembering ------------------------------------------------------------------------------------------

    def _remember(self, value: Any) -> Iterable[Any]:
        import torch

        if isinstance(value, torch.Tensor):
            return () if id(value) in self._spared else [*self._tensor(value), *self._object(value)]
        if isinstance(value, FunctionType):
            return self._function(value)
        if isinstance(value, (types.MethodType, types.BuiltinFunctionType)):
            return (value.__self__, getattr(value, "__func__", None))
        if isinstance(value, type):
            return self._class(value)
        if isinstance(value, (list, deque, set, dict)):
            contents = restore.contents_of(value)
            self._containers.append((value, contents))
            inside = [v for _, v in contents] if isinstance(value, dict) else contents
            return [*inside, *self._object(value), *self._methods(value)]
        if isinstance(value, (tuple, frozenset)):
            return [*(tuple.__iter__(value) if isinstance(value, tuple) else frozenset.__iter__(value)), *self._object(value)]
        if isinstance(value, memoryview):
            return (value.obj,)
        if isinstance(value, types.MappingProxyType):
            return list(value.values())
        if isinstance(value, functools.partial):
            return [value.func, value.args, value.keywords, *self._object(value)]
        size = states.size_of(value)
        if size is not None:
            if self._fits(size):
                self._keep(value, states.putter)
            return [*states.inside_of(value), *self._object(value), *self._methods(value)]
        if states.runs_once(value):
            self.once.append(value)
            return ()
        if states.attributes_of(value) is None and states.is_hidden(value):
            self._hidden[f"{type(value).__module__}.{type(value).__qualname__}"] = None
        return [_inner(value), *self._object(value), *self._methods(value)]

    def _outward(self, value: Any) -> list[Any] | None:
        """What can be reached through Python's machinery; None where it is an object like any other."""
        kind = type(value)
        if kind not in self._concerned:
            self._concerned[kind] = side_effects.concerns(kind)
        if not self._concerned[kind]:
            return None
        told, put, inside = side_effects.told_of(value), side_effects.putter(value), side_effects.inside_of(value)
        taken = side_effects.how_taken(value)
        if taken is not None:
            self.locks.append((value, taken))
        if told is not None:
            self._told[told] = None
        if put is not None and self._values:
            self._putters.append((kind, put))
        return inside

    def _keep(self, value: Any, putter: Callable[[Any], Callable[[], Any]]) -> None:
        if self._values:
            self._putters.append((type(value), putter(value)))

    def _fits(self, size: int) -> bool:
        """Whether so many more bytes are kept."""
        if not self._values:
            return False
        if self._bytes + size > MOST_BYTES:
            self._unkept += 1
            return False
        self._bytes += size
        return True

    def _object(self, value: Any) -> list[Any]:
        inside = [v for _, v in states.slot_values(value)]
        if states.slots_of(type(value)):
            self._keep(value, states.slots_putter)
        attributes = states.attributes_of(value)
        if attributes is None:
            return inside
        self._attributes.append((value, dict(attributes)))
        return [*inside, *attributes.values()]

    def _methods(self, value: Any) -> list[Any]:
        """The user's own methods: what they name can be reached, too."""
        kind = type(value)
        return [] if kind.__module__.partition(".")[0] in ("builtins", "torch") else [kind]

    def _class(self, kind: type) -> list[Any]:
        found: list[Any] = []
        for c in kind.__mro__:
            if not _is_users_module(c.__module__) or (id(c) in self._seen and c is not kind):
                continue
            self._seen[id(c)] = c
            self._keep(c, states.class_putter)
            for inside in vars(c).values():
                if isinstance(inside, (staticmethod, classmethod)):
                    found.append(inside.__func__)
                elif isinstance(inside, property):
                    found += [inside.fget, inside.fset, inside.fdel]
                elif isinstance(inside, FunctionType):
                    found.append(inside)
            found += [v for v in states.class_values(c).values() if not isinstance(v, (property, staticmethod, classmethod))]
        return found

    def _function(self, function: FunctionType) -> list[Any]:
        inner = marks.original_in(vars(function)) or vars(function).get("__wrapped__")
        found: list[Any] = [] if inner is None else [inner]
        if not is_users(function.__code__.co_filename):
            return found  # a library's closures are its own affair
        found += [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values(), *self._object(function)]
        for cell in function.__closure__ or ():
            content = restore.content_of(cell)
            self._cells.append((cell, content))
            found.append(content)
        self._codes[id(function.__code__)] = function.__code__
        names = sorted(names_used(function.__code__))
        for name in names:
            value = function.__globals__.get(name, restore.ABSENT)
            found += [value, *self._name(function.__globals__, name)]
            if isinstance(value, types.ModuleType):
                found += side_effects.named(value, frozenset(names))
                self._told.update(dict.fromkeys(side_effects.told_of_names(value, frozenset(names))))
            if isinstance(value, types.ModuleType) and _is_users_module(value.__name__):
                found += [v for n in names for v in self._name(vars(value), n)]
        return [v for v in found if v is not restore.ABSENT]

    def _name(self, namespace: dict[str, Any], name: str) -> list[Any]:
        self._names.append((namespace, name, namespace.get(name, restore.ABSENT)))
        return [self._names[-1][2]]

    def _tensor(self, value: Any) -> list[Any]:
        import torch

        flatten = getattr(type(value), "__tensor_flatten__", None)
        if flatten is not None:
            return [vars(value).get(name) for name in flatten(value)[0]]
        has_gradient = value.is_leaf or value.retains_grad
        gradient = value.grad if has_gradient else None
        if value.requires_grad and has_gradient:
            self._gradients.append((value, gradient))
        if not value.is_inference():
            self._versions.append((value, value._version))
        if self._values and value.device.type != "meta":
            self._tensors.append((value, value.data, states.geometry(value), value.requires_grad))
            if value.layout is torch.strided:
                storage = value.untyped_storage()
                key = (storage.data_ptr(), storage.nbytes())
                if key not in self._storages and storage.nbytes() and self._fits(storage.nbytes()):
                    self._storages[key] = states.Storage(storage)
            else:
                self._keep(value, states.values_putter)
        self._keep(value, states.hooks_putter)
        return [gradient, *states.hooks_of(value), *states.leaves_behind(value, self._graphs)]

    # -- what is known beforehand -------------------------------------------------------------------------------

    def outside(self) -> list[str]:
        """Names that the user's functions call and whose effects no one can put back (`open`, `save`)."""
        return sorted(side_effects.OUTSIDE & self._called())

    def asks(self) -> list[str]:
        """Names that would wait for the user (`input`)."""
        return sorted(side_effects.ASKS & self._called())

    def leaves(self) -> list[Any]:
        """Tensors that can be reached and ask for a gradient."""
        return [tensor for tensor, _ in self._gradients]

    def modules(self) -> list[Any]:
        """Modules that can be reached."""
        import torch

        return [owner for owner, _ in self._attributes if isinstance(owner, torch.nn.Module)]

    def names_in(self, namespace: dict[str, Any]) -> set[str]:
        """Names of this namespace that the user's functions read or bind."""
        return {name for owner, name, _ in self._names if owner is namespace}

    def _called(self) -> set[str]:
        return {name for code in self._codes.values() for name in names_used(code)}

    # -- putting back -------------------------------------------------------------------------------------------

    def restore(self, *, lightly: bool = False) -> None:
        """Put everything back as it was; `lightly`: only what was found changed before, the rest is not looked at."""
        if lightly:
            for _, put in sorted(self._changing.items(), key=lambda item: item[0]):
                put()
            return
        for number, put in enumerate(self._everything()):
            if put() is not False:
                self._changing[number] = put

    def _everything(self) -> Iterator[Callable[[], Any]]:
        """Puts one thing back each, and tells whether it was another one; what does not tell counts as changed."""
        import torch

        for container, contents in self._containers:
            yield functools.partial(restore.refill, container, contents)
        for owner, attributes in self._attributes:
            yield functools.partial(restore.put_attributes, owner, attributes)
        for cell, content in self._cells:
            yield functools.partial(restore.put_content, cell, content)
        for namespace, name, value in self._names:
            yield functools.partial(restore.put_name, namespace, name, value)
        for kept in self._tensors:
            yield functools.partial(self._put_tensor, *kept)
        for tensor, gradient in self._gradients:
            yield functools.partial(restore.put_gradient, tensor, gradient)
        for storage in self._storages.values():
            yield functools.partial(self._try, torch.Tensor, storage.put)
        for kind, put in self._putters:
            yield functools.partial(self._try, kind, put)
        for tensor, version in self._versions:  # last, for what is put back counts as a change in place, too
            yield functools.partial(surroundings.restore_version, tensor, version)

    def _put_tensor(self, tensor: Any, data: Any, before: tuple[Any, ...], wanted: bool) -> bool:
        is_other = states.geometry(tensor) != before
        if is_other:
            self._try(type(tensor), functools.partial(setattr, tensor, "data", data))
        if tensor.requires_grad != wanted and tensor.is_leaf:
            tensor.requires_grad_(wanted)
            return True
        return is_other

    def _try(self, kind: type, put: Callable[[], Any]) -> Any:
        try:
            return put()
        except side_effects.Lost as lost:
            self.notes.extend([str(lost)] * (str(lost) not in self.notes))
            return None
        except Exception as error:
            if kind not in self._lost:
                self._lost.add(kind)
                self.notes.append(f"a {kind.__name__} could not be put back: {type(error).__name__}: {error}")
            return None


def _some(names: Iterable[str]) -> str:
    first, more = list(names)[:4], list(names)[4:]
    return ", ".join([*first, *(["others"] if more else [])])


def _inner(value: Any) -> Any:
    """What a compiled module was made from; None for all else."""
    attributes = states.attributes_of(value) or {}
    modules = attributes.get("_modules")
    inner = modules.get("_orig_mod") if type(modules) is dict else None
    return inner if inner is not None else marks.original_in(attributes)


def _is_users_module(name: str) -> bool:
    """Whether the module of this name is the user's: in no library, not part of Python."""
    if name.partition(".")[0] in _LIBRARY_MODULES:
        return False
    file = getattr(sys.modules.get(name), "__file__", None)
    return file is None or is_users(file)


def _is_machinery(kind: type) -> bool:
    return kind.__module__.partition(".")[0] in _MACHINERY or kind.__module__.startswith("torch._")


def names_used(code: CodeType) -> set[str]:
    """Names of globals and attributes that this code, and the functions defined in it, may use."""
    return set(code.co_names).union(*(names_used(c) for c in code.co_consts if isinstance(c, CodeType)))
