"""Captures the graphs of a call with their inputs, and runs them again: eagerly, in float64 and compiled.

A graph can be asked for the values of its nodes, and for the gradients that flow into them.  Nothing of a run stays.
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import torch

from dynascope.compiler.capture.torch_private.float64 import followed_in_float64
from dynascope.compiler.capture.torch_private.running import present_modes
from dynascope.compiler.lab.fix.plan import Plan
from dynascope.compiler.lab.fix.trial import Trials
from dynascope.compiler.lab.fix.variations import RECORDED, has_fractions
from dynascope.compiler.lab.numbers.verdict import error_of, judged
from dynascope.compiler.lab.recorded_call import Clones, RecordedCall

#: what can be asked of a node: its value when it was made, its value later, or the gradient that flows into it
Asked = Literal["value", "later", "gradient"]
#: compiles a module
Compile = Callable[[Any], Callable[..., Any]]
#: a function, its arguments, among them nodes, and its keywords
Formula = tuple[Any, tuple[Any, ...], dict[str, Any]]


class Measured(NamedTuple):
    """One value, in eager mode, compiled, and in float64."""

    eager: Any
    compiled: Any
    exact: Any

    def is_wrong(self, verdict: str, unit: float) -> bool:
        """Whether the value has the fault of the call, or its digits are lost in the precision of the call.

        Where one of the two never stores an intermediate result, such as one that overflows, both lose it once it is returned.
        """
        if self.exact is None or self.eager is None or self.compiled is None:
            return False
        is_other = self.compiled.dtype != self.eager.dtype
        if is_other or not has_fractions(self.eager):
            return verdict == "compiled" and (is_other or not torch.equal(self.compiled, self.eager))
        compiled, eager = (error_of(value, self.exact) for value in (self.compiled, self.eager))
        own = float(torch.finfo(self.eager.dtype).eps)
        return judged(compiled, eager, None, own) == verdict or judged(compiled, eager, None, unit) == "both"


@dataclass
class CapturedGraph:
    """A graph that Dynamo made of a call, and the inputs that it got in one of its runs; they are clones."""

    module: Any
    inputs: tuple[Any, ...]
    #: the gradient mode and autocast that it ran in
    modes: Callable[[], contextlib.AbstractContextManager[None]]
    #: number of the graph in the order of first runs, and of the run of this graph, from 0
    number: int
    run: int
    #: how many runs this graph has
    runs: int = 1

    def tappable(self) -> list[Any]:
        """The nodes whose values are tensors, in order."""
        called = [node for node in self.module.graph.nodes if node.op.startswith("call_")]
        return [node for node in called if _is_plain(value_of(node))]

    def measure(self, compile: Compile, nodes: Sequence[Any] = (), asked: Asked = "value", later: Any = None) -> list[Measured]:
        """What is asked of these nodes; without nodes, the graph's outputs and gradients.

        `later`: the node before which values are asked for, if not when they are made.
        """
        module = _tapped(self.module, nodes, asked, later) if nodes else self.module
        like = self._values(_tapped(self.module, nodes, "value"), [], True) if nodes and asked == "gradient" else []
        is_tapped = bool(nodes) and asked != "gradient"
        with followed_in_float64() as exact:
            mine = self._values(module, like, is_tapped)
            # float64 has the integers and truth values of eager code
            counterparts = [exact.copy_of(value) if value is None or has_fractions(value) else value.double() for value in mine]
        mine = [None if value is None else value.detach().clone() for value in mine]
        others = self._values(compile(module), like, is_tapped)
        return [Measured(*three) for three in zip(mine, others, counterparts, strict=True)]

    def cut(self, node: Any, formula: Formula | None = None) -> CapturedGraph:
        """The part of the graph that computes the value of this node, or, with a formula, another one from the same nodes."""
        graph, copies = torch.fx.Graph(), dict[Any, Any]()
        for other in self.module.graph.nodes:
            if other is node and formula is not None:
                function, args, keywords = formula
                copies[node] = graph.call_function(function, torch.fx.node.map_arg(args, copies.__getitem__), dict(keywords))
            # what comes after the node is left out, but for the ends of what was entered before
            elif node not in copies or (_name_of(other) == "_exit_autocast" and other.args[0] in copies):
                copies[other] = graph.node_copy(other, copies.__getitem__)
        graph.output((copies[node],))
        return replace(self, module=torch.fx.GraphModule(self.module, graph))

    def alone(self, node: Any) -> CapturedGraph:
        """A graph that computes this node's value from its inputs, as they are in eager mode; None for one that is unknown."""
        known = dict(zip((n for n in self.module.graph.nodes if n.op == "placeholder"), self.inputs, strict=True))
        inner = [other for other in self.tappable() if other in node.all_input_nodes]
        if inner:
            known |= zip(inner, self._values(_tapped(self.module, inner, "value"), [], True), strict=True)
        graph = torch.fx.Graph()
        copies = {other: graph.placeholder(other.name) for other in node.all_input_nodes}
        graph.output((graph.node_copy(node, copies.__getitem__),))
        return replace(self, module=torch.fx.GraphModule({}, graph), inputs=tuple(map(known.get, copies)))

    def _values(self, function: Any, like: list[Any], is_tapped: bool) -> list[Any]:
        inputs, nodes = Clones()(self.inputs), self.module.graph.nodes
        probes = [torch.zeros_like(value, requires_grad=True) for value in like]
        with self.modes():
            result = function(*inputs, *probes)
            if is_tapped:
                return list(result[1])
            changed = [t.detach() for t in inputs if isinstance(t, torch.Tensor)] if any(map(changes_in_place, nodes)) else []
            outputs = list[Any]()
            torch.fx.node.map_aggregate(result, outputs.append)
            outputs = [t for t in (*outputs, *changed) if _is_plain(t)]
            leaves = probes or [t for t in inputs if isinstance(t, torch.Tensor) and t.requires_grad and t.is_leaf]
            differentiable = [value for value in outputs if value.requires_grad]
            gradients: Sequence[Any] = [None] * len(leaves)
            if differentiable and leaves:
                generator = torch.Generator().manual_seed(0)
                directions = [torch.randn(v.shape, generator=generator).to(v) for v in differentiable]
                gradients = torch.autograd.grad(differentiable, leaves, directions, allow_unused=True)
        return list(gradients) if probes else [*outputs, *gradients]


