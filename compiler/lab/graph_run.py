"""Runs one captured graph again on its own: times it eagerly and compiled, times each operation, and measures peak memory.

The report keeps neither tensors nor modules, so the graph is built from its text (`rebuild`) and its inputs from their
descriptions (`synthetic_inputs`).  "Eager" calls the graph operation by operation, as Python would; "compiled" is the backend's
result, without Dynamo's guards.  Both run alternately on the same data, without the caller's torch settings (`isolated_run`),
and without gradients unless the graph itself takes derivatives with torch.func.  A run leaves behind only entries in the
backend's caches, torch's counters of compiles, and the side effects of operators from outside torch, which the notes list.  The
code for GPUs has not yet run on a GPU.
"""

from __future__ import annotations

import contextlib
import functools
import statistics
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from dynascope.compiler.capture.torch_private import config, hook_installer, running
from dynascope.compiler.lab import profile
from dynascope.compiler.lab.graph_rebuild import (
    RECORDED,
    NotRunnable,
    SyntheticInputs,
    is_from_outside_torch,
    rebuild,
)
from dynascope.compiler.lab.segments import quartiles
from dynascope.compiler.lab.snapshot import held_back_output, random_states
from dynascope.compiler.report import ONLY_WHERE_RECORDED, Graph, GraphRun, Node, OpTime, Report, first_line, plural
from dynascope.compiler.settings import Settings
from dynascope.compiler.validate import check_settings

if TYPE_CHECKING:
    import torch
    import torch.fx

CALLS = 10
#: number of calls before the first one that is timed
WARM_UP = 2
#: seconds that all timed calls of one kind, eager or compiled, may take
BUDGET = 10.0
#: number of calls that are timed even if they take longer, unless fewer are requested
FEWEST = 3
#: "Device Type" of the CPU in the profiler's memory events; other devices have higher numbers
_CPU = 0
_BRANCHES = frozenset({"cond", "while_loop"})
#: operations that check the values of their inputs; on a GPU, a failed check makes the process unusable
_CHECKED = frozenset({"bernoulli", "binary_cross_entropy", "multinomial", "poisson"})


class SyntheticInputError(NotRunnable):
    """The graph fails on synthetic inputs."""


def default_backend(settings: Mapping[str, Any]) -> str:
    """The backend of the recorded run; "inductor" if that backend runs graphs eagerly, is a callable, or is not known here."""
    name = settings.get("backend")
    return name if isinstance(name, str) and name in config.backends() and "eager" not in name else "inductor"


def run_graph(graph: Graph, device: str | None, backend: str, calls: int = CALLS) -> GraphRun:
    """Run a graph that was recorded in this process; raises ValueError with one sentence if that is impossible."""
    if not isinstance(calls, int) or isinstance(calls, bool) or calls < 1:
        raise ValueError(f"calls must be a whole number of at least 1, not {calls!r}")
    check_settings(Settings(backend=backend, device=device))
    try:
        if graph.ops is None:
            raise NotRunnable("it was compiled before the recording, so its operations are not known")
        try:
            return _run(graph, device, backend, calls, well_conditioned=False)
        except SyntheticInputError as error:
            with contextlib.suppress(NotRunnable):
                return _run(graph, device, backend, calls, well_conditioned=True)
            raise error from None
    except NotRunnable as reason:
        raise NotRunnable(f"{graph.id} cannot be run again: {reason}") from reason.__cause__


def run_in_report(report: Report, id: str, *, device: str | None, backend: str | None, calls: int) -> GraphRun:
    """Run the graph with this id, and store the result in the graph (`Report.run_graph`)."""
    graph = report.graph(id)
    if report.from_file:
        raise ValueError(ONLY_WHERE_RECORDED)
    run = run_graph(graph, device, backend or default_backend(report.settings), calls)
    if backend is None and (report.settings.get("mode") or report.settings.get("options")):
        run.notes.append("compiled with the backend's default mode and options, not with those of the run")
    graph.run = run
    return run


