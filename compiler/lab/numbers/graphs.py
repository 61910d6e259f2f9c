"""Captures the graphs of a call with their inputs, and runs them again: eagerly, in float64 and compiled.

A graph can be asked for the values of its nodes, and for the gradients that flow into them.  Nothing of a run stays.
"""

from __future__ import annotations

import contextlib
import functools
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dynascope.compiler.capture.torch_private.float64 import followed_in_float64
from dynascope.compiler.capture.torch_private.running import device_types
from dynascope.compiler.lab.experiment import Observation
from dynascope.compiler.lab.fix.plan import Plan
from dynascope.compiler.lab.fix.trial import Trials
from dynascope.compiler.lab.fix.variations import recorded
from dynascope.compiler.lab.recorded_call import Clones, RecordedCall

#: at most this many graphs of a call are captured
MOST_GRAPHS = 100


@dataclass
class Measured:
    """One value, in eager mode, compiled, and in float64."""

    eager: Any
    compiled: Any
    exact: Any


@dataclass
class CapturedGraph:
    """A graph that Dynamo made of a call, and the inputs that it got; they are clones."""

    module: Any
    inputs: tuple[Any, ...]
    #: the gradient mode and autocast that it ran in
    modes: Callable[[], contextlib.AbstractContextManager[None]]

    def tappable(self) -> list[Any]:
        """The nodes whose values are floating-point tensors, in order."""
        import torch

        def has_digits(node: Any) -> bool:
            value = node.meta.get("example_value", node.meta.get("val"))
            return isinstance(value, torch.Tensor) and value.is_floating_point() and value.layout is torch.strided

        return [node for node in self.module.graph.nodes if node.op.startswith("call_") and has_digits(node)]

    def measure(
        self, compile: Callable[[Any], Callable[..., Any]], nodes: Sequence[Any] = (), *, backward: bool = False
    ) -> list[Measured]:
        """The values of these nodes, or the gradients that flow into them; without nodes, the graph's outputs and gradients.

        `compile`: compiles a module.
        """
        module = _tapped(self.module, nodes, backward) if nodes else self.module
        more = self._values(_tapped(self.module, nodes, False), [], nodes, False) if backward and nodes else []
        with followed_in_float64() as exact:
            mine = self._values(module, more, nodes, backward)
            counterparts = [exact.copy_of(value) for value in mine]
        mine = [None if value is None else value.detach().clone() for value in mine]
        others = self._values(compile(module), more, nodes, backward)
        return [Measured(*three) for three in zip(mine, others, counterparts, strict=True)]

    def with_formula(self, node: Any, function: Any, args: Any, keywords: Any) -> tuple[CapturedGraph, Any]:
        """A copy in which this function makes the node's value from the values of other nodes, and the new node."""
        import torch

        graph, copies = torch.fx.Graph(), dict[Any, Any]()
        graph.output(graph.graph_copy(self.module.graph, copies))
        with graph.inserting_before(copies[node]):
            new = graph.call_function(function, torch.fx.node.map_arg(args, copies.__getitem__), dict(keywords))
        new.meta = dict(node.meta)
        copies[node].replace_all_uses_with(new)
        return replace(self, module=torch.fx.GraphModule(self.module, graph)), new

    def _values(self, function: Any, more: list[Any], nodes: Sequence[Any], backward: bool) -> list[Any]:
        import torch

        clones = Clones()
        inputs = clones(self.inputs)
        probes = [torch.zeros_like(like, requires_grad=True) for like in more]
        with self.modes():
            result = function(*inputs, *probes)
            if nodes and not backward:
                return list(result[1])
            outputs = [value for value in _flat(result) if isinstance(value, torch.Tensor) and value.is_floating_point()]
            leaves = probes or [t for t in inputs if isinstance(t, torch.Tensor) and t.requires_grad and t.is_leaf]
            differentiable = [value for value in outputs if value.requires_grad]
            gradients: Sequence[Any] = [None] * len(leaves)
            if differentiable and leaves:
                generator = torch.Generator().manual_seed(0)
                directions = [torch.randn(v.shape, generator=generator).to(v) for v in differentiable]
                gradients = torch.autograd.grad(differentiable, leaves, directions, allow_unused=True)
        return list(gradients) if probes else [*outputs, *gradients]


def captured(call: RecordedCall, trials: Trials) -> tuple[list[CapturedGraph], Observation]:
    """The graphs of a call that Dynamo traces anew, in the order of their first runs, and what the call does with them."""
    graphs: list[CapturedGraph] = []

    def backend(module: Any, _: Any) -> Callable[..., Any]:
        is_new = True

        def run(*args: Any) -> Any:
            nonlocal is_new
            if is_new and len(graphs) < MOST_GRAPHS:
                graphs.append(CapturedGraph(module, Clones()(args), _modes()))
            is_new = False
            return module.forward(*args)

        return run

    with trials.compiled(Plan(), backend, strict=False) as run:
        return graphs, run(call, recorded())


def _modes() -> Callable[[], contextlib.AbstractContextManager[None]]:
    """The present gradient mode and autocast, to be entered again."""
    import torch

    has_gradients = torch.is_grad_enabled()
    casts = [(kind, torch.get_autocast_dtype(kind), torch.is_autocast_enabled(kind)) for kind in device_types()]

    @contextlib.contextmanager
    def entered() -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            stack.enter_context(torch.set_grad_enabled(has_gradients))
            for kind, dtype, is_on in casts:
                stack.enter_context(torch.autocast(kind, dtype=dtype, enabled=is_on))
            yield

    return entered


def _tapped(module: Any, nodes: Sequence[Any], backward: bool) -> Any:
    """A copy of a module that also returns the values of these nodes.

    With `backward`, further inputs are added to the values instead: if these are zeros, they get the gradients.
    """
    import torch

    graph = torch.fx.Graph()
    copies: dict[Any, Any] = {}
    result = graph.graph_copy(module.graph, copies)
    taps = []
    first = next(node for node in graph.nodes if node.op != "placeholder")
    for number, node in enumerate(nodes):
        copy = copies[node]
        if not backward:
            with graph.inserting_after(copy):
                taps.append(graph.call_function(torch.clone, (copy,)))
            continue
        with graph.inserting_before(first):
            probe = graph.placeholder(f"probe_{number}")
        with graph.inserting_after(copy):
            moved = graph.call_function(operator.add, (copy, probe))
        for user in [user for user in copy.users if user is not moved]:
            user.replace_input_with(copy, moved)
        result = torch.fx.node.map_arg(result, functools.partial(_replaced, copy, moved))
    graph.output(result if backward else (result, tuple(taps)))
    return torch.fx.GraphModule(module, graph)


def _replaced(old: Any, new: Any, node: Any) -> Any:
    return new if node is old else node


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, (tuple, list)):
        for inner in value:
            yield from _flat(inner)
    else:
        yield value
