"""One captured graph, run again on its own: eager against compiled, operation by operation, with its memory peak.

The report keeps no tensor and no module, so the graph is made anew from its text (`rebuild`) and its inputs are made up from
their description (`made_up`).  "Eager" calls the graph operation by operation, as Python would; "compiled" is what the backend
makes of it, without Dynamo's guards around it.  Both get the same data, in turns, without gradients and without what the caller
has set (`surroundings`).  What stays is what the backend keeps in its caches, torch's counters of compiles, and what operators
from outside torch do beside their result, which the notes tell.  GPU paths have not yet run on a GPU.
"""

from __future__ import annotations

import contextlib
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from dynascope.compiler.graph_benchmark import operations
from dynascope.compiler.graph_benchmark.operations import NotRunnable
from dynascope.compiler.graph_benchmark.rebuild import RECORDED, rebuild
from dynascope.compiler.graph_benchmark.synthetic_inputs import MadeUp, limits
from dynascope.compiler.profile import timing
from dynascope.compiler.replay.replay import held_back, random_state
from dynascope.compiler.report import Graph, GraphRun, Node, plural
from dynascope.compiler.torch_private import config, hooks, profiling, surroundings

if TYPE_CHECKING:
    import torch
    import torch.fx

CALLS = 10
#: eager, compiled and single operations are timed in so many turns, for the load of the machine changes
ROUNDS = 5
#: calls before the first that counts
WARM_UP = 2
#: seconds for all timed calls of one kind; at least `FEWEST` are made
BUDGET = 10.0
FEWEST = 3
_BRANCHES = frozenset({"cond", "while_loop"})
#: what checks the numbers that it gets, on a GPU by ending the process
_CHECKED = frozenset({"bernoulli", "binary_cross_entropy", "multinomial", "poisson"})


def own_backend(settings: dict[str, Any]) -> str:
    """What compiles a graph where nothing is asked for: the run's own backend, or Inductor where that one only traces."""
    name = settings.get("backend")
    return name if isinstance(name, str) and name in config.backends() and "eager" not in name else "inductor"


def run_graph(graph: Graph, device: str | None, backend: str, calls: int = CALLS, own: bool = True) -> GraphRun:
    """Run it; raises NotRunnable or another ValueError, in one sentence, where that cannot be.

    `own`: whether the graph was recorded in this process, so that it may call the program's own operators.
    """
    from dynascope.compiler.settings import Settings
    from dynascope.compiler.validate import check_settings

    if not isinstance(calls, int) or isinstance(calls, bool) or calls < 1:
        raise ValueError(f"calls is a whole number of at least 1, not {calls!r}")
    check_settings(Settings(backend=backend, device=device))
    try:
        if graph.ops is None:
            raise NotRunnable("it was compiled before the recording, so nothing of it is known")
        try:
            return _run(graph, device, own, backend, calls, tame=False)
        except Unfit as unfit:
            with contextlib.suppress(NotRunnable):
                return _run(graph, device, own, backend, calls, tame=True)
            raise unfit from None
    except NotRunnable as reason:
        raise NotRunnable(f"{graph.id} cannot be run again: {reason}") from reason.__cause__


class Unfit(NotRunnable):
    """The graph fails with the data that was made up for it."""


def _run(graph: Graph, device: str | None, own: bool, backend: str, calls: int, *, tame: bool) -> GraphRun:
    import torch

    # once for each: a graph that fails may have left modes entered; derivatives of derivatives (torch.func) ask for gradients
    with _without_trace(), torch.set_grad_enabled(_calls(graph, frozenset({"grad_increment_nesting"}))):
        return _Case(graph, device, own, tame).run(backend, calls)


