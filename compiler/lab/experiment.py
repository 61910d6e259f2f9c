"""Runs a recorded call again under a variant, and observes it: result, effects, gradients, output, messages, exception.

The effects are those on arguments, on modules that the target or its arguments can reach, and, if asked for (`SideState`), on
what else they can reach: the object of a bound method, globals, closures, containers, attributes, generators of random numbers.
Gradients are those of the result with respect to the tensors and parameters that either can reach and that require gradients,
and those that the call leaves in their `.grad`.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import operator
import re
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from types import CellType, FunctionType
from typing import Any

import torch

from dynascope.compiler.capture.torch_private.float64 import Float64, followed_in_float64
from dynascope.compiler.capture.torch_private.tensors import Precisions, followed_precisions, version_of
from dynascope.compiler.lab import objects, recorded_call
from dynascope.compiler.lab.comparison import Part, Rounding, is_array, largest, parts_of
from dynascope.compiler.lab.objects import CONTAINERS, PLAIN, GlobalName, Reachable, digest, fingerprint, places_of
from dynascope.compiler.lab.recorded_call import Clones, RecordedCall, Vary, held_back_output, random_states
from dynascope.compiler.report import error_words
from dynascope.compiler.source.origin import module_of

#: `grad_fn=` in a printed tensor: compiled code has other names there
_HISTORY = re.compile(r",?\s*grad_fn=<[^>]*>")
#: texts in torch's warnings about compiling, and about taking numbers out of tensors: a change may avoid these warnings
_TORCH_WARNINGS = ("torch.compile", "Converting a tensor with requires_grad=True to a scalar")
#: prefixes of attributes that torch sets on tensors, functions and classes
_TORCHS = ("._dynamo_", "._torch")
#: what is not compared where going backward would use up what the program's own backward passes need
EARLIER = "gradients, which go on into the history of an earlier tensor"
#: how the names of gradients begin that the call itself has computed
_LEFT = "gradient left in "
#: these, those that Python sets on classes, and the place of dict entries whose keys cannot be named
_LEFT_OUT = (*_TORCHS, ".__", "[...]")
#: attributes of each module: what `Experiment` compares, and hooks and submodules' names, which nothing compares
_OF_EVERY_MODULE = frozenset(vars(torch.nn.Module()))
#: inside a value, tuples, lists and dicts are compared down to this many levels, and only those of at most this many items
_DEEPEST, _LONGEST = 3, 1000
#: tensors and arrays with more elements are not compared
_LARGEST = 1 << 20


class EndedFromOutside(BaseException):
    """Ends a run from outside, such as at a time limit: not something that the program does."""


@dataclass(frozen=True)
class Variant:
    """How a call is repeated."""

    #: what is called in place of the target, such as its compiled entry point; None: the target itself
    entry: Callable[..., Any] | None = None
    #: whether what is compiled runs eagerly
    is_eager: bool = False
    #: changes the inputs
    vary: Vary | None = None
    #: whether to follow the precision of each value
    follows_precisions: bool = False
    #: whether to compute each operation in float64, too, with inputs that are moved by this relative amount; None: no
    follows_float64: float | None = None


@dataclass
class Observation:
    """The result and the effects of one run of a call, copied."""

    #: "values", "effects" and "gradients" -> their parts, each with a name; only "effects" if the call raised an exception
    parts: dict[str, list[Part]] = field(default_factory=dict)
    error: BaseException | None = None
    #: whether the call drew random numbers from torch's default generators, on any device that was used before it
    drew: bool = False
    #: names of the classes of objects in the result that cannot be compared
    opaque: list[str] = field(default_factory=list)
    #: names of what holds the value from before the call: numbers and strings, other than those in arguments, and parameters
    #: and gradients that were written, but not changed
    unchanged: set[str] = field(default_factory=set)
    #: (group, name) of each part -> the lowest precision on the way to it, a dtype or None; empty if it was not followed
    precisions: dict[tuple[str, str], Any] = field(default_factory=dict)
    #: the lowest precision of all, a dtype; None if it was not followed
    lowest: Any = None
    #: (group, index) of each floating-point part -> its value in float64; empty if it was not followed
    exact: dict[tuple[str, int], Any] = field(default_factory=dict)
    #: why values could not be followed in float64, and operations that would decide otherwise in it
    limits: list[str] = field(default_factory=list)
    decided: list[str] = field(default_factory=list)
    printed: str = ""
    #: log records, and warnings, as text
    logged: list[str] = field(default_factory=list)
    warned: list[str] = field(default_factory=list)
    #: digests of the states of Python's, NumPy's and torch's generators
    random: list[str] = field(default_factory=list)
    #: what going backward from the results raises: the first line; often because the call has run backward itself
    backward_error: str = ""

    @property
    def error_type(self) -> str | None:
        """Name of the exception's class; None if there was none."""
        return None if self.error is None else type(self.error).__name__

    def beside(self, eager: Observation, what: str) -> tuple[list[Part], list[Part]]:
        """Its parts of a group and eager's, without gradients that the backward of one of them cannot be asked for.

        That is so for a reentrant checkpoint, and for the history of an earlier tensor, perhaps in the compiled graph alone.
        What is written but not changed here, and not written in eager, where writes to `tensor.data` do not count, is left out.
        """
        expected, is_gradient = eager.parts.get(what, []), what == "gradients"
        unwritten = self.unchanged - {name for name, _ in expected}
        is_unasked = is_gradient and (eager.backward_error or {EARLIER} & {*self.opaque, *eager.opaque})
        found = [(n, value) for n, value in self.parts.get(what, ()) if n not in unwritten or isinstance(value, PLAIN)]
        own, wanted = ([p for p in parts if not is_unasked or p[0].startswith(_LEFT)] for parts in (found, expected))
        return own, wanted

    def rounding(self, what: str, name: str) -> Rounding:
        """The rounding that a part may show; gradients of one size come out of sums of another: they share a scale."""
        if (what, name) not in self.precisions:
            return Rounding()
        scale = max(largest(value) for _, value in self.parts[what]) if what == "gradients" else None
        return Rounding(self.precisions[what, name], scale)


