"""Compiles named targets (`-f NAME`), and nothing else, wherever the run calls them from uncompiled code.

A function is reached through many names, containers, closures and bound methods, but all of them lead to one function object.
So for the duration of the run its `__code__` is a *jump*, which calls the compiled entry point.  No name, attribute or
container changes, and restoring the old code object undoes everything.  A module gets a compiled call, as from
`nn.Module.compile`.  Names are looked up again after each statement of the cell, and before each call in its own statements.

Compiled code must see the plain program, so that the setting of error_on_graph_break is inherited, guards hold and the user's
own compiled functions stay cache hits: all targets are switched off while any thread is in compiled code.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable
from functools import partial, partialmethod
from itertools import takewhile
from operator import is_
from types import CodeType, FunctionType, MethodType
from typing import Any

from dynascope.cell.targets import parts_of, underlying
from dynascope.compiler.capture.torch_private import marks
from dynascope.compiler.driver import Run
from dynascope.compiler.source.code import JUMP, map_constants

#: constant of a jump's code that its switch replaces
_PLACEHOLDER = "\0dynascope.jump"
_ANY_RECEIVER = object()


class NamedTargets:
    """The targets of one run; `close` leaves every object as it was."""

    def __init__(self, run: Run, look_up: Callable[[], None]) -> None:
        """`look_up`: adds the present objects of the names."""
        self._run, self._look_up = run, look_up
        #: id of a function or module -> its switch
        self._switches: dict[int, _Switch] = {}
        #: number of calls of `off` without a matching `on`; calls nest if several threads are in compiled code at once
        self._times_off = 0
        self._lock = threading.RLock()  # a finalizer may enter compiled code at any moment
        #: names of which an object has been called
        self.called: list[str] = []
        #: the latest object of each name, in its parts
        self.resolved: dict[str, tuple[Any, ...]] = {}

    def __matmul__(self, callee: Any) -> Any:
        """Let the cell's own statements call `callee`: in a loop, a name may just have been bound to another object."""
        self._look_up()
        return callee

    def add(self, name: str, value: Any) -> None:
        """Compile `value` from now on wherever uncompiled code calls it, unless the name has this object already."""
        value = underlying(value)
        parts, before = parts_of(value), self.resolved.get(name, ())
        if list(map(id, parts)) == list(map(id, before)):
            return
        self.resolved[name] = parts
        if isinstance(value, type):
            value = inspect.getattr_static(value, "forward")
        target = parts_of(value)[-1]
        self.off()
        try:
            if id(target) not in self._switches:
                self._run.retrace(target)
                self._switches[id(target)] = _Switch(self, target)
            receiver = value.__self__ if isinstance(value, MethodType) else _ANY_RECEIVER
            self._switches[id(target)].entries.append((name, receiver, self._run.entry_point(value, name=name)))
        finally:
            self.on()

    def to_keep(self) -> dict[int, Any]:
        """Compiled entry points by the id of the plain function or module, for `--keep`."""
        every = ((id(switch.target), *entry) for switch in self._switches.values() for entry in reversed(switch.entries))
        return {key: entry for key, _, receiver, entry in every if receiver is _ANY_RECEIVER}

    def _switch(self, times_off: int) -> None:
        with self._lock:
            self._times_off += times_off
            for switch in self._switches.values():
                switch.set(switch.plain if self._times_off else switch.jump)

    #: switch off: until the matching `on`, the program is the plain one, as compiled code must see it
    off = partialmethod(_switch, 1)
    #: undo one `off`; after the last one, calls go to the compiled entry points
    on = partialmethod(_switch, -1)

    def close(self) -> None:
        """Switch off for good and release the user's objects."""
        self.off()
        for switch in self._switches.values():
            switch.entries.clear()
        self._switches.clear()
        self._look_up = lambda: None
        del self._run  # torch keeps the code of callers, with the switches in it, for longer than recorded calls may live


class _Switch:
    """One function whose code is a jump, or one module with a compiled call, while the switch is on."""

    def __init__(self, targets: NamedTargets, target: Any) -> None:
        self.targets = targets
        self.target = target  # kept alive: its id is a key of `NamedTargets`
        #: (name, the object that a method is bound to or _ANY_RECEIVER, entry point)
        self.entries: list[tuple[str, Any, Any]] = []
        is_function = isinstance(target, FunctionType)
        self.plain: Any = target.__code__ if is_function else None
        self.jump: Any = _jump_code(target, self) if is_function else lambda *args, **kwargs: self @ (args, kwargs)
        self.set: Callable[[Any], None] = partial(setattr, target, "__code__") if is_function else marks.compiled_call(target)

    def __matmul__(self, arguments: tuple[tuple[Any, ...], dict[str, Any]]) -> Any:
        """Make the call with the arguments that the jump passes; an operator, so that the jump needs no attribute."""
        args, kwargs = self._passed(*arguments)
        for _, receiver, entry in self.entries:
            if receiver is _ANY_RECEIVER or (args and args[0] is receiver):
                called = self.targets.called
                called += [name for name, other, _ in self.entries if other is receiver and name not in called]
                self.targets.off()
                try:
                    return entry(*(args if receiver is _ANY_RECEIVER else args[1:]), **kwargs)
                finally:
                    self.targets.on()
        f = self.target  # the method of another object is called as the plain function; the other targets stay on
        plain = FunctionType(self.plain, f.__globals__, f.__name__, None, f.__closure__)  # the jump passes defaults, too
        return plain(*arguments[0], **arguments[1])

    def _passed(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments without the function's defaults: what a call changes in one of these is there in the next call, too."""
        f = self.target
        if isinstance(f, FunctionType):
            defaults, named = f.__defaults__ or (), f.__kwdefaults__ or {}
            if len(args) == self.plain.co_argcount:
                args = args[: len(args) - sum(takewhile(bool, map(is_, args[::-1], defaults[::-1])))]
            kwargs = {name: value for name, value in kwargs.items() if value is not named.get(name, _ANY_RECEIVER)}
        return args, kwargs


def _jump_code(function: FunctionType, switch: _Switch) -> CodeType:
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
    scope: dict[str, Any] = {}
    exec(compile(text, __file__, "exec"), scope)
    template: FunctionType = scope["make"](*free)
    # The jump has the user's file and line, so that `inspect` finds the source, but its own name: it appears in torch's
    # stacks, and the report must not mistake it for the function.
    jump = map_constants(template.__code__, lambda c: switch if isinstance(c, str) and c == _PLACEHOLDER else c)
    return jump.replace(co_filename=code.co_filename, co_firstlineno=code.co_firstlineno, co_name=JUMP.format(code.co_name))
