"""Runs one captured graph again on its own: times it eagerly and compiled, and times each operation.

The report keeps neither tensors nor modules, so the graph is built from its text (`rebuild`) and its inputs from their
descriptions (`synthetic`).  "Eager" calls the graph operation by operation, as Python would; "compiled" is the backend's
result, without Dynamo's guards.  Both run alternately on the same data, on the recorded device, without the caller's torch
settings (`isolated`), and without gradients unless the graph itself takes derivatives with torch.func.  A run leaves behind
only entries in the backend's caches, torch's counters of compiles, and the side effects of operators from outside torch, which
the notes list.

The text has the name, function and arguments of every node, from which a node with the same name is made in a new
`torch.fx.Graph`.  Functions are looked up by name, so the text must come from this process, where the same operators are
registered.

An input has the recorded shape, dtype, stride and device, and what most graphs accept: floating-point numbers are drawn from
[0, 1), so they can be probabilities; booleans are mostly true; integers are 0, and so mostly valid as indices.  The numbers
come from a separate generator with a fixed seed, so they are always the same, and no other random state changes.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import functools
import math
import operator
import re
import statistics
import time
import types
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from dynascope.compiler.builder.graphs import parse_graph
from dynascope.compiler.capture.torch_private import config, hook_installer, running
from dynascope.compiler.capture.torch_private.tensors import OF_TORCH
from dynascope.compiler.lab import profile
from dynascope.compiler.lab.recorded_call import held_back_output, random_states
from dynascope.compiler.lab.slices import quartiles
from dynascope.compiler.report import ONLY_WHERE_RECORDED, Graph, GraphRun, Node, OpTime, Report, error_words, plural
from dynascope.compiler.settings import Settings
from dynascope.compiler.validate import check_settings


class NotRunnable(ValueError):
    """A graph cannot be run again; the message is one sentence that says why."""


#: key in a node's `meta` for its name in the report
RECORDED = "recorded"
#: prefix of the operators that call a Triton kernel of the program, which they name by its number in a table of torch's
_KERNELS = "triton_kernel_wrapper"
#: operators that wait for other processes
_DISTRIBUTED = re.compile(r"c10d|\bfsdp\b|symm_mem|\.distributed\.")
#: the modules after whose names FX prints an underscore for the dot, as in `math_sqrt`
_UNDERSCORED = re.compile(r"^_?(math|operator)_")
#: what a function's printed name is looked up in
_NAMES = types.SimpleNamespace(**vars(builtins) | {"torch": torch, "math": math, "operator": operator})


class _Key:
    def __getitem__(self, key: Any) -> Any:
        return key


def rebuild(text: str | ast.ClassDef, attributes: Mapping[str, Any] = {}, device: str | None = None) -> torch.fx.GraphModule:
    """Build a callable module from the text of a graph in a report (`Graph.code`); raises NotRunnable if that is impossible.

    `attributes`: the tensors that are attributes of the graph; `device`: in place of each one that the text names.
    """
    try:
        return _built(text, attributes, device)
    except NotRunnable:
        raise
    except Exception as error:
        raise NotRunnable(f"no graph can be built from its text: {error_words(error)}") from None


def _built(text: str | ast.ClassDef, attributes: Mapping[str, Any], device: str | None) -> torch.fx.GraphModule:
    parsed, graph, held = parse_graph(text), torch.fx.Graph(), dict[str, Any]()
    #: names that arguments may use: FX's constants, and the nodes so far
    names: dict[str, Any] = {
        "torch": torch, "inf": math.inf, "nan": math.nan, "NoneType": type(None), "Ellipsis": ..., "slice": slice,
        "device": torch.device if device is None else lambda *_, **__: torch.device(device), "_key": _Key(), "__builtins__": {},
    }  # fmt: skip

    def value(expression: ast.expr) -> Any:
        """Evaluate an argument: a node, a constant, or a tuple, list, dict or slice of arguments."""
        # evaluate it inside `_key[...]`, the only place where Python's syntax allows a slice
        key = ast.Expression(ast.Subscript(ast.Name("_key", ast.Load()), expression, ast.Load()))
        try:
            return eval(compile(ast.fix_missing_locations(key), "<graph>", "eval"), names)
        except Exception:
            raise NotRunnable(f"it has an argument that only the program could create: {ast.unparse(expression):.80}") from None

    for statement in parsed.statements:
        node, target = statement.node, statement.node.target
        args, kwargs = tuple(map(value, statement.args)), {name: value(given) for name, given in statement.kwargs.items()}
        if node.op in ("get_attr", "call_module") and target in parsed.inner:
            held[target] = _built(parsed.inner[target], {}, device)
        elif node.op == "call_module":
            raise NotRunnable(f"it calls the module {target}, whose parameters the report does not keep")
        elif node.op == "get_attr":
            if target not in attributes:
                raise NotRunnable(f"it uses the attribute {target}, which the report does not describe")
            held[target] = attributes[target]
        called = function(target) if node.op == "call_function" else target
        new = graph.create_node(node.op, called, args, kwargs, name=None if node.op == "output" else node.name)
        new.meta[RECORDED] = node.name
        names[node.name] = new
        if node.op == "placeholder":  # `l_x_ = L_x_`: the text uses the argument's name as well as the node's
            names[target] = new
    return torch.fx.GraphModule(held, graph)


def function(name: str) -> Callable[..., Any]:
    """The function that torch prints under this name; raises NotRunnable if it cannot be called."""
    if _DISTRIBUTED.search(name):
        raise NotRunnable(f"it calls {name}, which waits for other processes")
    if name.rpartition(".")[2].startswith(_KERNELS):
        raise NotRunnable("it calls a Triton kernel of the program, which the report does not keep")
    with contextlib.suppress(AttributeError):
        target = operator.attrgetter(_UNDERSCORED.sub(r"\1.", name))(_NAMES)
        if callable(target):
            return target  # type: ignore[no-any-return]
    raise NotRunnable(f"it calls {name}, which cannot be found by this name")


#: functions in the text of a size (sympy's names)
_FUNCTIONS: dict[str, Callable[..., Any]] = {"Max": max, "Min": min, "Mod": operator.mod, "FloorDiv": operator.floordiv}


def synthetic(sizes: Mapping[str, int | float], generator: torch.Generator, node: Node, device: str | None = None) -> Any:
    """A value like the one that was recorded for this input; raises NotRunnable if that is impossible.

    `sizes`: the values of the symbols in shapes; `device`: in place of the recorded one.
    """
    kind = node.subclass or node.dtype or "value that the report does not describe"
    if kind.startswith("Sym("):
        return size(kind.removeprefix("Sym(").removesuffix(")"), sizes, node.name)
    dtype = getattr(torch, kind, None)
    if node.shape is None or not isinstance(dtype, torch.dtype):
        raise NotRunnable(f"its input {node.name} is a {kind}, which cannot be synthesized")
    shape, stride = ([int(size(s, sizes, node.name)) for s in texts] for texts in (node.shape, node.stride or ()))
    is_strided = len(stride) == len(shape) and 0 not in shape
    try:
        reach = 1 + sum((n - 1) * s for n, s in zip(shape, stride, strict=True)) if is_strided else math.prod(shape)
        numbers = torch.rand(reach, generator=generator, dtype=torch.float32, device="cpu")
        if not (dtype.is_floating_point or dtype.is_complex or dtype is torch.bool):
            numbers.zero_()
        numbers = numbers.to(dtype).to(device or node.device or "cpu")
        return torch.as_strided(numbers, shape, stride) if is_strided else numbers.reshape(shape)
    except (RuntimeError, OverflowError, TypeError, ValueError) as error:  # e.g. out of memory, or no such tensor exists
        raise NotRunnable(f"its input {node.name} cannot be synthesized: {error_words(error)}"[:300]) from None


def size(text: int | str, sizes: Mapping[str, int | float], name: str) -> int | float:
    """The value of a size (`12`, `2*s0**2 + 1`, `Max(1, u0)`); raises NotRunnable if it is unknown."""
    if isinstance(text, (int, float)):
        return text
    try:
        value = eval(text, {"__builtins__": {}, **_FUNCTIONS}, dict(sizes))
        if isinstance(value, (int, float)):
            return value
    except Exception:
        pass
    raise NotRunnable(f"its input {name} has a size, {text}, whose value was not recorded")


CALLS = 10
#: number of calls before the first one that is timed
WARM_UP = 2
#: seconds that all timed calls of one kind, eager or compiled, may take
BUDGET = 10.0
#: number of calls that are timed even if they take longer, unless fewer are requested
FEWEST = 3
_BRANCHES = frozenset({"cond", "while_loop"})


def run_graph(graph: Graph, backend: str, calls: int = CALLS) -> GraphRun:
    """Run a graph that was recorded in this process; raises ValueError with one sentence if that is impossible."""
    if not isinstance(calls, int) or isinstance(calls, bool) or calls < 1:
        raise ValueError(f"calls must be a whole number of at least 1, not {calls!r}")
    check_settings(Settings(backend=backend))
    try:
        if graph.ops is None:
            raise NotRunnable("it was compiled before the recording, so its operations are not known")
        # isolate each attempt, because a graph that fails may leave modes entered; torch.func's derivatives need gradients
        # enabled
        with isolated(), torch.set_grad_enabled(_calls(graph, frozenset({"grad_increment_nesting"}))):
            return Case(graph).run(backend, calls)
    except NotRunnable as reason:
        raise NotRunnable(f"{graph.id} cannot be run again: {reason}") from reason.__cause__


def run_in_report(report: Report, id: str, *, backend: str | None, calls: int) -> GraphRun:
    """Run the graph with this id, and store the result in the graph (`Report.run_graph`)."""
    graph = report.graph(id)
    if report.from_file:
        raise ValueError(ONLY_WHERE_RECORDED)
    own = report.settings.get("backend")
    # Inductor if that one runs graphs eagerly, is a callable, or is not known here
    own = own if isinstance(own, str) and own in config.backends() and "eager" not in own else "inductor"
    run = run_graph(graph, backend or own, calls)
    if backend is None and (report.settings.get("mode") or report.settings.get("options")):
        run.notes.append("compiled with the backend's default mode and options, not with those of the run")
    graph.run = run
    return run


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
        contextlib.ExitStack() as restored,
    ):
        warnings.simplefilter("ignore")
        for state in random_states():
            restored.callback(state.restore)
        yield


class Case:
    """One graph with its inputs; `device`: in place of the one where it was recorded."""

    def __init__(self, graph: Graph, device: str | None = None) -> None:
        self.graph, self.notes = graph, list[str]()
        recorded_on = sorted({n.device for n in graph.nodes if n.device}, key=lambda name: name == "cpu")
        self.device = device or next(iter(recorded_on), "cpu")
        make = functools.partial(synthetic, graph.sizes, torch.Generator().manual_seed(0), device=device)
        recorded = {n.name: n for n in graph.nodes}
        self.attributes = {n.target: make(n) for n in graph.nodes if n.op == "get_attr" and n.dtype is not None}
        self.rebuild = functools.partial(rebuild, graph.code, self.attributes, device)
        self.module = self.rebuild()
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
            raise NotRunnable(f"when called once more, it raised {error_words(error)}") from error
        if result.calls < calls:
            self.notes.append(f"the graph is slow: only {plural(result.calls, 'call')} of each kind were timed, not {calls}")
        result.notes = [*self.caveats(), *self.notes]
        return result

    def check(self) -> None:
        """Call the graph once, to see whether synthetic inputs work and which tensors it changes in place."""
        if self.device != "cpu" and _has_integers(self.inputs):
            try:
                Case(self.graph, "cpu").check()
            except NotRunnable as error:
                if "index" in str(error).lower():  # on a GPU, a wrong index makes the process unusable
                    raise
        before = [(t, t._version, t.clone()) for t in [*self.inputs, *self.attributes.values()] if isinstance(t, torch.Tensor)]
        try:
            self.module(*self.inputs)
            self.wait()
        except Exception as error:
            raise NotRunnable(f"on synthetic data it raised {error_words(error)}") from None
        # the version counter shows most changes; comparing values shows the others, such as running statistics
        self.changed = [(t, copy) for t, version, copy in before if t._version != version or not torch.equal(t, copy)]

    def prepared(self, kind: Callable[..., Any]) -> Callable[[], Any]:
        """Restore the tensors that the graph changes, and return a function that calls `kind` with the inputs."""
        for tensor, copy in self.changed:
            tensor.copy_(copy)
        return functools.partial(kind, *self.inputs)

    def compile(self, backend: str) -> Callable[..., Any] | None:
        """Compile and run the graph with the backend; None, with a note, if that fails."""
        try:
            compiled = running.compiled_graph(backend, self.rebuild(), self.inputs)
            self.prepared(compiled)()
            self.wait()
        except Exception as error:
            self.notes.append(f"{backend} could not run the graph on its own: {error_words(error)}")
            return None
        return compiled

    def measure(self, backend: str, compiled: Callable[..., Any] | None, calls: int) -> GraphRun:
        """Time the eager calls, the compiled ones and each operation in turns."""
        kinds = [kind for kind in (self.module, compiled) if kind is not None]
        eager, fast = times = list[float](), list[float]()
        ops: dict[str, list[float]] = {}
        slowest = max(seconds for kind in kinds for seconds in self.timed_calls(kind, WARM_UP))
        for count in profile.turns(min(calls, max(FEWEST, int(BUDGET / max(slowest, 1e-9))))):
            for number, kind in enumerate(kinds):  # compiled calls are warmed up, as the CPU's caches hold data of eager calls
                times[number].extend(self.timed_calls(kind, count, warm_up=number))
            for _ in range(count):
                timed = _Timed(self.module, self.wait)
                self.prepared(timed.run)()
                for name, seconds in timed.operations:
                    ops.setdefault(name, []).append(seconds)
        result = GraphRun(
            device=self.device, device_name=profile.device_name(self.device), backend=backend, calls=len(eager),
            eager_seconds=statistics.median(eager), eager_spread=quartiles(eager),
            ops=[OpTime(node=name, seconds=statistics.median(seconds)) for name, seconds in ops.items()],
        )  # fmt: skip
        if compiled is not None:
            result.compiled_seconds, result.compiled_spread = statistics.median(fast), quartiles(fast)
            result.speed_up = result.eager_seconds / result.compiled_seconds
        return result

    def timed_calls(self, kind: Callable[..., Any], count: int, warm_up: int = 0) -> list[float]:
        return profile.timed_calls(iter(lambda: self.prepared(kind), None), self.wait, count, warm_up)

    def caveats(self) -> Iterator[str]:
        """Sentences on how far the figures can be trusted."""
        if _has_integers(self.inputs):
            yield "integer tensors are 0"
        if self.changed:
            yield f"the graph changes {plural(len(self.changed), 'tensor')} in place, restored before each call"
        if _calls(self.graph, _BRANCHES):
            yield "which branch the graph takes, or how often it loops, depends on the synthetic data"
        operators = [n.target for n in self.graph.nodes if n.target.startswith("torch.ops.") and n.target.count(".") > 2]
        foreign = sorted({name for name in operators if name.split(".")[2] not in OF_TORCH})
        if foreign:
            yield f"operators from outside torch ran again, with all their side effects: {', '.join(foreign)}"
        if self.graph.backward != "none":
            yield "the figures do not include the backward"


class _Timed(torch.fx.Interpreter):
    """Runs a graph, waiting for each operation; `operations` are the name and the seconds of each."""

    def __init__(self, module: torch.fx.GraphModule, wait: Callable[[], None]) -> None:
        super().__init__(module)
        self.wait, self.operations = wait, list[tuple[str, float]]()

    def run_node(self, n: torch.fx.Node) -> Any:
        if not n.op.startswith("call_"):
            return super().run_node(n)
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        call = functools.partial(getattr(self, n.op), n.target, args, kwargs)
        self.wait()
        start = time.perf_counter()
        result = call()
        self.wait()
        self.operations.append((str(n.meta[RECORDED]), time.perf_counter() - start))
        return result


def _has_integers(values: list[Any]) -> bool:
    dtypes = {v.dtype for v in values if isinstance(v, torch.Tensor)} - {torch.bool}
    return any(not (dtype.is_floating_point or dtype.is_complex) for dtype in dtypes)


def _calls(graph: Graph, names: frozenset[str]) -> bool:
    """Whether the graph calls one of these operations, as a function, a method or one of torch's operators."""
    return any(part.strip("_") in names for n in graph.nodes if n.op.startswith("call_") for part in str(n.target).split("."))
