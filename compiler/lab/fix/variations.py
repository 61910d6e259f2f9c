"""Other inputs for a recorded call: the same arguments with other values, sizes or numbers, or made to require gradients.

Random values are drawn from a generator with a fixed seed, so every run of a variation gets the same ones.  Tensors are changed
in place, which a replay undoes; of tensors that share memory, only one gets other values.
"""

from __future__ import annotations

import ast
import contextlib
import enum
import functools
import inspect
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from dynascope.compiler.lab.comparison import parts_of
from dynascope.compiler.lab.fix.plan import Plan
from dynascope.compiler.lab.fix.text_edits import edits_between
from dynascope.compiler.lab.objects import GlobalName, Reachable, attributes_of, variables_of
from dynascope.compiler.lab.recorded_call import Args, Arguments, Kwargs, RecordedCall, Vary, computed

EMPTY = "No tensor is empty"
_LARGE = 1e4
#: at most this many sizes, and tensors, are changed, each by itself
_MOST_BY_ITSELF = 3
#: at most this many variations change a Python number; one number can have two
_MOST_NUMBERS = 4


@dataclass(frozen=True)
class Variation:
    """One way to change a call's inputs."""

    name: str
    vary: Vary
    #: whether it is left out if the eager program raises an exception with it
    may_fail: bool = False
    #: whether the compiler may have to compile again because of it
    recompiles: bool = False
    #: whether the inputs are made to require gradients
    gradients: bool = False
    #: the condition if a change computes something else with these inputs; "": the change is refused
    remark: str = ""


#: the inputs as they were
RECORDED = Variation("the recorded inputs", lambda args, kwargs: (args, kwargs))


def variations(call: RecordedCall, args: Args, kwargs: Kwargs) -> list[Variation]:
    """The variations that apply to these inputs of a call: of values, gradients, sizes and numbers, in this order.

    If a function is called, the values of tensors in its globals and closure are changed, too.
    """
    held = _tensors_held(call)
    tensors = _tensors(args, kwargs, held)
    found = [Variation(name, functools.partial(_vary_values, held, change)) for name, change in _VALUES if tensors]
    if any(_is_positive(t) for t in tensors):  # 0 is an index, too, and as a number it is like False
        zero = functools.partial(_vary_values, held, lambda t, _: t * 0 if _is_positive(t) else t)
        found.append(Variation("integers of zero", zero, may_fail=True))
    # with zeros in all tensors, it may raise an exception because of one, and the rest of it does not run
    each = range(len(tensors) if len(tensors) > 1 else 0)[:_MOST_BY_ITSELF]
    zeros = functools.partial(_vary_values, held, dict(_VALUES)["inputs of zeros"])
    alone = [Variation(f"zeros in tensor {n + 1}", functools.partial(zeros, which=slice(n, n + 1))) for n in each]
    own = [t for t in _tensors(args, kwargs, []) if t.is_leaf]
    if any(t.is_floating_point() and not t.requires_grad for t in own):
        # without NaNs: where an input is NaN, the gradient through the side of a branch that is not taken can be NaN, too
        for first in [RECORDED, *(v for v in found if "NaN" not in v.name), *alone]:
            vary = functools.partial(_require_gradients, first.vary)
            found.append(Variation(f"{first.name} that require gradients", vary, True, True, True))
    for size in list(dict.fromkeys(size for t in own for size in t.shape if size > 1))[:_MOST_BY_ITSELF]:
        for to, remark in ((size + 1, ""), (0, EMPTY)):  # 0: a branch may keep empty tensors from code that fails on them
            vary = functools.partial(_resize, size, to)
            found.append(Variation(f"size {to} instead of {size}", vary, may_fail=True, recompiles=True, remark=remark))
    given: list[tuple[str, int | str, Any]] = [(f"argument {n} = ", n, value) for n, value in enumerate(args)]
    given += [(f"{name}=", name, value) for name, value in kwargs.items()]
    numbers = [(words, place, other) for words, place, value in given for other in _other_numbers(value)]
    for words, place, other in numbers[:_MOST_NUMBERS]:
        found.append(Variation(f"{words}{other!r}", functools.partial(_with_argument, place, other), True, True))
    return found