class Experiment:
    """Repeats one call under variants: a context manager, which restores all that the runs change.

    Each run begins with the state that the program has left, or, with `numbers`, with that before the recorded call.  With a
    `state`, which must be created before anything is edited, a run is observed as closely as possible.
    """

    def __init__(self, call: RecordedCall, *, numbers: bool = False, state: SideState | None = None) -> None:
        self.call, self._state = call, state
        self._replaying = call.replaying(numbers=numbers)

    def __enter__(self) -> Experiment:
        self.prepare = self._replaying.__enter__()
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._replaying.__exit__(kind, error, trace)

    def run(self, variant: Variant) -> Observation:
        """Run the call once more and observe it; an exception is part of the Observation, unless it comes from outside."""
        observed, call = Observation(), self.call
        before: _Before | None = None
        followed: Float64 | Precisions | None = None
        with contextlib.ExitStack() as stack:
            if variant.is_eager:
                stack.enter_context(torch.compiler.set_stance("force_eager"))
            if variant.follows_float64 is not None:
                followed = stack.enter_context(followed_in_float64(variant.follows_float64))
            elif variant.follows_precisions:
                followed = stack.enter_context(followed_precisions())
            held = stack.enter_context(held_back_output())
            caught = stack.enter_context(warnings.catch_warnings(record=True))
            warnings.simplefilter("always")
            try:
                args, kwargs = self.prepare()
                if variant.vary is not None:
                    args, kwargs = call.varied(variant.vary, args, kwargs)
                before = _Before(call.target, args, kwargs, call.bound(), self._state)
                generators = recorded_call.torch_random_states()
                entry = call.target if variant.entry is None else variant.entry  # a module may define a length
                returned = entry(*args, **kwargs)
                observed.drew = any(not generator.same(generator.read(), generator.before) for generator in generators)
                self._observe(observed, before, returned, followed)
            except (KeyboardInterrupt, EndedFromOutside):
                raise
            except BaseException as error:  # sys.exit(), too, is what the program does with these inputs
                observed.error = error.with_traceback(None)
            observed.random = [digest(state.read()) for state in random_states()]
        if before is not None and observed.error is not None:
            observed.parts = {"effects": _copied(before.effects(call.bound()))}
        warned = [f"{w.category.__name__}: {w.message}" for w in caught if not _is_torch_warning(w)]
        observed.printed = _HISTORY.sub("", held.printed)
        observed.logged, observed.warned = ([_HISTORY.sub("", text) for text in texts] for texts in (held.logged, warned))
        return observed

    def calls(self, entry: Callable[..., Any], *, fully: bool = False) -> Iterator[Callable[[], Any]]:
        """Prepare calls of `entry` one after the other, as in a loop.

        All state is restored before the first, and later only the state that calls were seen to change; with `fully`, all state
        before each call.
        """
        for number in itertools.count():
            args, kwargs = self.prepare(only_changed=number > 0 and not fully)
            yield functools.partial(entry, *args, **kwargs)

    def _observe(self, observed: Observation, before: _Before, returned: Any, followed: Float64 | Precisions | None) -> None:
        """Add what the call has returned and changed."""
        call = self.call
        opaque: dict[str, None] = {}
        values = list(parts_of("the value", returned if call.namespace is None else returned[1], opaque))
        now = call.bound()
        new = {name: value for name, value in now.items() if value is not before.bound.get(name)}
        results = [*values, *(part for name, value in new.items() for part in parts_of(name, value))]
        groups = {"values": values, "effects": before.effects(now), "gradients": before.gradients_left()}
        try:
            if before.are_of_the_program(results):
                opaque[EARLIER] = None
            else:
                groups["gradients"] += before.gradients(results)
        except RuntimeError as error:
            observed.backward_error = error_words(error)
        precisions = followed.precisions if isinstance(followed, Float64) else followed
        if precisions is not None:
            observed.precisions = {(what, name): precisions.of(v) for what in groups for name, v in groups[what]}
            observed.lowest = precisions.lowest
        if isinstance(followed, Float64):
            exact = {(what, i): followed.copy_of(v) for what in groups for i, (_, v) in enumerate(groups[what])}
            observed.exact = {key: value for key, value in exact.items() if value is not None}
            observed.limits, observed.decided = list(followed.limits), list(followed.decided_otherwise)
        observed.opaque, observed.unchanged = list(opaque), before.unchanged(groups["effects"])
        observed.parts = {what: _copied(group) for what, group in groups.items()}


