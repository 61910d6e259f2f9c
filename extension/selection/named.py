"""Rule 1: `-f NAME` compiles exactly these callables, wherever the run calls them from uncompiled code.

A function is reached through many names, containers, closures and bound methods.  All of them lead to one
function object, so that is where the switch sits: for the duration its `__code__` is a *jump*, which calls the
compiled entry point.  No name, attribute or container changes, nothing can leak, and putting the old code object
back restores everything.  A module is switched as `nn.Module.compile` does it.

Compiled code must see the plain program (the flag in force is inherited, guards hold, the user's own compiled
functions stay cache hits): whenever torch enters compiled code the board is switched off, and on again behind it.
"""

from __future__ import annotations

import contextlib
import inspect
import sys
from collections.abc import Callable
from types import CodeType, FunctionType, MethodType
from typing import Any

from IPython.core.error import UsageError

from dynascope.cell.source import JUMP, Namespace
from dynascope.compiler.torch_private import marks
from dynascope.compiler.validate import did_you_mean

_MARK = "\0dynascope.jump"
_ABSENT = object()


def resolve(name: str, namespace: Namespace) -> Any:
    """The object of a dotted name: in the user's namespace, else in a module that is already loaded.

    Raises LookupError where there is none.
    """
    root, *rest = name.split(".")
    if root in namespace:
        value = namespace[root]
    elif root in sys.modules and rest:
        value = sys.modules[root]
    else:
        raise LookupError(f"no {root!r} in the notebook{did_you_mean(root, namespace)}")
    path = root
    for part in rest:
        try:
            value = getattr(value, part)
        except Exception:
            raise LookupError(f"{path} has no {part!r}{did_you_mean(part, dir(value))}") from None
        path += f".{part}"
    return value


def check_target(name: str, value: Any) -> None:
    """Raise UsageError, in one line, where `value` cannot be compiled."""
    import torch

    reason = None
    if isinstance(value, torch.nn.Module) or (isinstance(value, type) and issubclass(value, torch.nn.Module)):
        return
    function = value.__func__ if isinstance(value, MethodType) else value
    if marks.is_compiled(function):
        return
    if isinstance(function, FunctionType):
        if marks.is_disabled(function):
            reason = "it is kept out of the compiler by torch.compiler.disable"
        elif inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
            reason = "it is an async def"
        elif inspect.isgeneratorfunction(function):
            reason = "it is a generator"
    elif isinstance(value, type):
        reason = "it is a class, but no nn.Module"
    elif callable(value):
        reason = f"it is a {type(value).__name__}: only Python functions, methods and modules can be compiled"
    else:
        reason = f"it is a {type(value).__name__}, not a function, method or nn.Module"
    if reason is not None:
        raise UsageError(f"cannot compile {name}: {reason}")


