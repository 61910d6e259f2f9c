"""`--check=where`: finds the operation at which compiled or eager code goes wrong.

The call is traced anew.  The first graph whose outputs are wrong is run with its recorded inputs so that it also returns the
values of its nodes: eagerly, in float64 and compiled.  Where all values are right, zeros are added to them, whose gradients
show which derivative is wrong.
"""

from __future__ import annotations

import linecache
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from dynascope.compiler.capture.torch_private import hook_installer
from dynascope.compiler.capture.torch_private.translators import graph_nodes
from dynascope.compiler.lab.comparison import largest
from dynascope.compiler.lab.fix.trial import TookTooLong, Trials, time_limit
from dynascope.compiler.lab.numbers import cause, graphs
from dynascope.compiler.lab.numbers.graphs import CapturedGraph, Compile, Measured, changes_in_place, first_wrong, value_of
from dynascope.compiler.lab.numbers.verdict import DRAWS, error_of, share_of, size_text
from dynascope.compiler.lab.recorded_call import RecordedCall
from dynascope.compiler.report import NodeNumbers, Numbers, NumbersOrigin, NumbersRemedy, label
from dynascope.compiler.settings import Settings
from dynascope.compiler.source.lines import CellResolver

#: at most this many nodes, and elements of their values, are looked at in one run
MOST_NODES, MOST_ELEMENTS = 150, 1 << 26
#: time limit of a search
SECONDS = 120.0


def locate(
    found: Numbers, call: RecordedCall, settings: Settings, cells: CellResolver | None, on_stage: Callable[[str], None]
) -> list[str]:
    """Search where compiled and eager code differ, what makes it, and what helps; returns sentences on what was found."""
    if found.verdict == "unknown" and found.why_not != DRAWS:
        return []
    search = _Search(found, call, settings, cells)
    with hook_installer.HOOKS.paused():
        try:
            with time_limit(SECONDS):
                if found.verdict not in ("rounding", "unknown"):
                    on_stage("searching where the numbers differ")
                    search.locate()
                on_stage("searching what makes the numbers differ, and what helps")
                search.explain()
        except TookTooLong:
            found.origin_unknown = found.origin_unknown or f"the search took more than {SECONDS:.0f} seconds"
    stage = "" if found.stage is None else f"It comes from {cause.stage_words(found.stage)}"
    if found.origin is not None and found.origin_unknown:
        stage = stage or f"What makes it is unknown: {found.origin_unknown}"
    helps = [_remedy_words(remedy) for remedy in found.remedies]
    return [f"check: {sentence}" for sentence in (words(found), stage, *helps) if sentence]