def _copied(parts: list[Part]) -> list[Part]:
    def copied(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return Clones()(value.detach())
        return value if isinstance(value, PLAIN) else value.copy()

    return [(name, copied(value)) for name, value in parts]


class _Before:
    """State that a call may change, as it is before the call."""

    def __init__(
        self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], bound: dict[str, Any], state: SideState | None
    ) -> None:
        """`bound`: the values of the names that count as arguments of a cell's statements."""
        reached = Reachable([target, args, kwargs])
        self.bound, self._state = bound, state
        self._given = [*((f"argument {i}", value) for i, value in enumerate(args)), *kwargs.items()]
        self._names = _names_of(target, dict(self._given))
        self._modules = [o for o in reached.objects if isinstance(o, torch.nn.Module)]
        held = [*self._of_modules(set()), *(state.parts(()) if state is not None else ())]
        self._parameters = {id(v): (v, fingerprint(v)) for _, v in held if isinstance(v, torch.nn.Parameter)}
        self._numbers = {(name, value) for name, value in held if isinstance(value, PLAIN)}
        tensors = [o for o in reached.objects if isinstance(o, torch.Tensor) and objects.has_gradient(o)]
        leaves = [(self._names.get(id(t), f"a tensor of shape {tuple(t.shape)}"), t) for t in tensors]
        own = [(f"argument {name}", value) for name, value in bound.items() if not isinstance(value, torch.nn.Parameter)]
        given = [part for one in [("argument", [*args, kwargs]), *own] for part in parts_of(*one)]
        #: the tensors that require gradients, each once: name, tensor, version, gradient
        self._asking: dict[int, tuple[str, Any, int | None, tuple[Any, ...]]] = {}
        histories = (o.grad_fn for o in [*reached.objects, *bound.values()] if isinstance(o, torch.Tensor))
        #: where the program's own backward passes may still go; copied arguments have a history of their own
        self._histories = {node for node in histories if node is not None and node.name() != recorded_call.COMPUTED}
        for name, t in [*given, *leaves]:
            if isinstance(t, torch.Tensor) and t.requires_grad:
                self._asking.setdefault(id(t), (name, t, version_of(t), _gradient_of(t)))

    def effects(self, bound: dict[str, Any]) -> list[Part]:
        """What arguments, names in `bound`, modules and `state` hold now, without parameters that have not changed."""
        visited = set[int]()
        given = [(name, value) for name, value in self._given if not isinstance(value, PLAIN)]  # a number cannot change
        found = [part for name, value in [*given, *bound.items()] for part in parts_of(name, value, visited=visited)]
        found += self._of_modules(visited)
        visited |= {id(value) for _, value in found if not isinstance(value, PLAIN)}
        found += self._state.parts(visited) if self._state is not None else ()
        written = {id for id, (value, before) in self._parameters.items() if fingerprint(value) != before}
        return [(name, value) for name, value in found if id(value) in written or id(value) not in self._parameters]

    def unchanged(self, effects: list[Part]) -> set[str]:
        """Names of the numbers, strings and parameters among these, and of gradients, that have not changed."""
        kept = [(n, self._parameters[id(v)][1], fingerprint(v)) for n, v in effects if id(v) in self._parameters]
        kept += [(f"{_LEFT}{name}", before, _gradient_of(t)) for name, t, _, before in self._asking.values()]
        # the last two of a fingerprint, without the version; None: the values are not known
        same = {name for name, before, now in kept if before[-2:] == now[-2:] and now[-1] is not None}
        return same | {name for name, value in effects if isinstance(value, PLAIN) and (name, value) in self._numbers}

    def gradients_left(self) -> list[Part]:
        """The gradients that the call left in `.grad`."""
        return [
            (f"{_LEFT}{name}", t.grad)
            for name, t, _, before in self._asking.values()
            if t.is_leaf and t.grad is not None and _gradient_of(t) != before
        ]

    def are_of_the_program(self, values: list[Part]) -> bool:
        """Whether going backward from these results would use up what the program's own backward passes need."""
        nodes, todo = set[Any](), [t.grad_fn for _, t in values if isinstance(t, torch.Tensor)]
        while todo:
            if (node := todo.pop()) is not None and node not in nodes:
                nodes.add(node)
                todo += [before for before, _ in node.next_functions]
        return not nodes.isdisjoint(self._histories)

    def gradients(self, values: list[Part]) -> list[Part]:
        """The gradients of these results; raises RuntimeError if going backward from them fails."""
        # leave out computed tensors that the call changed in place: for autograd they are other tensors than before
        kept = [(name, t) for name, t, version, _ in self._asking.values() if t.is_leaf or version_of(t) == version]
        return _gradients(values, kept)

    def _of_modules(self, visited: set[int]) -> Iterator[Part]:
        """The parameters and buffers in the modules, and the numbers, strings, tensors and containers that are attributes.

        Private attributes of torch's own modules are left out.
        """
        done: set[int] = set()
        for module in self._modules:
            own, kind = vars(module), type(module).__name__
            for name, value in {**own.get("_parameters", {}), **own.get("_buffers", {})}.items():
                if value is not None and id(value) not in done:
                    done.add(id(value))
                    yield self._names.get(id(value), f"{kind}.{name}"), value
            is_torchs = module_of(type(module)).partition(".")[0] == "torch"  # then private attributes are internal to torch
            for name, value in own.items():
                is_own = name not in _OF_EVERY_MODULE or isinstance(value, PLAIN)
                is_held = isinstance(value, (*CONTAINERS, tuple)) and len(value) <= _LONGEST
                is_small = is_held or isinstance(value, (*PLAIN, torch.Tensor))
                if is_own and is_small and not (is_torchs and name.startswith("_")):
                    yield from parts_of(f"{kind}.{name}", value, visited=visited)