def _with_argument(place: int | str, value: Any, args: Args, kwargs: Kwargs) -> Arguments:
    if isinstance(place, str):
        return args, {**kwargs, place: value}
    return (*args[:place], value, *args[place + 1 :]), kwargs


def _other_numbers(value: Any) -> list[Any]:
    """Other numbers of the same type; none if the value is not a number."""
    if isinstance(value, bool):
        return [not value]
    if type(value) is int:
        return [value + 1, 0] if value else [1]
    if type(value) is float:
        return [-value, value + 0.5] if value else [0.5]
    return []


def _tensors_held(call: RecordedCall) -> list[Any]:
    """Tensors that a function's globals and closure variables hold directly, not in containers; parameters are left out.

    Those of a cell's statements are their inputs.
    """
    held = variables_of(call.target).values() if call.namespace is None else ()
    return [v for v in held if isinstance(v, torch.Tensor) and not isinstance(v, torch.nn.Parameter)]


def _tensors(args: Args, kwargs: Kwargs, held: list[Any]) -> list[Any]:
    parts = [value for _, value in parts_of("", [*args, kwargs, *held])]
    found = {id(t): t for t in parts if isinstance(t, torch.Tensor) and not isinstance(t, torch.nn.Parameter)}
    few = (torch.uint16, torch.uint32, torch.uint64)  # torch computes no minimum of these, for example
    return [t for t in found.values() if t.layout is torch.strided and t.device.type != "meta" and t.dtype not in few]


# -- values ---------------------------------------------------------------------------------------------------------

_Change = Callable[[Any, Any], Any]


def _vary_values(held: list[Any], change: _Change, args: Args, kwargs: Kwargs, which: slice = slice(None)) -> Arguments:
    generator = torch.Generator().manual_seed(20)
    done: set[int] = set()
    for tensor in _tensors(args, kwargs, held)[which]:
        storage = tensor.untyped_storage().data_ptr()
        if tensor.numel() and (storage not in done or not storage):
            done.add(storage)
            with torch.no_grad(), contextlib.suppress(RuntimeError):  # torch refuses a tensor whose elements share memory
                tensor.data.copy_(change(tensor.data, generator))
    return args, kwargs


def _random(t: Any, generator: Any, low: float = -1.0, high: float = 1.0) -> Any:
    """Random values on the tensor's own scale; integers stay between its minimum and maximum, as they may be indices."""
    if t.dtype is torch.bool:
        return (torch.rand(t.shape, generator=generator) > 0.5).to(t.device)
    if not has_fractions(t):
        first, last = int(t.min()), int(t.max())
        return torch.randint(first, last + 1, t.shape, generator=generator).to(t)
    finite = t[torch.isfinite(t)].abs()
    scale = float(finite.max()) if finite.numel() else 1.0
    drawn = low + (high - low) * torch.rand(t.shape, generator=generator, dtype=torch.float64)
    return (drawn * (scale or 1.0)).to(t)


def _only_floats(change: Callable[[Any], Any], other: _Change) -> _Change:
    """`change` for floating-point and complex tensors, `other` for integer and bool tensors."""
    return lambda t, generator: change(t) if has_fractions(t) else other(t, generator)


def has_fractions(t: Any) -> bool:
    """Whether the numbers of a tensor are floating-point or complex ones."""
    return bool(t.is_floating_point() or t.is_complex())


def _reordered(t: Any, generator: Any) -> Any:
    return ~t if t.dtype is torch.bool else t.flip(list(range(t.dim())))


def _signed_zeros(t: Any) -> Any:
    """Zeros, every second one negative."""
    made = torch.zeros_like(t, memory_format=torch.contiguous_format)
    made.view(-1)[::2].neg_()
    return made


