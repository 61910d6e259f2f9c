"""Measures what compiling a repeated block of a captured graph only once would save.

The graph is compiled in three ways: as it is, with the block as a region, and block by block.  A region is a subgraph that
`invoke_subgraph` calls, as in a trace of `torch.compiler.nested_compile_region`: the backend compiles it once.  Block by block
is regional compilation: only the first block is compiled, all blocks run its code, and the rest runs eagerly.  All compiles are
from scratch, without the caller's settings and without gradients, on synthetic data.  What Dynamo would save is not measured.
"""

from __future__ import annotations

import operator
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dynascope.compiler.assembly.compile_time.repeats import operations
from dynascope.compiler.graph_benchmark.benchmark import Case, default_backend, isolated
from dynascope.compiler.graph_benchmark.rebuild import NotRunnable
from dynascope.compiler.report import ONLY_WHERE_RECORDED, RegionTrial, RepeatedBlock, Report
from dynascope.compiler.torch_private import config, isolated_run

if TYPE_CHECKING:
    import torch.fx


def try_region(report: Report, id: str, backend: str | None) -> RegionTrial:
    """Time the three compiles of the graph with this id, and store the result in its repeated block (`Report.try_region`)."""
    graph = report.graph(id)
    if report.from_file:
        raise ValueError(ONLY_WHERE_RECORDED)
    blocks = report.compile_time.repeats if report.compile_time is not None else []
    block = next((b for b in blocks if b.graphs == [id]), None)
    if block is None:
        raise ValueError(f"no block of operations repeats in {id}")
    backend = backend or default_backend(report.settings)
    try:
        with isolated():
            import torch

            with torch.no_grad():
                case = Case(graph, None)
                start = [n.name for n in operations(graph)].index(block.first_node or "")

                def region() -> torch.fx.GraphModule:
                    return with_region(case.rebuild(), start, block)  # a new one each time: a backend may change the module

                def whole(module: torch.fx.GraphModule) -> float:
                    return _seconds(backend, lambda: isolated_run.compiled_graph(backend, module, case.inputs)(*case.inputs))

                whole(region())  # not timed: it includes what a process does only once, such as looking for a C++ compiler
                trial = RegionTrial(backend=backend, seconds=whole(case.rebuild()), region_seconds=whole(region()))
                each = block_by_block(region(), backend)
                trial.blocks_seconds = _seconds(backend, lambda: each(*case.inputs))
    except NotRunnable as reason:
        raise NotRunnable(f"{id} cannot be compiled again: {reason}") from reason.__cause__
    block.trial = trial
    return trial


def _seconds(backend: str, first_call: Callable[[], Any]) -> float:
    """Seconds of a first call, which compiles."""
    failed: Exception | None = None
    with config.from_scratch():  # let no exception leave the block: torch would then keep the caches that it made on disk
        start = time.perf_counter()
        try:
            first_call()
        except Exception as error:
            failed = error
        seconds = time.perf_counter() - start
    if failed is not None:
        raise NotRunnable(f"{backend} could not compile it: {type(failed).__name__}") from failed
    return seconds


def with_region(module: torch.fx.GraphModule, start: int, block: RepeatedBlock) -> torch.fx.GraphModule:
    """The module with each repetition ("turn") of the block as a call of one graph.

    `start`: index of the block's first operation among all operations.  Raises NotRunnable if the turns are connected in
    different ways.
    """
    import torch
    import torch.fx

    nodes = list(module.graph.nodes)
    calls = [n for n in nodes if n.op.startswith("call_")]
    turns = [calls[at : at + block.ops] for at in range(start, start + block.count * block.ops, block.ops)]
    inputs = [_from_outside(turn) for turn in turns]
    if len({_wiring(turn, given) for turn, given in zip(turns, inputs, strict=True)}) > 1:
        raise NotRunnable("the blocks are not connected in the same way")
    results = sorted({i for turn in turns for i, n in enumerate(turn) if any(u not in set(turn) for u in n.users)})
    inner = torch.fx.Graph()
    within: dict[torch.fx.Node, torch.fx.Node] = {n: inner.placeholder(f"x{i}") for i, n in enumerate(inputs[0])}
    for node in turns[0]:
        within[node] = inner.node_copy(node, lambda n: within[n])
    inner.output(tuple(within[turns[0][i]] for i in results))

    outer = torch.fx.Graph()
    attributes = {n.target: getattr(module, n.target) for n in nodes if n.op in ("get_attr", "call_module")}
    attributes["region_0"] = torch.fx.GraphModule(attributes, inner)
    new: dict[torch.fx.Node, torch.fx.Node] = {
        n: outer.node_copy(n, lambda n: new[n]) for n in nodes if n.op in ("placeholder", "get_attr")
    }  # fmt: skip
    region = outer.get_attr("region_0")
    first = {turn[0]: number for number, turn in enumerate(turns)}
    inside = {n for turn in turns for n in turn}
    for node in nodes:
        if node in first:
            turn, given = turns[first[node]], inputs[first[node]]
            target: Any = torch.ops.higher_order.invoke_subgraph
            made = outer.call_function(target, (region, "region_0", *(new[n] for n in given)))
            for number, i in enumerate(results):
                new[turn[i]] = outer.call_function(operator.getitem, (made, number))
        elif node not in inside and node not in new:
            new[node] = outer.node_copy(node, lambda n: new[n])
    return torch.fx.GraphModule(attributes, outer)


def block_by_block(module: torch.fx.GraphModule, backend: str) -> torch.fx.GraphModule:
    """Change a module that `with_region` made: the region's first call compiles it, and all calls run the compiled code."""
    import torch

    made: list[Callable[..., Any]] = []

    def block(region: torch.fx.GraphModule, name: str, *inputs: Any) -> Any:
        if not made:
            made.append(isolated_run.compiled_graph(backend, region, list(inputs)))
        return made[0](*inputs)

    for node in module.graph.nodes:
        if node.target == torch.ops.higher_order.invoke_subgraph:
            node.target = block
    module.recompile()
    return module


def _from_outside(turn: list[torch.fx.Node]) -> list[torch.fx.Node]:
    """The values that a turn reads from outside it, in the order of their first use."""
    inside = set(turn)
    return list(dict.fromkeys(n for node in turn for n in node.all_input_nodes if n not in inside))


def _wiring(turn: list[torch.fx.Node], given: list[torch.fx.Node]) -> str:
    """The calls of a turn as text; a value is named by its position in the turn or among the values from outside."""
    import torch.fx

    names = {n: f"i{i}" for i, n in enumerate(given)} | {n: f"n{i}" for i, n in enumerate(turn)}
    return "\n".join(
        repr((n.op, str(n.target), torch.fx.map_arg((n.args, tuple(n.kwargs.items())), lambda a: names[a]))) for n in turn
    )
