"""Reads and sets the private state of tensors and custom operators, and watches operations as they run.

`RunCounts` counts what a call runs in graphs and outside; `followed_precisions` finds the precision that values have passed
through.

Under autocast, a float32 loss comes out of bfloat16 products: compiled code, which fuses operations, rounds them in other
places than eager code.
"""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from dynascope.compiler.capture.torch_private import caches, if_present, note_missing


def version_of(tensor: Any) -> int | None:
    """Autograd's counter of in-place changes of a tensor; None for an inference tensor, which has no counter."""
    return None if tensor.is_inference() else getattr(tensor, "_version", None)


def set_version(tensor: Any, version: int | None) -> None:
    """Set the version to one that `version_of` returned; does nothing for None."""
    if version is None:
        return
    try:
        from torch._C._autograd import _unsafe_set_version_counter

        _unsafe_set_version_counter((tensor,), (version,))
    except (ImportError, TypeError) as error:
        note_missing("versions of tensors", str(error))


def hooks_of(tensor: Any) -> tuple[dict[int, Any], ...]:
    """The dicts in which torch keeps a tensor's backward hooks; empty if it never had any."""
    groups = (getattr(tensor, name, None) for name in ("_backward_hooks", "_post_accumulate_grad_hooks"))
    return tuple(hooks for hooks in groups if hooks is not None)


def mark_dynamic(tensor: Any, dimension: int) -> None:
    """Mark a size of a copied tensor as dynamic; the marks that the copy shares with the original are copied first."""
    marks = {name: value for name, value in vars(tensor).items() if name.startswith(("_dynamo_", "_specialize_on"))}
    vars(tensor).update({name: value.copy() for name, value in marks.items() if isinstance(value, (set, dict))})
    with if_present("marks of dynamic sizes"):
        torch._dynamo.mark_dynamic(tensor, dimension)


class Precisions:
    """The lowest precision, a dtype, that values have passed through; None: no floating point, or not followed."""

    def __init__(self) -> None:
        #: by storage
        self._lowest: dict[int, Any] = {}
        #: the lowest of all
        self.lowest: Any = None

    def of(self, value: Any) -> Any:
        """The lowest precision on the way to a tensor, or, for any other value, to any tensor."""
        return _lower(value.dtype, self._lowest.get(_storage(value))) if isinstance(value, torch.Tensor) else self.lowest

    def follow(self, function: Any, args: Any, kwargs: Any) -> Any:
        """Run one operation."""
        before = {_storage(tensor): self.of(tensor) for tensor in tensors_in((args, kwargs))}
        result = function(*args, **kwargs)
        for tensor in tensors_in(((args, kwargs) if function._schema.is_mutable else _running(function, args, kwargs), result)):
            self._lowest.pop(_storage(tensor), None)  # it may be a new storage at the address of an old one
            self._lowest[_storage(tensor)] = lowest = _lower(self.of(tensor), *before.values())
            self.lowest = _lower(self.lowest, lowest)
        return result


def _running(function: Any, args: Any, kwargs: Any) -> list[Any]:
    """The running statistics that an operation gets: normalizations change them, though their schemas do not say so."""
    names = [argument.name for argument in function._schema.arguments]
    return [value for name, value in [*zip(names, args, strict=False), *kwargs.items()] if name.startswith("running_")]


@contextlib.contextmanager
def followed_precisions() -> Iterator[Precisions]:
    """Follow all operations in the block; they may be computed in another way than otherwise."""
    precisions = Precisions()
    with each_operation("precisions", precisions.follow):
        yield precisions


@contextlib.contextmanager
def each_operation(what: str, run: Callable[[Any, Any, Any], Any], *, in_compiled_code: bool = False) -> Iterator[None]:
    """Run each operation of the block with `run(operation, args, kwargs)`; `what` names this in `report.hooks` if it fails.

    Under such a mode torch uses no compiled code, unless `in_compiled_code`.
    """
    with contextlib.ExitStack() as stack:
        with if_present(what):
            from torch.utils._python_dispatch import TorchDispatchMode

            class Mode(TorchDispatchMode):
                #: otherwise compiled code raises an exception at `torch.cond` and its like; counting needs no more of them
                supports_higher_order_operators = in_compiled_code

                @classmethod
                def is_infra_mode(cls) -> bool:
                    return in_compiled_code

                def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                    return run(func, args, kwargs or {})

            stack.enter_context(Mode())  # type: ignore[no-untyped-call]
        yield


#: the kinds of devices that a process can use no more after a wrong index, or a false assertion, in one of these operations
LOST = ("cuda",)
_MAY_LOSE = re.compile(
    r"^_?(index|gather|scatter|masked_scatter|take|put|embedding(?!.*backward)|nll_loss\w*forward|multinomial|bernoulli"
    r"|binary_cross_entropy|multi\w*_margin_loss|max_unpool|assert_async)"
)


def may_lose_a_device() -> bool:
    """Whether the process has used a device of such a kind."""
    return any(getattr(torch, kind).is_initialized() for kind in LOST)