def _is_positive(t: Any) -> bool:
    """Whether a tensor holds integers, all of them above 0."""
    return bool(t.numel()) and t.dtype is not torch.bool and not has_fractions(t) and int(t.min()) > 0


def _extreme(t: Any, generator: Any, lowest: bool) -> Any:
    """The tensor with all values set to its lowest, or its highest."""
    return torch.full_like(t, not lowest if t.dtype is torch.bool else int(t.min() if lowest else t.max()))


def _first_nan(t: Any) -> Any:
    made = t.clone(memory_format=torch.contiguous_format)
    made.view(-1)[0] = math.nan
    return made


_VALUES: tuple[tuple[str, _Change], ...] = (
    ("other random values", _random),
    ("negated inputs", _only_floats(lambda t: -t, _reordered)),
    ("inputs of zeros", _only_floats(_signed_zeros, functools.partial(_extreme, lowest=True))),
    ("positive inputs", functools.partial(_random, low=0.0)),
    ("negative inputs", functools.partial(_random, high=0.0)),
    ("large inputs", _only_floats(lambda t: (t.sgn() + t) * _LARGE, functools.partial(_extreme, lowest=False))),
    ("large negative inputs", _only_floats(lambda t: -(t.sgn() + t) * _LARGE, _reordered)),
    ("inputs with a NaN", _only_floats(_first_nan, _reordered)),
    ("inputs of NaNs", _only_floats(lambda t: t * math.nan, _random)),
)


# -- gradients, sizes ------------------------------------------------------------------------------------------------


def _require_gradients(first: Vary, args: Args, kwargs: Kwargs) -> Arguments:
    """Make the inputs the results of an operation, which require gradients.

    Gradients are taken only of results with a `grad_fn`, which a leaf that the call returns unchanged would not have.
    """
    args, kwargs = first(args, kwargs)
    for tensor in _tensors(args, kwargs, []):
        with contextlib.suppress(RuntimeError):  # torch refuses a tensor whose elements share memory
            if tensor.is_floating_point() and not tensor.requires_grad:
                computed(tensor)
    return args, kwargs


def _resize(size: int, other: int, args: Args, kwargs: Kwargs) -> Arguments:
    """Resize every dimension of length `size` to `other` in the leaf tensors, except parameters; values are repeated."""
    for tensor in _tensors(args, kwargs, []):
        if not tensor.is_leaf or size not in tensor.shape:
            continue
        made = tensor.data
        for dim, extent in enumerate(tensor.shape):
            if extent == size:
                made = made.index_select(dim, torch.arange(other, device=made.device) % size)
        tensor.data = made.contiguous()
    return args, kwargs


_KINDS = (bool, int, float, str)
#: at most this many variations
_MOST = 6
#: larger constants are left out: they are often numbers of iterations
_LARGEST = 10_000


def tested_variations(plan: Plan, call: RecordedCall, args: Args, kwargs: Kwargs) -> list[Variation]:
    """At most `_MOST` variations of arguments, attributes, globals and entries of dicts that conditions ask about.

    All conditions in the edited files count; those nearest to a file's first edit come first.
    """
    tested = _tested(plan)
    if not tested:
        return []
    try:
        values = dict(_bound(call, args, kwargs).arguments)
    except (TypeError, ValueError):  # the call's arguments do not fit, or its target has no signature
        return []
    places: dict[str, list[dict[str, Any]]] = {}
    for namespace, name in _found(call, args, kwargs, set(tested)):
        places.setdefault(name, []).append(namespace)
        values.setdefault(name, namespace[name])
    made = (
        Variation(f"{name} = {other!r:.60}", functools.partial(_vary, call, name, other, places.get(name, [])), True, True)
        for name, constants in tested.items()
        if name in values
        for other in _others(values[name], constants)
    )
    return list(itertools.islice(made, _MOST))


