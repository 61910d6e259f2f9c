"""Finds the objects that a call can reach: from the function and its arguments through everything that they refer to.

The search follows arguments, functions, their closures and defaults, the globals that the user's functions name, classes,
modules, optimizers, containers, attributes, gradients, and the leaves from which a tensor was computed.  It does not follow
the internals of libraries' functions, nor objects that are shared with other code (`side_effects`).
"""

from __future__ import annotations

import gc
import io
import logging
import sys
import types
import weakref
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from types import CodeType, FrameType, FunctionType, ModuleType, TracebackType
from typing import Any

from dynascope.compiler.capture.torch_private import custom_operators, marks, tensor_state
from dynascope.compiler.lab.replay import object_state, side_effects
from dynascope.compiler.lab.replay.object_state import GlobalName
from dynascope.compiler.patching import ABSENT
from dynascope.compiler.source.origin import is_users

#: at most this many objects are inspected
MOST_OBJECTS = 200_000

_LEAVES = (type(None), bool, int, float, complex, str, bytes, range, slice, ModuleType, CodeType, FrameType, TracebackType)
_LIBRARY_MODULES = frozenset(("builtins", "torch", "collections", "typing", "numpy", *sys.builtin_module_names)) - {"__main__"}


class Reachable:
    """The objects that can be reached from `roots`; those for which `enters` is false are left out."""

    def __init__(self, roots: Iterable[Any], enters: Callable[[Any], bool] = lambda value: True) -> None:
        #: the objects that the user's program can change
        self.objects: list[Any] = []
        self._seen: dict[int, Any] = {}
        self._enters = enters
        self._global_names: dict[tuple[int, str], GlobalName] = {}
        self._nodes: dict[int, Any] = {}  # nodes of autograd's graphs that were visited
        self._effects: dict[str, None] = {}
        #: names of globals and attributes in the code of the user's functions
        self.names: set[str] = set()
        #: functions that wait for the user, which the user's functions call
        self.waiting: set[str] = set()
        #: generators, coroutines, and other iterators that a call could use up
        self.single_use: list[Any] = []
        #: locks, semaphores and files, with the state that they must have for another call
        self.fragile: list[tuple[Any, Any]] = []
        self.is_complete = True
        self.add(roots)

    def add(self, roots: Iterable[Any], without: Collection[int] = ()) -> None:
        """Also follow these roots; objects whose id is in `without` are left out."""
        todo = deque(roots)
        while todo and len(self._seen) < MOST_OBJECTS:
            value = todo.popleft()
            is_new = not (isinstance(value, _LEAVES) or id(value) in self._seen or id(value) in without)
            if is_new and value is not ABSENT and self._enters(value):
                self._seen[id(value)] = value
                todo.extend(self._referents(value))
        self.is_complete = self.is_complete and not todo

    def names_in(self, namespace: dict[str, Any]) -> list[str]:
        """The names that the user's functions may read or bind in this namespace; names of attributes are among them."""
        return [entry.name for entry in self._global_names.values() if entry.namespace is namespace]

    def modules(self) -> list[Any]:
        """The `torch.nn.Module`s among the objects."""
        import torch

        return [value for value in self.objects if isinstance(value, torch.nn.Module)]

    def with_gradient(self) -> list[Any]:
        """The tensors among the objects that get a gradient."""
        import torch

        return [value for value in self.objects if isinstance(value, torch.Tensor) and object_state.has_gradient(value)]

    def side_effects(self) -> list[str]:
        """Sentences on effects that a call may have and that are not undone."""
        sentences = []
        called = sorted(side_effects.OUTSIDE & self.names)
        if called:
            words = ", ".join(f"{name}()" for name in called)
            sentences.append(f"the call uses {words}: what that does outside Python is done again by each repeated call")
        if not self.is_complete:
            sentences.append("the call can reach very many objects: not everything that it changes is restored")
        if self._effects:
            first, more = list(self._effects)[:4], ["others"] if len(self._effects) > 4 else []
            sentences.append(f"the call can reach {', '.join([*first, *more])}: what it changes there is not undone")
        return sentences

    # -- one object ------------------------------------------------------------------------------------------------

    def _referents(self, value: Any) -> Iterable[Any]:
        """The objects that `value` leads to; adds `value` to `objects` unless it is library code, shared, or single-use."""
        import torch

        if isinstance(value, GlobalName):
            self.objects.append(value)
            return [value.namespace.get(value.name)]
        if isinstance(value, FunctionType):
            return self._of_function(value)
        if isinstance(value, type) and not _is_users_module(value.__module__):
            return []
        if side_effects.is_single_use(value):
            self.single_use.append(value)
            return []
        self._note(value)
        if side_effects.is_opaque(value):
            return [_compiled_from(value), custom_operators.python_function(value)]
        self.objects.append(value)
        if isinstance(value, type):
            return [*vars(value).values(), *value.__bases__]
        inside = self._of_tensor(value) if isinstance(value, torch.Tensor) else _plain_referents(value)
        return [*inside, *_attributes(value), *(held for _, held in object_state.slot_values(value))]

    def _note(self, value: Any) -> None:
        effect, lock = side_effects.described(value), side_effects.lock_state(value)
        if effect is not None:
            self._effects[effect] = None
        if lock is not None or isinstance(value, io.IOBase):
            self.fragile.append((value, value.closed if isinstance(value, io.IOBase) else lock))

    def _of_function(self, function: FunctionType) -> Iterator[Any]:
        yield marks.original_in(vars(function)) or vars(function).get("__wrapped__")
        if not is_users(function.__code__.co_filename):
            return  # the closure and globals of a library's function are not followed
        self.objects.append(function)
        yield from (function.__defaults__, function.__kwdefaults__, *_attributes(function), *(function.__closure__ or ()))
        names = names_used(function.__code__)
        self.names |= names
        self.waiting |= side_effects.waiting_calls(function, names)
        for name in sorted(names):
            named = self._name(function.__globals__, name)
            yield named
            if isinstance(value := function.__globals__.get(name), ModuleType):
                yield from self._of_module(value, names)

    def _of_module(self, module: ModuleType, names: set[str]) -> Iterator[Any]:
        """The objects that a function with these names in its code can reach through a Python module."""
        if _is_users_module(module.__name__):
            yield from (self._name(vars(module), name) for name in sorted(names))
        elif module is logging and names & side_effects.LOGGING:
            yield logging.getLogger()
        elif module.__name__ == "torch.ops" or (module.__name__ == "torch" and "ops" in names):
            operators = [f"the operators torch.ops.{n}" for n in custom_operators.namespaces(names)]
            self._effects.update(dict.fromkeys(operators))

    def _name(self, namespace: dict[str, Any], name: str) -> GlobalName:
        return self._global_names.setdefault((id(namespace), name), GlobalName(namespace, name))

    def _of_tensor(self, tensor: Any) -> list[Any]:
        flatten = getattr(type(tensor), "__tensor_flatten__", None)
        if flatten is not None:
            return [vars(tensor).get(name) for name in flatten(tensor)[0]]
        gradient = tensor.grad if object_state.has_gradient(tensor) else None
        return [gradient, *tensor_state.hooks_of(tensor), *self._leaves_behind(tensor)]

    def _leaves_behind(self, tensor: Any) -> Iterator[Any]:
        """The leaves from which a tensor was computed: calling backward on it changes their gradients."""
        todo = [tensor.grad_fn]
        while todo:
            node = todo.pop()
            if node is not None and id(node) not in self._nodes:
                self._nodes[id(node)] = node
                yield getattr(node, "variable", None)
                todo.extend(before for before, _ in node.next_functions)


