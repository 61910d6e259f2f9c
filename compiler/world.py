"""What a call may change beside its arguments, remembered so that it can be put back.

From a function and its arguments `World` follows what the function's own code can reach: closure cells, defaults, the
globals that it names (and those of the user's functions among them), modules, optimizers, containers and objects.
`restore()` puts back tensors' values, gradients, the contents of containers, attributes, and names.  What is too large to
keep a copy of, or has no state that Python shows, cannot be put back; `notes` says so.
"""

from __future__ import annotations

import os
import sysconfig
import types
from collections import deque
from collections.abc import Iterable
from types import CellType, CodeType, FunctionType
from typing import Any

from dynascope.compiler import internals, places
from dynascope.compiler.report import plural

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
    types.BuiltinFunctionType,
    types.ModuleType,
    CodeType,
)
_ABSENT = object()
#: packages whose objects are machinery, not the program's state
_MACHINERY = frozenset((
    "IPython", "ipykernel", "traitlets", "zmq", "logging", "threading", "asyncio", "_io", "io", "weakref", "matplotlib",
    "dynascope", "ipywidgets", "anywidget", "contextlib", "subprocess", "socket", "concurrent", "queue", "multiprocessing",
))  # fmt: skip
_LIBRARIES = tuple(folder + os.sep for folder in {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")})
#: names whose calls reach outside Python's objects
_OUTSIDE = frozenset((
    "open", "unlink", "rmtree", "rename", "mkdir", "makedirs", "system", "Popen", "check_call", "check_output", "urlopen",
    "urlretrieve", "write_text", "write_bytes", "savefig", "to_csv", "to_parquet", "save", "savez", "dump", "requests",
))  # fmt: skip
#: cannot be repeated without the user noticing
_ASKS = frozenset(("input", "getpass", "breakpoint"))


class World:
    """The state of everything that can be reached from `roots`, as it is now; objects whose id is in `spared` aside.

    Without `values` no tensor's values are kept: enough to look at what can be reached, not to restore it.
    """

    def __init__(self, roots: Iterable[Any], spared: Iterable[int] = (), *, values: bool = True) -> None:
        self._spared = frozenset(spared)
        self._values = values
        self._seen: dict[int, Any] = {}
        self._tensors: list[tuple[Any, Any, int | None]] = []
        self._gradients: list[tuple[Any, Any, Any]] = []
        self._containers: list[tuple[Any, Any]] = []
        self._attributes: list[tuple[Any, dict[str, Any]]] = []
        self._cells: list[tuple[CellType, Any]] = []
        self._names: list[tuple[dict[str, Any], str, Any]] = []
        self._codes: dict[int, CodeType] = {}
        self._bytes = 0
        self._unkept = 0
        self.notes: list[str] = []
        todo = deque(roots)
        while todo and len(self._seen) < MOST_OBJECTS:
            value = todo.popleft()
            if isinstance(value, _LEAVES) or id(value) in self._seen or _is_machinery(type(value)):
                continue
            self._seen[id(value)] = value
            todo.extend(self._remember(value))
        if todo:
            self.notes.append("the call reaches very many objects: not all that it changes could be put back")

    # -- remembering ------------------------------------------------------------------------------------------

    def _remember(self, value: Any) -> Iterable[Any]:
        import torch

        if isinstance(value, torch.Tensor):
            if self._values and id(value) not in self._spared:
                self._tensor(value)
            return ()
        if isinstance(value, FunctionType):
            return self._function(value)
        if isinstance(value, types.MethodType):
            return (value.__self__, value.__func__)
        if isinstance(value, type):
            return self._class(value)
        if isinstance(value, (list, deque, set, dict)):
            self._containers.append((value, value.copy()))
            inside = list(value.values()) if isinstance(value, dict) else list(value)
            return [*inside, *self._object(value)]
        if isinstance(value, (tuple, frozenset)):
            return value
        return [internals.inner_function(value), *self._object(value), *self._methods(value)]

    def _object(self, value: Any) -> list[Any]:
        attributes = getattr(value, "__dict__", None)
        if type(attributes) is not dict:
            return []
        self._attributes.append((value, dict(attributes)))
        return list(attributes.values())

    def _methods(self, value: Any) -> list[Any]:
        """The user's own methods: what they name can be reached, too."""
        kind = type(value)
        return [] if kind.__module__.partition(".")[0] in ("builtins", "torch") else [kind]

    def _class(self, kind: type) -> list[Any]:
        if kind.__module__.partition(".")[0] in ("builtins", "torch", "collections", "typing"):
            return []
        inside = [getattr(v, "__func__", v) for c in kind.__mro__ for v in list(vars(c).values())]
        return [f for f in inside if isinstance(f, FunctionType) and _is_users(f.__code__)]

    def _function(self, function: FunctionType) -> list[Any]:
        inner = getattr(function, "__wrapped__", None)
        found: list[Any] = [] if inner is None else [inner]
        if not _is_users(function.__code__):
            return found  # a library's closures are its own affair
        found += [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
        for cell in function.__closure__ or ():
            content = _content(cell)
            self._cells.append((cell, content))
            found.append(content)
        self._codes[id(function.__code__)] = function.__code__
        for name in sorted(_names(function.__code__)):
            value = function.__globals__.get(name, _ABSENT)
            self._names.append((function.__globals__, name, value))
            found.append(value)
        return [v for v in found if v is not _ABSENT]

    def _tensor(self, value: Any) -> None:
        import torch

        gradient = value.grad if value.is_leaf else None
        if value.requires_grad and value.is_leaf:
            kept = gradient.detach().clone() if gradient is not None else None
            self._gradients.append((value, gradient, kept))
        size = value.element_size() * value.numel() if value.layout is torch.strided else 0
        if self._bytes + size > MOST_BYTES:
            self._tensors.append((value, None, _version(value)))
            return
        self._bytes += size
        self._tensors.append((value, value.detach().clone(), _version(value)))

    # -- what is known beforehand -------------------------------------------------------------------------------

    def outside(self) -> list[str]:
        """Names that the user's functions call and whose effects no one can put back (`open`, `save`)."""
        return sorted(_OUTSIDE & self._called())

    def asks(self) -> list[str]:
        """Names that would wait for the user (`input`)."""
        return sorted(_ASKS & self._called())

    def names_in(self, namespace: dict[str, Any]) -> set[str]:
        """Names of this namespace that the user's functions read or bind."""
        return {name for owner, name, _ in self._names if owner is namespace}

    def _called(self) -> set[str]:
        return {name for code in self._codes.values() for name in _names(code)}

    # -- putting back -------------------------------------------------------------------------------------------

    def restore(self) -> None:
        """Put everything back as it was."""
        for container, contents in self._containers:
            _refill(container, contents)
        for owner, attributes in self._attributes:
            current = vars(owner)
            if not _same(current, attributes):
                current.clear()
                current.update(attributes)
        for cell, content in self._cells:
            if _content(cell) is not content:
                if content is _ABSENT:
                    del cell.cell_contents
                else:
                    cell.cell_contents = content
        for namespace, name, value in self._names:
            if value is _ABSENT:
                namespace.pop(name, None)
            elif namespace.get(name, _ABSENT) is not value:
                namespace[name] = value
        self._restore_tensors()

    def _restore_tensors(self) -> None:
        unkept = 0
        for position, (tensor, values, version) in enumerate(self._tensors):
            if version is not None and _version(tensor) == version:
                continue
            if values is None:
                unkept += 1
                continue
            tensor.data.copy_(values)
            self._tensors[position] = (tensor, values, _version(tensor))
        for tensor, gradient, values in self._gradients:
            tensor.grad = gradient
            if gradient is not None and values is not None:
                gradient.data.copy_(values)
        if unkept > self._unkept:
            self._unkept = unkept
            self.notes.append(f"{plural(unkept, 'tensor')} too large to be kept were changed, and could not be put back")


def _is_users(code: CodeType) -> bool:
    file = code.co_filename
    library = (
        file.startswith(_LIBRARIES) or f"{os.sep}site-packages{os.sep}" in file or f"{os.sep}dist-packages{os.sep}" in file
    )
    return not (library or places.in_torch(file) or places.is_plumbing(file))


def _is_machinery(kind: type) -> bool:
    return kind.__module__.partition(".")[0] in _MACHINERY or kind.__module__.startswith("torch._")


def _names(code: CodeType) -> set[str]:
    return set(code.co_names).union(*(_names(c) for c in code.co_consts if isinstance(c, CodeType)))


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # empty
        return _ABSENT


def _version(tensor: Any) -> int | None:
    try:
        version: int = tensor._version
    except RuntimeError:  # an inference tensor keeps none
        return None
    return version


def _same(now: dict[str, Any], before: dict[str, Any]) -> bool:
    return now.keys() == before.keys() and all(now[k] is v for k, v in before.items())


def _refill(container: Any, contents: Any) -> None:
    """Give a list, deque, set or dict its contents again; untouched where they are the same objects."""
    if isinstance(container, dict):
        if list(map(id, container.values())) != list(map(id, contents.values())) or list(container) != list(contents):
            container.clear()
            container.update(contents)
    elif isinstance(container, set):
        if container != contents:
            container.clear()
            container.update(contents)
    elif list(map(id, container)) != list(map(id, contents)):
        container.clear()
        container.extend(contents)