def _run(graph: Graph, device: str | None, backend: str, calls: int, *, well_conditioned: bool) -> GraphRun:
    import torch

    # isolate each attempt, because a graph that fails may leave modes entered; torch.func's derivatives need gradients enabled
    with isolated(), torch.set_grad_enabled(_calls(graph, frozenset({"grad_increment_nesting"}))):
        return Case(graph, device, well_conditioned).run(backend, calls)


@contextlib.contextmanager
def isolated() -> Iterator[None]:
    """Run without the caller's settings, and restore the global state that the graph changes."""
    # torch.fx prints the traceback of each failure
    with (
        hook_installer.HOOKS.paused(),
        running.neutral(),
        held_back_output(),
        warnings.catch_warnings(),
        profile.no_collection(),
    ):
        warnings.simplefilter("ignore")
        drawn = random_states()
        try:
            yield
        finally:
            for state in drawn:
                state.restore()


class Case:
    """One graph with its inputs, on `device` (None: where it was recorded); `well_conditioned` is for SyntheticInputs."""

    def __init__(self, graph: Graph, device: str | None, well_conditioned: bool = False) -> None:
        import torch

        self.graph, self.well_conditioned = graph, well_conditioned
        self.device, self.moved_to = _device(graph, device), device
        self.notes: list[str] = []
        self.attributes: dict[str, Any] = {}
        recorded = {n.name: n for n in graph.nodes}
        make = SyntheticInputs(graph.sizes, device, well_conditioned)

        def attribute(name: str) -> Any:
            node = next((n for n in graph.nodes if n.op == "get_attr" and n.target == name), None)
            if node is None or node.dtype is None:
                raise NotRunnable(f"it uses the attribute {name}, which the report does not describe")
            if name not in self.attributes:
                self.attributes[name] = make(node)
            return self.attributes[name]

        self.rebuild: Callable[[], torch.fx.GraphModule] = lambda: rebuild(graph.code, attribute, device)
        self.module = self.rebuild()
        torch.set_default_dtype(_default_dtype(self.module.graph, recorded))
        self.inputs = [make(recorded[n.meta[RECORDED]]) for n in self.module.graph.nodes if n.op == "placeholder"]
        #: the tensors that the graph changes in place, each with a copy of its original values
        self.changed: list[tuple[torch.Tensor, torch.Tensor]] = []
        self.wait = profile.waiter(self.device)

    def run(self, backend: str, calls: int) -> GraphRun:
        self.check()
        compiled = self.compile(backend)
        try:
            result = self.measure(backend, compiled, calls)
        except Exception as error:
            raise NotRunnable(f"when called once more, it raised {_one_line(error)}") from error
        if result.calls < calls:
            self.notes.append(f"the graph is slow: only {plural(result.calls, 'call')} of each kind were timed, not {calls}")
        result.notes = [*self.caveats(), *self.notes]
        return result

    def check(self) -> None:
        """Call the graph once, to see whether synthetic inputs work and which tensors it changes in place."""
        import torch

        if self.device != "cpu" and (_has_integers(self.inputs) or _calls(self.graph, _CHECKED)):
            _dry_run(self.graph, self.well_conditioned)
        before = [(t, t._version, t.clone()) for t in [*self.inputs, *self.attributes.values()] if isinstance(t, torch.Tensor)]
        try:
            self.module(*self.inputs)
            self.wait()
        except Exception as error:
            raise SyntheticInputError(f"on synthetic data it raised {_one_line(error)}") from None
        # the version counter shows most changes; comparing values shows the others, such as running statistics
        self.changed = [(t, copy) for t, version, copy in before if t._version != version or not torch.equal(t, copy)]

    def prepared(self, kind: Callable[..., Any]) -> Callable[[], Any]:
        """Restore the tensors that the graph changes, and return a function that calls `kind` with the inputs."""
        for tensor, copy in self.changed:
            tensor.copy_(copy)
        return functools.partial(kind, *self.inputs)

    def compile(self, backend: str) -> Callable[..., Any] | None:
        """Compile the graph with the backend; None, with a note, if that fails."""
        try:
            compiled = running.compiled_graph(backend, self.rebuild(), self.inputs)
            self.prepared(compiled)()
            self.wait()
        except Exception as error:
            self.notes.append(f"{backend} could not compile the graph on its own: {_one_line(error)}")
            return None
        return compiled

    def measure(self, backend: str, compiled: Callable[..., Any] | None, calls: int) -> GraphRun:
        """Time the eager calls, the compiled ones and each operation in turns, then measure the memory peaks."""
        eager_times: list[float] = []
        compiled_times: list[float] = []
        ops: dict[str, list[float]] = {}
        kinds = [kind for kind in (self.module, compiled) if kind is not None]
        slowest = max(seconds for kind in kinds for seconds in self.timed_calls(kind, WARM_UP))
        for count in profile.turns(min(calls, max(FEWEST, int(BUDGET / max(slowest, 1e-9))))):
            eager_times += self.timed_calls(self.module, count)
            if compiled is not None:  # one warm-up call, because the CPU's caches hold data of the eager calls
                compiled_times += self.timed_calls(compiled, count, warm_up=1)
            for _ in range(count):
                for name, seconds in self.prepared(_operation_timer(self.module, self.wait))():
                    ops.setdefault(name, []).append(seconds)
        result = GraphRun(
            device=self.device, device_name=profile.device_name(self.device), backend=backend, calls=len(eager_times),
            eager_seconds=statistics.median(eager_times), eager_spread=quartiles(eager_times),
            ops=[OpTime(node=name, seconds=statistics.median(times)) for name, times in ops.items()],
            eager_peak_bytes=self.peak(self.module),
        )  # fmt: skip
        if compiled is not None:
            result.compiled_seconds = statistics.median(compiled_times)
            result.compiled_spread = quartiles(compiled_times)
            result.speed_up = result.eager_seconds / result.compiled_seconds
            # a CUDA graph keeps its memory between calls, in its own pool
            result.compiled_peak_bytes = self.peak(compiled) if backend != "cudagraphs" else None
        return result

    def timed_calls(self, kind: Callable[..., Any], count: int, warm_up: int = 0) -> list[float]:
        return profile.timed_calls(iter(lambda: self.prepared(kind), None), self.wait, count, warm_up)

    def peak(self, kind: Callable[..., Any]) -> int | None:
        if running.profiler_is_on():  # starting a second profiler would stop the program's
            note = "the memory peak is unknown: the program runs a profiler, and a second one would stop it"
            self.notes += [note] * (note not in self.notes)
            return None
        return _peak_bytes(self.prepared(kind), self.device)

    def caveats(self) -> Iterator[str]:
        """Sentences on how far the figures can be trusted."""
        devices = sorted({n.device for n in self.graph.nodes if n.device})
        if self.moved_to is not None and set(devices) - {self.moved_to}:
            yield f"recorded on {', '.join(devices)}, run on {self.moved_to}"
        if self.well_conditioned:
            yield (
                "the graph fails on numbers from N(0, 1): floats are between 0 and 1, square matrices positive definite, "
                "integers 0"
            )
        elif _has_integers(self.inputs):
            yield "integers are 0 or 1: looking them up in a large table takes less time than with others"
        if self.changed:
            yield f"the graph changes {plural(len(self.changed), 'tensor')} in place, restored before each call"
        if _calls(self.graph, _BRANCHES):
            yield "which branch the graph takes, or how often it loops, depends on the synthetic data"
        foreign = sorted({str(n.target) for n in self.graph.nodes if is_from_outside_torch(str(n.target))})
        if foreign:
            yield f"operators from outside torch ran again, with all their side effects: {', '.join(foreign)}"
        if self.graph.backward != "none":
            yield "the figures do not include the backward: the graph runs without gradients"