class _Search:
    def __init__(self, found: Numbers, call: RecordedCall, settings: Settings, cells: CellResolver | None) -> None:
        self.found, self.call, self.settings, self.cells = found, call, settings, cells
        self.trials, self.compile = Trials([call], settings, cells), cause.compiler_of(settings)
        self.unit = float(torch.finfo(getattr(torch, found.precision)).eps)
        #: the graph in which it begins
        self.graph: CapturedGraph | None = None

    def locate(self) -> None:
        """Set the graph, and `origin` or `origin_unknown`."""
        found = self.found
        graph = first_wrong(self.call, self.trials, self._is_wrong)
        if isinstance(graph, str):
            found.origin_unknown = graph
            return
        with self.trials.anew():
            found.origin = self._first(graph, "value") or self._first(graph, "gradient")
            if found.origin is None and self._is_wrong(graph):
                found.origin_unknown = f"graph {graph.number} is wrong, but no operation is seen to be if values are returned"
            elif found.origin is None:
                found.origin_unknown = "each graph is right with the inputs that it gets in eager mode"
                return
        self.graph = graph

    def explain(self) -> None:
        """Set `stage`, `issue` and `remedies`."""
        found, graph, settings = self.found, self.graph, self.settings
        # a setting with which compiled code is as wrong as eager code does not help
        if found.verdict == "compiled" or all(share_of(part.eager) <= math.sqrt(self.unit) for part in found.parts):
            found.remedies += cause.setting_that_helps(self.call, self.trials, settings.backend)
        if graph is None:
            return
        with self.trials.anew():
            # a stage is known only where the graph is right before it
            if found.verdict == "compiled" and not found.remedies and not self._is_wrong(graph, lambda module: module):
                found.stage = cause.stage_of(lambda compile: not self._is_wrong(graph, compile), settings)
                if isinstance(settings.backend, str):
                    found.issue = cause.issue_text(graph, found, settings.backend, self.unit)
            if found.origin is not None and not found.origin.is_backward:
                found.remedies += cause.formulas_that_help(graph, found.origin.node, self.compile)

    def _is_wrong(self, graph: CapturedGraph, compile: Compile | None = None) -> bool:
        return any(True for _ in self._wrong(graph.measure(compile or self.compile)))

    def _wrong(self, measured: list[Measured]) -> Iterator[int]:
        return (number for number, m in enumerate(measured) if m.is_wrong(self.found.verdict, self.unit))

    def _first(self, graph: CapturedGraph, asked: graphs.Asked) -> NumbersOrigin | None:
        """The first wrong node, in the order of the computation."""
        nodes = graph.tappable()
        left = nodes
        if asked == "gradient":
            left = [node for node in nodes[::-1] if value_of(node).is_floating_point() and not changes_in_place(node)]
        while left:
            size = max(1, sum(value_of(node).numel() for node in left))
            step = max(1, math.ceil(len(left) / MOST_NODES), math.ceil(size / MOST_ELEMENTS))
            chosen = left[step - 1 :: step]
            measured = graph.measure(self.compile, chosen, asked)
            wrong = next(self._wrong(measured), None)
            if wrong is None:
                return None
            if step == 1:
                before = chosen[:wrong]
                if asked == "value" and any(map(changes_in_place, before)):
                    again = graph.measure(self.compile, before, "later", chosen[wrong])
                    for changed in self._wrong(again):  # it was right when it was made
                        return self._origin(graph, before, again, changed, "later")
                return self._origin(graph, chosen, measured, wrong, asked)
            left = left[wrong * step : (wrong + 1) * step]
        return None

    def _origin(
        self, graph: CapturedGraph, nodes: Sequence[Any], measured: list[Measured], wrong: int, asked: graphs.Asked
    ) -> NumbersOrigin | None:
        known = {node.name: node for node in graph_nodes(graph.module.graph)}
        values = {node.name: m for node, m in zip(nodes, measured, strict=True) if all(value is not None for value in m)}
        errors = {name: (error_of(m.compiled, m.exact), error_of(m.eager, m.exact)) for name, m in values.items()}
        sizes = {name: largest(m.exact) for name, m in values.items()}
        node = nodes[wrong]
        is_backward = asked == "gradient"  # a gradient is the sum of what comes out of the derivatives of the users
        called = [known[n.name] for n in (node.users if is_backward else [node]) if n.op != "output"]
        if not called:
            return None  # the backend gives it to the graph's result
        culprit = called[0] if len(called) == 1 else known[node.name]
        operations = dict.fromkeys(n.target.removeprefix("operator.") for n in called)
        path = [
            NodeNumbers(node=name, file=known[name].file, line=known[name].line, compiled=share_of(mine), eager=share_of(other))
            for name, (mine, other) in errors.items()
        ]
        compiled, eager = errors[node.name]
        return NumbersOrigin(
            file=culprit.file, line=culprit.line, source=linecache.getline(culprit.file or "", culprit.line or 0).strip(),
            cell=self.cells(culprit.file) if self.cells is not None and culprit.file else None,
            operation=" or ".join(operations), node=culprit.name, graph=graph.number, run=graph.run,
            runs=graph.runs, is_backward=is_backward,
            is_later=asked == "later", compiled=compiled, eager=eager, result_size=sizes[node.name], path=path,
            inputs_size=max((sizes[n.name] for n in node.all_input_nodes if n.name in sizes), default=None),
        )  # fmt: skip


def words(found: Numbers) -> str:
    """Where it begins, as a sentence; "" if it was not searched."""
    origin = found.origin
    if origin is None:
        return f"Where it begins is unknown: {found.origin_unknown}" if found.origin_unknown else ""
    place = f"{label(origin.file or '', origin.cell)}:{origin.line}" if origin.file else "an unknown line"
    what = f"The error{' of the gradients' * origin.is_backward} begins"
    what += f" in run {origin.run + 1} of {origin.runs} of graph {origin.graph}," if origin.runs > 1 else ""
    mine, other = size_text(origin.eager), size_text(origin.compiled)
    start = f"{what} at {place}: `{origin.source or origin.operation}`"
    if found.verdict == "both":
        wrong = f"against float64, it is off by {mine} in eager and by {other} compiled"
        ratio = (origin.inputs_size or 0.0) / (origin.result_size or math.inf)
        if origin.operation in ("sub", "add", "isub", "iadd", "torch.sub", "torch.add", "sum", "torch.sum") and ratio > 100:
            verb = "adds" if "add" in origin.operation or "sum" in origin.operation else "subtracts"
            numbers = f"numbers of {_number(origin.inputs_size)} to get {_number(origin.result_size)}"
            return f"{start} {verb} {numbers} and loses digits; {wrong}"
        return f"{start} goes wrong in `{origin.operation}`; {wrong}"
    subject = f"the derivative of `{origin.operation}`" if origin.is_backward else f"`{origin.operation}`"
    subject += ", after another tensor is changed in place," if origin.is_later else ""
    if found.verdict == "eager":
        return f"{start}: with inputs that are right, {subject} is off by {mine} in eager (compiled: {other})"
    return f"{start}: with inputs that are right, {subject} is off by {other} compiled (eager: {mine})"


def _remedy_words(remedy: NumbersRemedy) -> str:
    if remedy.eager is None or remedy.compiled is None:
        return f"What helps, tried: with {remedy.change} they agree"
    errors = f"{size_text(remedy.eager)} in eager and {size_text(remedy.compiled)} compiled"
    return f"What helps, tried: `{remedy.change}` in its place is off by {errors}"


def _number(value: float | None) -> str:
    """A magnitude: `1e4`."""
    mantissa, _, exponent = f"{value or 0.0:.0e}".partition("e")
    return f"{mantissa}e{int(exponent)}"