@contextlib.contextmanager
def _without_trace() -> Iterator[None]:
    """What the caller has set is not the graph's, and what the graph changes beside its inputs is put back."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(hooks.HOOKS.paused())
        stack.enter_context(surroundings.neutral())
        stack.enter_context(random_state())
        stack.enter_context(contextlib.redirect_stderr(held_back(sys.stderr)))  # torch.fx prints the traceback of each failure
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        stack.enter_context(timing.no_collection())
        yield


class _Case:
    """One graph with its inputs, on one device; `tame`: as for MadeUp."""

    def __init__(self, graph: Graph, device: str | None, own: bool, tame: bool = False) -> None:
        self.graph, self.own, self.tame = graph, own, tame
        self.recorded = {n.name: n for n in graph.nodes}
        self.device = _device(graph, device)
        self.moved = device
        self.notes: list[str] = []
        self.attributes: dict[str, Any] = {}
        import torch

        make = MadeUp(graph.sizes, {}, device, tame)

        def attribute(name: str) -> Any:
            node = next((n for n in graph.nodes if n.op == "get_attr" and n.target == name), None)
            if node is None or node.dtype is None:
                raise NotRunnable(f"it keeps {name}, which the report does not describe")
            if name not in self.attributes:
                self.attributes[name] = make(node)
            return self.attributes[name]

        self.rebuild: Callable[[], torch.fx.GraphModule] = lambda: rebuild(graph.code, attribute, device, own)
        self.module = self.rebuild()
        torch.set_default_dtype(_default_dtype(self.module.graph, self.recorded))
        make.limits = limits(self.module.graph, self.recorded, graph.sizes)
        names = [n.meta[RECORDED] for n in self.module.graph.nodes if n.op == "placeholder"]
        self.inputs = [make(self.recorded[name]) for name in names]
        self.changed: list[tuple[torch.Tensor, torch.Tensor]] = []
        self.wait = timing.waiter(self.device)

    # -- running -----------------------------------------------------------------------------------------------

    def run(self, backend: str, calls: int) -> GraphRun:
        self.first()
        compiled = self.compiled(backend)
        try:
            result = self.measured(backend, compiled, calls)
        except Exception as error:
            raise NotRunnable(f"called once more it raised {_said(error)}") from error
        if result.calls < calls:
            self.notes.append(f"it is slow: {plural(result.calls, 'call')} of each kind were timed, not {calls}")
        result.notes = [*self.told(), *self.notes]
        return result

    def measured(self, backend: str, compiled: Callable[..., Any] | None, calls: int) -> GraphRun:
        eager_times, compiled_times, ops = self.measure(compiled, calls)
        result = GraphRun(
            device=self.device, device_name=timing.device_name(self.device), backend=backend, calls=len(eager_times),
            eager_seconds=statistics.median(eager_times), eager_spread=timing.middle_half(eager_times),
            ops=[{"node": name, "seconds": statistics.median(taken)} for name, taken in ops.items()],
        )  # fmt: skip
        result.eager_peak_bytes = self.peak(self.module)
        if compiled is not None:
            result.compiled_seconds = statistics.median(compiled_times)
            result.compiled_spread = timing.middle_half(compiled_times)
            result.speed_up = result.eager_seconds / result.compiled_seconds
            # a CUDA graph keeps its memory between the calls, in a pool of its own
            result.compiled_peak_bytes = self.peak(compiled) if backend != "cudagraphs" else None
        return result

    def first(self) -> None:
        """The first call tells whether made-up data will do, and which inputs the graph changes."""
        import torch

        if self.device != "cpu" and (_has_integers(self.inputs) or _calls(self.graph, _CHECKED)):
            _dry_run(self.graph, self.own, self.tame)
        before = [(t, t._version, t.clone()) for t in [*self.inputs, *self.attributes.values()] if isinstance(t, torch.Tensor)]
        try:
            self.module(*self.inputs)
            self.wait()
        except Exception as error:
            raise Unfit(f"on made-up data it raised {_said(error)}") from None
        # the version tells of most changes, and the numbers of all others: running statistics
        self.changed = [(t, copy) for t, version, copy in before if t._version != version or not torch.equal(t, copy)]
        self.put_back()

    def put_back(self) -> None:
        for tensor, copy in self.changed:
            tensor.copy_(copy)

    def compiled(self, backend: str) -> Callable[..., Any] | None:
        """What the backend makes of the graph; None, with a note, where it cannot."""
        made: Callable[..., Any] | None = None
        try:
            made = surroundings.compiled_graph(backend, self.rebuild(), self.inputs)
            made(*self.inputs)
            self.wait()
        except Exception as error:
            self.notes.append(f"{backend} could not compile the graph on its own: {_said(error)}")
            made = None
        self.put_back()
        return made

    def measure(
        self, compiled: Callable[..., Any] | None, calls: int
    ) -> tuple[list[float], list[float], dict[str, list[float]]]:
        """Seconds of the eager calls, of the compiled ones, and of each operation."""
        eager_times: list[float] = []
        compiled_times: list[float] = []
        ops: dict[str, list[float]] = {}
        kinds: list[Callable[..., Any]] = [self.module] if compiled is None else [self.module, compiled]
        slowest = max(self.call(kind) for kind in kinds for _ in range(WARM_UP))
        calls = min(calls, max(FEWEST, int(BUDGET / max(slowest, 1e-9))))
        rounds = min(ROUNDS, calls)
        for number in range(rounds):
            many = calls // rounds + (number < calls % rounds)
            eager_times += [self.call(self.module) for _ in range(many)]
            if compiled is not None:
                self.call(compiled)  # the caches of the processor are the other kind's
                compiled_times += [self.call(compiled) for _ in range(many)]
            for _ in range(many):
                for name, taken in self.by_operation():
                    ops.setdefault(name, []).append(taken)
        return eager_times, compiled_times, ops

    def call(self, kind: Callable[..., Any]) -> float:
        taken = timing.timed(lambda: kind(*self.inputs), self.wait)
        self.put_back()
        return taken

    def by_operation(self) -> list[tuple[str, float]]:
        taken = _Clock(self.module, self.wait).run(*self.inputs)
        self.put_back()
        return taken

    def peak(self, kind: Callable[..., Any]) -> int | None:
        if profiling.profiler_is_on():  # a second one would end it
            note = "the memory peak is unknown: a profiler of the program's own is on"
            self.notes += [note] * (note not in self.notes)
            return None
        found = timing.peak_bytes(lambda: kind(*self.inputs), self.device)
        self.put_back()
        return found

    # -- telling -----------------------------------------------------------------------------------------------

    def told(self) -> Iterator[str]:
        """What the reader has to know to trust the figures."""
        if self.moved is not None and {n.device for n in self.graph.nodes if n.device} - {self.moved}:
            yield f"recorded on {', '.join(sorted({n.device for n in self.graph.nodes if n.device}))}, run on {self.moved}"
        if self.tame:
            yield "it fails on numbers from N(0, 1): floats are between 0 and 1, square matrices positive definite"
        if self.changed:
            yield f"the graph changes {plural(len(self.changed), 'tensor')} in place: put back before each call"
        if _calls(self.graph, _BRANCHES):
            yield "which branch it takes, or how often it loops, depends on the made-up data"
        own = sorted({str(n.target) for n in self.graph.nodes if operations.is_own(str(n.target))})
        if own:
            yield f"operators from outside torch ran again, with all that they do beside their result: {', '.join(own)}"
        if self.graph.backward != "none":
            yield "its backward is not in these figures: it runs without gradients"


class _Clock:
    """Runs a graph node by node and tells how long each operation took; on an accelerator each is waited for."""

    def __init__(self, module: torch.fx.GraphModule, wait: Callable[[], None]) -> None:
        import torch.fx

        taken: list[tuple[str, float]] = []

        class Interpreter(torch.fx.Interpreter):
            def run_node(self, n: torch.fx.Node) -> Any:
                if not n.op.startswith("call_"):
                    return super().run_node(n)
                args, kwargs = self.fetch_args_kwargs_from_env(n)
                function = getattr(self, n.op)
                wait()
                start = time.perf_counter()
                result = function(n.target, args, kwargs)
                wait()
                taken.append((str(n.meta[RECORDED]), time.perf_counter() - start))
                return result

        self.taken, self.interpreter = taken, Interpreter(module)

    def run(self, *inputs: Any) -> list[tuple[str, float]]:
        self.interpreter.run(*inputs)
        return self.taken


def _device(graph: Graph, asked: str | None) -> str:
    """Where the graph will run: where it was asked for, or where it was recorded; raises NotRunnable."""
    from dynascope.compiler.settings import Settings
    from dynascope.compiler.validate import check_settings

    recorded = sorted({n.device for n in graph.nodes if n.device}, key=lambda name: name == "cpu")
    device = asked or next(iter(recorded), "cpu")
    if device == "meta":
        raise NotRunnable("on the device meta there is nothing to time")
    try:
        check_settings(Settings(device=device))
    except ValueError:
        raise NotRunnable(f"it was recorded on {device}, which is not here: name another device, for example cpu") from None
    return device


def _dry_run(graph: Graph, own: bool, tame: bool = False) -> None:
    """The graph on the CPU, once; raises Unfit where a GPU would end the process: an index too large, no probability."""
    try:
        _Case(graph, "cpu", own, tame).first()
    except Unfit as error:
        if "index" in str(error).lower() or _calls(graph, _CHECKED):
            raise


def _default_dtype(graph: torch.fx.Graph, recorded: Mapping[str, Node]) -> torch.dtype:
    """The default dtype of the program that was recorded: what its tensors were made in where no dtype is said."""
    import torch

    for node in graph.nodes:
        said = any(isinstance(v, torch.dtype) for v in [*node.args, *node.kwargs.values()])
        known = recorded.get(node.meta.get(RECORDED, ""))
        made = node.op == "call_function" and not node.all_input_nodes and not said
        if made and known is not None and known.dtype in ("float64", "float16", "bfloat16"):
            found: torch.dtype = getattr(torch, known.dtype)
            return found
    return torch.float32


def _has_integers(values: list[Any]) -> bool:
    import torch

    dtypes = {v.dtype for v in values if isinstance(v, torch.Tensor)} - {torch.bool}
    return any(not (dtype.is_floating_point or dtype.is_complex) for dtype in dtypes)


def _calls(graph: Graph, names: frozenset[str]) -> bool:
    """Whether one of these operations is among the graph's: a function, a method, or torch's operator."""
    return any(part.strip("_") in names for n in graph.nodes if n.op.startswith("call_") for part in str(n.target).split("."))


def _said(error: BaseException) -> str:
    """The error in one line."""
    first = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {first}"[:300].rstrip(": ")