def _operation_timer(module: torch.fx.GraphModule, wait: Callable[[], None]) -> Callable[..., list[tuple[str, float]]]:
    """A function that runs the graph, waiting for each operation, and returns the name and the seconds of each."""
    import torch.fx

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
            operations.append((str(n.meta[RECORDED]), time.perf_counter() - start))
            return result

    def run(*inputs: Any) -> list[tuple[str, float]]:
        interpreter.run(*inputs)
        return operations

    operations: list[tuple[str, float]] = []
    interpreter = Interpreter(module)
    return run


def _device(graph: Graph, requested: str | None) -> str:
    """The device to run on: the requested one, or else the recorded one (the CPU only if there is no other).

    Raises NotRunnable if the device is not available.
    """
    recorded = sorted({n.device for n in graph.nodes if n.device}, key=lambda name: name == "cpu")
    device = requested or next(iter(recorded), "cpu")
    if device == "meta":
        raise NotRunnable("nothing runs on the device meta")
    try:
        check_settings(Settings(device=device))
    except ValueError:
        raise NotRunnable(
            f"it was recorded on {device}, which is not available here: name another device, such as cpu"
        ) from None
    return device


def _dry_run(graph: Graph, well_conditioned: bool = False) -> None:
    """Run the graph on the CPU; raises SyntheticInputError for a bad index or probability, which would be fatal on a GPU."""
    try:
        Case(graph, "cpu", well_conditioned).check()
    except SyntheticInputError as error:
        if "index" in str(error).lower() or _calls(graph, _CHECKED):
            raise