class Targets:
    """The targets of one run; `restore` leaves every object as it was."""

    def __init__(self, enter: Callable[[Any], Any], freshen: Callable[[Any], None]) -> None:
        self._enter = enter
        self._freshen = freshen
        self._functions: dict[int, _Function] = {}
        self._modules: dict[int, _Module] = {}
        self._is_on = True
        #: names whose target has been called
        self.called: list[str] = []
        #: what each name led to, last
        self.found: dict[str, Any] = {}

    def add(self, name: str, value: Any) -> None:
        """Compile `value` from now on wherever uncompiled code calls it; the same value twice is added once."""
        if self.found.get(name, _ABSENT) is value:
            return
        self.found[name] = value
        import torch

        if isinstance(value, type):
            value = inspect.getattr_static(value, "forward")
        self.off()
        try:
            if isinstance(value, torch.nn.Module):
                if id(value) not in self._modules:
                    self._freshen(value)
                    self._modules[id(value)] = _Module(self, name, value, self._enter(value))
            else:
                function: Any = value.__func__ if isinstance(value, MethodType) else value
                if id(function) not in self._functions:
                    self._freshen(function)
                    self._functions[id(function)] = _Function(self, function)
                receiver = value.__self__ if isinstance(value, MethodType) else _ABSENT
                self._functions[id(function)].receive(name, receiver, self._enter(value))
        finally:
            self.on()

    def entry(self, value: Any) -> Any:
        """The compiled entry point of a target, for `--keep`; None where there is none."""
        if id(value) in self._modules:
            return self._modules[id(value)].entry
        if id(value) in self._functions:
            return next((entry for _, receiver, entry in self._functions[id(value)].entries if receiver is _ABSENT), None)
        return None

    def on(self) -> None:
        """Calls from here on go to the compiled entry points."""
        self._is_on = True
        for function in self._functions.values():
            function.on()
        for module in self._modules.values():
            module.on()

    def off(self) -> None:
        """The plain program, as compiled code must see it."""
        self._is_on = False
        for function in self._functions.values():
            function.off()
        for module in self._modules.values():
            module.off()

    def restore(self) -> None:
        """Switch off for good and let go of the user's objects."""
        self.off()
        self._functions.clear()
        self._modules.clear()

    def call(self, name: str, entry: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Run one compiled entry point on the plain program."""
        if name not in self.called:
            self.called.append(name)
        self.off()
        try:
            return entry(*args, **kwargs)
        finally:
            self.on()


class _Function:
    """One function object with a jump under it."""

    def __init__(self, targets: Targets, function: FunctionType) -> None:
        self.targets = targets
        self.function = function
        self.code = function.__code__
        self.jump = _jump_code(self.code, self)
        #: (name, the method's receiver, entry point); without a receiver it holds for all of them
        self.entries: list[tuple[str, Any, Any]] = []

    def receive(self, name: str, receiver: Any, entry: Any) -> None:
        self.entries.append((name, receiver, entry))

    def on(self) -> None:
        self.function.__code__ = self.jump

    def off(self) -> None:
        self.function.__code__ = self.code

    def __matmul__(self, packed: tuple[tuple[Any, ...], dict[str, Any]]) -> Any:
        """What the jump does with the arguments of a call."""
        args, kwargs = packed
        for name, receiver, entry in self.entries:
            if receiver is _ABSENT:
                return self.targets.call(name, entry, args, kwargs)
            if args and args[0] is receiver:
                return self.targets.call(name, entry, args[1:], kwargs)
        f = self.function  # the method of another object: the plain function, with the other targets still on
        plain = FunctionType(self.code, f.__globals__, f.__name__, f.__defaults__, f.__closure__)
        plain.__kwdefaults__ = f.__kwdefaults__
        return plain(*args, **kwargs)


class _Module:
    """One module with a compiled call."""

    def __init__(self, targets: Targets, name: str, module: Any, entry: Any) -> None:
        self.module = module
        self.entry = entry
        self.put = marks.compiled_call(module)

        def call(*args: Any, **kwargs: Any) -> Any:
            return targets.call(name, entry, args, kwargs)

        self.call = call

    def on(self) -> None:
        self.put(self.call)

    def off(self) -> None:
        self.put(None)


def plain_in_compiled_code(targets: Targets) -> contextlib.AbstractContextManager[None]:
    """Switch the targets off whenever torch enters compiled code, on again when it leaves.

    Where torch has no such point the jumps alone switch: then a function that the user compiled meets, while the
    cell runs, the jump in place of the target that it calls.
    """
    return marks.around_compiled_code(targets.off, targets.on)


def _jump_code(code: CodeType, jump: _Function) -> CodeType:
    """Code with the signature and the number of closure cells of `code` that hands its arguments to `jump`."""
    names = list(code.co_varnames)
    positional = names[: code.co_argcount]
    keywords = names[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    rest = names[code.co_argcount + code.co_kwonlyargcount :]
    star = rest.pop(0) if code.co_flags & inspect.CO_VARARGS else None
    stars = rest.pop(0) if code.co_flags & inspect.CO_VARKEYWORDS else None
    signature = [*positional]
    if code.co_posonlyargcount:
        signature.insert(code.co_posonlyargcount, "/")
    if star or keywords:
        signature.append(f"*{star}" if star else "*")
    signature += keywords
    if stars:
        signature.append(f"**{stars}")
    args = "".join([f"{n}, " for n in positional] + ([f"*{star}, "] if star else []))
    kwargs = ", ".join([f"{n!r}: {n}" for n in keywords] + ([f"**{stars}"] if stars else []))
    free = [f"_free{i}" for i in range(len(code.co_freevars))]
    text = f"def make({', '.join(free)}):\n def jump({', '.join(signature)}): "
    if free:
        text += f"0 and ({', '.join(free)}); "
    text += f"return {_MARK!r} @ (({args}), {{{kwargs}}})\n return jump\n"
    made: Namespace = {}
    exec(compile(text, __file__, "exec"), made)
    template: FunctionType = made["make"](*free)
    constants = tuple(jump if isinstance(c, str) and c == _MARK else c for c in template.__code__.co_consts)
    # Its place is the user's, so that `inspect` finds the source; its name is not, for in torch's stacks of a compilation
    # it stands between the function and its caller, where the report looks for a caller by name.
    return template.__code__.replace(
        co_consts=constants,
        co_filename=code.co_filename,
        co_firstlineno=code.co_firstlineno,
        co_name=JUMP.format(code.co_name),
    )