def value_of(node: Any) -> Any:
    """What Dynamo knows of a node's value: a tensor without data, for example."""
    return node.meta.get("example_value", node.meta.get("val"))


def _is_plain(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.layout is torch.strided and not value.is_nested


def _plain(value: Any) -> Any:
    """The tensor of a parameter, which a graph may change in place: parameters are not cloned."""
    return value.detach().requires_grad_(value.requires_grad) if isinstance(value, torch.nn.Parameter) else value


def first_wrong(call: RecordedCall, trials: Trials, is_wrong: Callable[[CapturedGraph], bool]) -> CapturedGraph | str:
    """The first run of a graph that is wrong, of a call that Dynamo traces anew, or why there is none.

    What comes last is wrong if nothing before it is: it is not looked at.  Graphs run in eager mode, so a fault is in one run.
    """
    found: list[CapturedGraph] = []
    last: list[CapturedGraph] = []
    runs: dict[Any, int] = {}

    def backend(module: Any, _: Any) -> Callable[..., Any]:
        def run(*args: Any) -> Any:
            runs[module] = runs.get(module, 0) + 1
            if not found:
                if last and is_wrong(last[0]):
                    found.append(last[0])
                number = list(runs).index(module)
                last[:] = [CapturedGraph(module, Clones()(tuple(map(_plain, args))), present_modes(), number, runs[module] - 1)]
            return module.forward(*args)

        return run

    with trials.anew(), trials.compiled(Plan(), backend, strict=False) as run:
        error = run(call, RECORDED).error_type
    if error is not None and not found:
        return f"traced again, the call raised {error}"
    if not last:
        return "traced again, the call runs no graph"
    graph = (found or last)[0]
    return replace(graph, runs=runs[graph.module])


def _tapped(module: Any, nodes: Sequence[Any], asked: Asked, later: Any = None) -> Any:
    """A copy of a module that also returns the values of these nodes; of one that changes a tensor in place, the whole tensor.

    Gradients: further inputs are added to the values instead; if these are zeros, they get the gradients.
    """
    graph, copies, owners, taps = torch.fx.Graph(), dict[Any, Any](), dict[int, Any](), list[Any]()
    output = graph.output(graph.graph_copy(module.graph, copies))
    first = next(node for node in graph.nodes if node.op != "placeholder")
    for node in module.graph.nodes:
        value = node.meta.get("example_value")
        if isinstance(value, torch.Tensor) and value.layout is torch.strided:
            owners.setdefault(value.untyped_storage()._cdata, node)
    for number, node in enumerate(nodes):
        copy = copies[node]
        if asked == "gradient":
            with graph.inserting_before(first):
                probe = graph.placeholder(f"probe_{number}")
            with graph.inserting_after(copy):
                moved = graph.call_function(operator.add, (copy, probe))
            copy.replace_all_uses_with(moved)
            moved.args = (copy, probe)
        else:
            changed = owners.get(node.meta["example_value"].untyped_storage()._cdata) if changes_in_place(node) else None
            with graph.inserting_before(copies[later]) if asked == "later" else graph.inserting_after(copy):
                taps.append(graph.call_function(torch.clone, (copies[changed or node],)))
    if asked != "gradient":
        output.args = ((output.args[0], tuple(taps)),)
    return torch.fx.GraphModule(module, graph)


def changes_in_place(node: Any) -> bool:
    name = _name_of(node) if node.op.startswith("call_") else ""
    return name.endswith("_") or name in ("setitem", "iadd", "isub", "imul", "itruediv")


def _name_of(node: Any) -> str:
    return str(getattr(node.target, "__name__", node.target))