def _default_dtype(graph: torch.fx.Graph, recorded: Mapping[str, Node]) -> torch.dtype:
    """The default dtype of the recorded program, inferred from a tensor that it created without a dtype; else float32."""
    import torch

    for node in graph.nodes:
        named = any(isinstance(v, torch.dtype) for v in [*node.args, *node.kwargs.values()])
        known = recorded.get(node.meta.get(RECORDED, ""))
        makes_tensor = node.op == "call_function" and not node.all_input_nodes and not named
        if makes_tensor and known is not None and known.dtype in ("float64", "float16", "bfloat16"):
            dtype: torch.dtype = getattr(torch, known.dtype)
            return dtype
    return torch.float32


def _has_integers(values: list[Any]) -> bool:
    import torch

    dtypes = {v.dtype for v in values if isinstance(v, torch.Tensor)} - {torch.bool}
    return any(not (dtype.is_floating_point or dtype.is_complex) for dtype in dtypes)


def _calls(graph: Graph, names: frozenset[str]) -> bool:
    """Whether the graph calls one of these operations, as a function, a method or one of torch's operators."""
    return any(part.strip("_") in names for n in graph.nodes if n.op.startswith("call_") for part in str(n.target).split("."))


def _one_line(error: BaseException) -> str:
    """The class of the error and the first line of its message, cut to 300 characters."""
    return f"{type(error).__name__}: {first_line(str(error))}"[:300].rstrip(": ")


def _peak_bytes(call: Callable[[], Any], device: str) -> int | None:
    """The most bytes that torch's allocators for this device held during a call, beyond those held before it.

    Read from the memory events of torch.profiler, so that torch's memory statistics, which belong to the user, need no reset.
    What a library allocates itself (scratch space for a matrix product) is not counted.  None if there are no memory events.
    """
    import torch

    kind = torch.device(device).type
    with profile.profiled([kind] if kind in ("cuda", "xpu") else [], memory=True) as trace:
        result = call()
    del result
    return _highest(trace.get("traceEvents", []), on_cpu=kind == "cpu")


def _highest(events: list[dict[str, Any]], on_cpu: bool) -> int | None:
    """The highest running sum of allocations and frees on the CPU, or on all other devices; None without such events."""
    memory = [e for e in events if e.get("name") == "[memory]" and "Bytes" in e.get("args", {})]
    mine = [e for e in memory if (e["args"].get("Device Type") == _CPU) == on_cpu]
    held = most = 0
    for event in sorted(mine, key=lambda e: (float(e["ts"]), e["args"].get("Ev Idx", 0))):
        held += int(event["args"]["Bytes"])
        most = max(most, held)
    return most if mine else None