def _tested(plan: Plan) -> dict[str, list[Any]]:
    """Name of a variable, attribute or entry of a dict -> the constants in conditions that ask about it."""
    found: list[tuple[int, set[str], list[Any]]] = []
    for file, text in plan.texts.items():
        before = plan.originals[file]
        first = min((edit.first_line for edit in edits_between(file, before, text)), default=0)
        for node in ast.walk(ast.parse(before)):
            for asked in _conditions(node):
                inside = list(ast.walk(asked))
                names = {n.id for n in inside if isinstance(n, ast.Name)}
                names |= {n.attr for n in inside if isinstance(n, ast.Attribute)}
                keys = [n.slice for n in inside if isinstance(n, ast.Subscript)]
                names |= {k.value for k in keys if isinstance(k, ast.Constant) and isinstance(k.value, str)}
                constants = [n.value for n in inside if isinstance(n, ast.Constant)]
                found.append((abs(getattr(asked, "lineno", 0) - first), names, constants))
    tested: dict[str, list[Any]] = {}
    for _, names, constants in sorted(found, key=lambda one: one[0]):
        for name in sorted(names):
            tested.setdefault(name, []).extend(constants)
    return tested


def _conditions(node: ast.AST) -> list[ast.AST]:
    if isinstance(node, ast.If | ast.While | ast.IfExp | ast.Assert):
        return [node.test]
    if isinstance(node, ast.Match):
        asked: list[Any] = [node.subject, *(case.pattern for case in node.cases)]
        return [ast.Tuple(asked, ast.Load(), lineno=node.lineno)]
    return [node] if isinstance(node, ast.Compare | ast.BoolOp) else [*node.ifs] if isinstance(node, ast.comprehension) else []


def _others(value: Any, constants: list[Any]) -> list[Any]:
    """Other values of the same type (numbers and strings made from the constants), and None if the constants contain it."""
    others = _other_numbers(value)
    if isinstance(value, enum.Enum):
        others = list(type(value))
    elif type(value) is str:
        texts = [c for c in constants if isinstance(c, str)]
        others = [*texts, "another"] if texts else []
    elif type(value) in (int, float):
        numbers = [c for c in constants if type(c) in (int, type(value)) and abs(c) <= _LARGEST]
        others = [type(value)(n) for c in numbers for n in (c, c + 1)] or others
    nothing = [None] if None in constants and value is not None else []
    return [*(other for other in dict.fromkeys(others) if other != value), *nothing]


def _bound(call: RecordedCall, args: Args, kwargs: Kwargs) -> inspect.BoundArguments:
    """The arguments by name, also those left to their defaults; for a cell's statements, the values of the names they use."""
    if call.namespace is None:
        signature = inspect.signature(getattr(call.target, "forward", call.target))
    else:
        signature = inspect.Signature([inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in kwargs])
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    return bound


def _found(call: RecordedCall, args: Args, kwargs: Kwargs, names: set[str]) -> Iterator[tuple[dict[str, Any], str]]:
    for owner in Reachable([call.target, args, kwargs]).objects:
        held = owner.namespace if isinstance(owner, GlobalName) else owner if type(owner) is dict else attributes_of(owner)
        for name in sorted(names & {owner.name} if isinstance(owner, GlobalName) else names.intersection(held or ())):
            if held is not None and (type(held.get(name)) in _KINDS or isinstance(held.get(name), enum.Enum)):
                yield held, name


def _vary(call: RecordedCall, name: str, value: Any, namespaces: list[dict[str, Any]], args: Args, kwargs: Kwargs) -> Arguments:
    # a repeated call starts from the state that the recorded one left: with the same values, a lost store would not show
    args, kwargs = _vary_values(_tensors_held(call), _random, args, kwargs)
    for namespace in namespaces:  # a replay restores them
        if value is None or type(namespace.get(name)) is type(value):
            namespace[name] = value
    bound = _bound(call, args, kwargs)
    if name not in bound.arguments:
        return args, kwargs
    bound.arguments[name] = value
    return bound.args, bound.kwargs