def _attributes(value: Any) -> list[Any]:
    if object_state.is_array(value) and isinstance(value, sys.modules["numpy"].memmap):
        return []  # a memmap's attributes lead to its open file, whose contents are restored with the array's values
    return list((object_state.attributes_of(value) or {}).values())


def _plain_referents(value: Any) -> list[Any]:
    """The objects that an object refers to: for most kinds of objects, those that Python's garbage collector knows."""
    if object_state.is_array(value):
        base = [value.base] if object_state.is_array(value.base) else []
        return [*base, *(sys.modules["numpy"].asarray(value).ravel().tolist() if value.dtype.hasobject else ())]
    if isinstance(value, weakref.ReferenceType):
        return [value()]
    if isinstance(value, types.BuiltinFunctionType):
        return [value.__self__]
    referents = gc.get_referents(value)
    if isinstance(value, (*object_state.CONTAINERS, tuple, frozenset, types.CellType)):
        return referents
    # a dict that an object implemented in C holds is internal to it: follow only the dict's values
    return [inner for v in referents for inner in (v.values() if type(v) is dict else [v])]


def _compiled_from(value: Any) -> Any:
    """The module or function from which a compiled object was made; None for any other object."""
    attributes = object_state.attributes_of(value) or {}
    modules = attributes.get("_modules")
    inner = modules.get("_orig_mod") if type(modules) is dict else None
    return inner if inner is not None else marks.original_in(attributes)


def _is_users_module(name: str) -> bool:
    """Whether the module of this name is the user's: not a library's, and not part of Python."""
    if name.partition(".")[0] in _LIBRARY_MODULES:
        return False
    file = getattr(sys.modules.get(name), "__file__", None)
    return file is None or is_users(file)


def names_used(code: CodeType) -> set[str]:
    """Names of globals and attributes that this code, and the functions defined in it, may use."""
    return set(code.co_names).union(*(names_used(c) for c in code.co_consts if isinstance(c, CodeType)))
