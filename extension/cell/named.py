"""Compiles named targets (`-f NAME`), and nothing else, wherever the run calls them from uncompiled code.

A function is reached through many names, containers, closures and bound methods, but all of them lead to one function object.
So for the duration of the run its `__code__` is a *jump*, which calls the compiled entry point.  No name, attribute or
container changes, and restoring the old code object undoes everything.  A module gets a compiled call, as from
`nn.Module.compile`.

Compiled code must see the plain program, so that the setting of error_on_graph_break is inherited, guards hold and the user's
own compiled functions stay cache hits: all targets are switched off while any thread is in compiled code.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable
from types import CodeType, FunctionType, MethodType
from typing import Any

from dynascope.cell.source import Namespace
from dynascope.cell.targets import underlying
from dynascope.compiler.capture.torch_private import marks
from dynascope.compiler.source.code import JUMP, map_constants

#: constant of a jump's code that its switch replaces
_PLACEHOLDER = "\0dynascope.jump"
_ANY_RECEIVER = object()


class NamedTargets:
    """The targets of one run; `restore` leaves every object as it was."""

    def __init__(self, make_entry: Callable[[Any, str], Any], retrace: Callable[[Any], None]) -> None:
        """`make_entry` compiles a target, to be shown by a name; `retrace` makes the compiler forget what it knows of it."""
        self._make_entry = make_entry
        self._retrace = retrace
        #: id of a function or module -> its switch
        self._switches: dict[int, _FunctionSwitch | _ModuleSwitch] = {}
        #: number of calls of `off` without a matching `on`; calls nest if several threads are in compiled code at once
        self._times_off = 0
        self._lock = threading.RLock()  # a finalizer may enter compiled code at any moment
        #: names whose target has been called
        self.called: list[str] = []
        #: the latest object of each name
        self.resolved: dict[str, Any] = {}

    def add(self, name: str, value: Any) -> None:
        """Compile `value` from now on wherever uncompiled code calls it, unless the name has this object already."""
        value = underlying(value)
        before = self.resolved.get(name)
        if before is value or (isinstance(before, MethodType) and isinstance(value, MethodType) and before == value):
            return  # each look-up of a method makes another object
        self.resolved[name] = value
        if isinstance(value, type):
            value = inspect.getattr_static(value, "forward")
        self.off()
        try:
            self._add(name, value)
        finally:
            self.on()

    def _add(self, name: str, value: Any) -> None:
        import torch

        if isinstance(value, torch.nn.Module):
            module_switch = self._switches.get(id(value))
            if not isinstance(module_switch, _ModuleSwitch):
                self._retrace(value)
                module_switch = self._switches[id(value)] = _ModuleSwitch(self, value, self._make_entry(value, name))
            module_switch.names.append(name)
            return
        function: Any = value.__func__ if isinstance(value, MethodType) else value
        switch = self._switches.get(id(function))
        if not isinstance(switch, _FunctionSwitch):
            self._retrace(function)
            switch = self._switches[id(function)] = _FunctionSwitch(self, function)
        receiver = value.__self__ if isinstance(value, MethodType) else _ANY_RECEIVER
        switch.entries.append((name, receiver, self._make_entry(value, name)))

    def entry(self, value: Any) -> Any:
        """The compiled entry point of a target, for `--keep`; None if `value` is no target."""
        return self._switches[id(value)].entry() if id(value) in self._switches else None

    def on(self) -> None:
        """Undo one `off`; after the last one, calls go to the compiled entry points."""
        with self._lock:
            self._times_off -= 1
            for switch in self._switches.values():
                switch.set(not self._times_off)

    def off(self) -> None:
        """Switch off: until the matching `on`, the program is the plain one, as compiled code must see it."""
        with self._lock:
            self._times_off += 1
            for switch in self._switches.values():
                switch.set(False)

    def restore(self) -> None:
        """Switch off for good and release the user's objects."""
        self.off()
        self._switches.clear()

    def call(self, names: list[str], entry: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Run one compiled entry point, which has these names, with all targets switched off."""
        self.called += [name for name in names if name not in self.called]
        self.off()
        try:
            return entry(*args, **kwargs)
        finally:
            self.on()


class _FunctionSwitch:
    """One function object whose code is a jump while the switch is on."""

    def __init__(self, targets: NamedTargets, function: FunctionType) -> None:
        self.targets = targets
        self.function = function
        self.code = function.__code__
        self.jump = _jump_code(function, self)
        #: (name, the object that a method is bound to or _ANY_RECEIVER, entry point)
        self.entries: list[tuple[str, Any, Any]] = []

    def set(self, on: bool) -> None:
        self.function.__code__ = self.jump if on else self.code

    def entry(self) -> Any:
        return next((entry for _, receiver, entry in self.entries if receiver is _ANY_RECEIVER), None)

    def __matmul__(self, arguments: tuple[tuple[Any, ...], dict[str, Any]]) -> Any:
        """Make the call with the arguments that the jump passes; an operator, so that the jump needs no attribute."""
        args, kwargs = arguments
        for _, receiver, entry in self.entries:
            if receiver is _ANY_RECEIVER or (args and args[0] is receiver):
                names = [name for name, other, _ in self.entries if other is receiver]
                return self.targets.call(names, entry, args if receiver is _ANY_RECEIVER else args[1:], kwargs)
        f = self.function  # the method of another object is called as the plain function; the other targets stay on
        plain = FunctionType(self.code, f.__globals__, f.__name__, f.__defaults__, f.__closure__)
        plain.__kwdefaults__ = f.__kwdefaults__
        return plain(*args, **kwargs)


class _ModuleSwitch:
    """One module with a compiled call while the switch is on."""

    def __init__(self, targets: NamedTargets, module: Any, entry: Any) -> None:
        self.module = module  # kept alive: its id is a key of `NamedTargets`
        self.names: list[str] = []
        self._entry = entry
        self._set_call = marks.compiled_call(module)
        self._call = lambda *args, **kwargs: targets.call(self.names, entry, args, kwargs)

    def set(self, on: bool) -> None:
        self._set_call(self._call if on else None)

    def entry(self) -> Any:
        return self._entry


def _jump_code(function: FunctionType, switch: _FunctionSwitch) -> CodeType:
    """A code object that passes its arguments to `switch`, with the signature and closure cells of `function`."""
    code = function.__code__
    signature = inspect.signature(FunctionType(code, {}, closure=function.__closure__))  # without defaults and annotations
    args, kwargs = "", ""
    for p in signature.parameters.values():
        if p.kind in (p.KEYWORD_ONLY, p.VAR_KEYWORD):
            kwargs += f"{p.name!r}: {p}, " if p.kind is p.KEYWORD_ONLY else f"{p}, "
        else:
            args += f"{p}, "
    free = [f"_free{i}" for i in range(len(code.co_freevars))]
    use_free = f"0 and ({', '.join(free)}); " if free else ""
    text = (
        f"def make({', '.join(free)}):\n"
        f" def jump{signature}: {use_free}return {_PLACEHOLDER!r} @ (({args}), {{{kwargs}}})\n"
        " return jump\n"
    )
    scope: Namespace = {}
    exec(compile(text, __file__, "exec"), scope)
    template: FunctionType = scope["make"](*free)
    # The jump has the user's file and line, so that `inspect` finds the source, but its own name: it appears in torch's
    # stacks, and the report must not mistake it for the function.
    return map_constants(template.__code__, lambda c: switch if isinstance(c, str) and c == _PLACEHOLDER else c).replace(
        co_filename=code.co_filename, co_firstlineno=code.co_firstlineno, co_name=JUMP.format(code.co_name)
    )