def checked_operations() -> contextlib.AbstractContextManager[None]:
    """In the block, run such operations on copies on the CPU first: what is wrong there raises an exception."""

    def copied(value: Any) -> Any:
        if isinstance(value, (tuple, list)):
            return [copied(inner) for inner in value]
        if isinstance(value, torch.Generator):
            return None  # the CPU has its own
        return value.detach().cpu() if isinstance(value, torch.Tensor) else value

    def run(operation: Any, args: Any, kwargs: Any) -> Any:
        if _MAY_LOSE.search(operation.__name__) and any(t.device.type in LOST for t in tensors_in((args, kwargs))):
            with torch.random.fork_rng(devices=[]), contextlib.suppress(NotImplementedError):  # a dtype that the CPU lacks
                operation(*copied(args), **{name: copied(value) for name, value in kwargs.items()})
        return operation(*args, **kwargs)

    if not may_lose_a_device():
        return contextlib.nullcontext()
    return each_operation("checked operations", run, in_compiled_code=True)


class RunCounts:
    """Counts how often calls enter a graph of its `backend`, and how many operations they run outside of graphs.

    While `in_a_row` is set, each call is made four times, and what the fourth one compiles is noted: calls may go on to
    compile that, as they guard what they change.  A size that grows has become dynamic by then, after up to three calls.
    """

    def __init__(self, also: Callable[[Any, Any], Any] | None = None) -> None:
        """`also`: a backend that traces graphs with symbols, too: it may add guards, or make Dynamo trace again without one."""
        self._also = also
        #: graphs that this backend compiled; code that the program compiles itself, with a backend of its own, is not counted
        self.graphs = 0
        self.graph_runs = self.eager_ops = 0
        #: as `latest_compiles` gives them
        self.compiled_again: list[tuple[str, str, str]] = []
        self.is_counting = self.in_a_row = False
        self._inside = 0

    def backend(self, graph: Any, inputs: Any) -> Any:
        """The backend "eager", counted."""
        values = (node.meta.get("example_value") for node in graph.graph.nodes)
        if self._also is not None and any(isinstance(value, (torch.SymInt, torch.SymFloat)) for value in values):
            self._also(graph, inputs)
        self.graphs += 1

        def run(*args: Any) -> Any:
            self.graph_runs += self.is_counting
            self._inside += 1
            try:
                return graph.forward(*args)
            finally:
                self._inside -= 1

        return run

    def around(self, entry: Any) -> Any:
        """Wrap what was compiled with this backend, so that its calls are counted while `is_counting` is set."""

        def counted(*args: Any, **kwargs: Any) -> Any:
            with contextlib.ExitStack() as stack:
                if self.is_counting:
                    stack.enter_context(each_operation("counting operations", self._count, in_compiled_code=True))
                for _ in range(3 * self.in_a_row):
                    entry(*args, **kwargs)
                before = caches.compiles()
                result = entry(*args, **kwargs)
                if self.in_a_row and (again := caches.compiles() - before) > 0:
                    self.compiled_again += caches.latest_compiles(again)
                return result

        return counted

    def _count(self, operation: Any, args: Any, kwargs: Any) -> Any:
        # what only wraps a number in a tensor computes nothing: this backend has it for each dynamic float
        self.eager_ops += not self._inside and operation is not torch.ops.aten.lift_fresh.default
        return operation(*args, **kwargs)


def tensors_in(values: Any) -> Iterator[Any]:
    """The tensors among the arguments, or in the result, of an operation."""
    if isinstance(values, torch.Tensor):
        yield values
    elif isinstance(values, (tuple, list, dict)):
        for value in values.values() if isinstance(values, dict) else values:
            yield from tensors_in(value)


def _storage(tensor: Any) -> int:
    try:
        return int(tensor.untyped_storage().data_ptr())
    except (RuntimeError, NotImplementedError):  # sparse, for example
        return id(tensor)


def _lower(*dtypes: Any) -> Any:
    """The dtype with the largest rounding error among those with floating point; None if there is none."""
    known = [dtype for dtype in dtypes if dtype is not None and (dtype.is_floating_point or dtype.is_complex)]
    return max(known, key=lambda dtype: torch.finfo(dtype).eps, default=None)


#: namespaces of the operators that come with torch
OF_TORCH = frozenset((
    "aten", "prim", "prims", "higher_order", "_native", "sparse", "profiler", "export", "onnx", "static_runtime", "streams",
    "quantized", "_quantized", "quantization", "quantized_decomposed", "mkldnn", "mkldnn_prepacked", "mkl", "onednn",
    "inductor", "inductor_prims", "rngprims", "debugprims", "debug_mode_ops", "flex_lib", "torch_attn", "c10d",
    "c10d_functional", "_c10d_functional", "_c10d_functional_autograd", "symm_mem", "fsdp", "_dtensor",
))  # fmt: skip


def namespaces(names: Iterable[str]) -> list[str]:
    """The names among these that are `torch.ops` namespaces with operators from outside torch."""
    spaces = vars(sys.modules["torch.ops"]) if "torch.ops" in sys.modules else {}
    return [n for n in sorted(set(names) - OF_TORCH) if type(spaces.get(n)).__name__ == "_OpNamespace"]


def python_function(value: Any) -> Any:
    """The function from which `torch.library.custom_op` made an operator; None for any other object."""
    kind = type(value)
    is_operator = (kind.__module__, kind.__name__) == ("torch._library.custom_ops", "CustomOpDef")
    return vars(value).get("_init_fn") if is_operator else None


def unregister(value: Any) -> None:
    """Remove an operator that `torch.library.custom_op` made; does nothing for any other object."""
    if python_function(value) is None:
        return
    with if_present("removing a custom operator"):
        vars(value)["_lib"]._destroy()
        sys.modules["torch._library.custom_ops"].OPDEF_TO_LIB.pop(value._qualname, None)