def _gradient_of(tensor: Any) -> tuple[Any, ...]:
    """Identity and fingerprint of a leaf's `.grad`; other tensors count as having none."""
    gradient = tensor.grad if tensor.is_leaf else None
    return id(gradient), *(() if gradient is None else fingerprint(gradient))


def _names_of(target: Any, given: dict[str, Any]) -> dict[int, str]:
    """id -> name of the tensors in a module, in the closure and globals of a function, or in modules among its arguments."""
    known = {"": getattr(target, "__self__", target), **objects.variables_of(target)}
    known |= {name: value for name, value in given.items() if isinstance(value, torch.nn.Module)}
    names: dict[int, str] = {}
    for name, value in known.items():
        if isinstance(value, torch.Tensor):
            names.setdefault(id(value), name)
        elif isinstance(value, torch.nn.Module):
            for inner, tensor in [*value.named_parameters(), *value.named_buffers()]:
                names.setdefault(id(tensor), f"{name}.{inner}".removeprefix("."))
    return names


def _gradients(values: list[Part], leaves: list[Part]) -> list[Part]:
    """The gradients of the weighted sum of all computed floating-point values with respect to the leaves; [] if there are none.

    The weights differ from element to element: the plain sum of a softmax or of a normalized value is constant, so that its
    gradient is nothing but rounding.
    """

    def weighted(t: Any) -> Any:
        if t.layout != torch.strided or t.is_nested:
            return t.float().sum()
        return (t.float() * torch.linspace(0.5, 1.5, t.numel(), device=t.device).reshape(t.shape)).sum()

    tensors = (t for _, t in values if isinstance(t, torch.Tensor) and t.requires_grad and t.is_floating_point())
    outputs = [summed for t in tensors if (summed := weighted(t)).requires_grad]  # which a leaf, under no_grad, does not make
    if not outputs or not leaves:
        return []
    gradients = torch.autograd.grad(outputs, [t for _, t in leaves], allow_unused=True)
    return [(f"gradient of {name}", g) for (name, _), g in zip(leaves, gradients, strict=True) if g is not None]


def _is_torch_warning(warning: warnings.WarningMessage) -> bool:
    """Whether torch warned about how it runs the program, not about what the program does."""
    return any(part in warning.filename for part in ("_dynamo", "_inductor", "_functorch", "_subclasses")) or any(
        words in str(warning.message) for words in _TORCH_WARNINGS
    )


# -- other state ------------------------------------------------------------------------------------------------------


class SideState:
    """The state that a call's target and arguments can reach; must be created before anything is edited.

    Of the attributes of a module, numbers, strings and bytes are left out here.
    """

    def __init__(self, call: RecordedCall) -> None:
        reached = Reachable([call.target, call.arguments]).objects
        modules = [vars(o) for o in reached if isinstance(o, torch.nn.Module)]
        left_out = {id(own[name]) for own in modules for name in _OF_EVERY_MODULE & own.keys()}
        left_out |= {id(held) for o in reached for place, held in places_of(o) if place.startswith(_TORCHS)}
        # the names of a cell's statements are compared as its arguments
        left_out |= {id(o) for o in reached if type(o) is GlobalName and o.namespace is call.namespace and o.name in call.names}
        names, counts = dict[int, str](), Counter[tuple[str, bool]]()
        self._owners = list[Part]()
        for o in reached:
            own = o.name if type(o) is GlobalName else o.__name__ if isinstance(o, (type, FunctionType)) else type(o).__name__
            name = names.get(id(o), own)  # most are reached from what holds them
            for place, inner in places_of(o):
                names.setdefault(id(inner), f"{name}{place}")
            if isinstance(o, FunctionType):
                names |= zip(map(id, o.__closure__ or ()), o.__code__.co_freevars, strict=False)
            if id(o) not in left_out and type(o) is not tuple:  # what a tuple holds is read with what holds the tuple
                counts[key := (name, isinstance(o, (GlobalName, CellType)))] += 1
                self._owners.append((name if counts[key] == 1 else f"{name} {counts[key]}", o))

    def parts(self, without: Collection[int]) -> list[Part]:
        """The values that can be compared, each under a name that is the same in each run, in the order of the names.

        Of a set, only the length is read; of a dict, the length and the entries whose keys are numbers, strings or bytes.
        What has more than `_LARGEST` elements, and meta and sparse tensors are left out.  `without`: ids of objects.
        """
        known = {id(owner) for _, owner in self._owners}
        values = (
            (f"{owner_name}{inner_name}"[:200], inner)
            for owner_name, owner in self._owners
            if id(owner) not in without
            for name, value in _entries(owner)
            for inner_name, inner in _flat(name, value, known)
        )
        return sorted((p for p in values if id(p[1]) not in without and _is_comparable(p[1])), key=operator.itemgetter(0))


def _is_comparable(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return value.numel() <= _LARGEST and value.layout is torch.strided and value.device.type != "meta"
    return bool(value.size <= _LARGEST) if is_array(value) else isinstance(value, PLAIN)


def _entries(owner: Any) -> Iterator[tuple[str, Any]]:
    yield ".__class__", type(owner).__qualname__
    if isinstance(owner, CONTAINERS):
        yield ".length", len(objects.contents_of(owner)) // (2 if isinstance(owner, dict) else 1)
    # of a generator of random numbers
    generators = (state for state in objects.library_states(owner) if state.same is objects.same_numbers)
    state, is_module = next(generators, None), isinstance(owner, torch.nn.Module)
    if state is not None:
        yield ".state", digest(state.before)
        return
    for place, value in places_of(owner):
        is_elsewhere = is_module and (isinstance(value, PLAIN) or place[1:] in _OF_EVERY_MODULE)
        if not is_elsewhere and not place.startswith(_LEFT_OUT):
            yield place, value


def _flat(name: str, value: Any, known: set[int], depth: int = 0) -> Iterator[tuple[str, Any]]:
    """A value, and what tuples, lists and dicts in it hold; `known`: ids of owners, whose contents are read elsewhere."""
    yield name, value
    if isinstance(value, (tuple, list, dict)) and id(value) not in known and depth < _DEEPEST and len(value) <= _LONGEST:
        for place, inner in objects.items_of(value):
            if place not in _LEFT_OUT:
                yield from _flat(f"{name}{place}", inner, known, depth + 1)
