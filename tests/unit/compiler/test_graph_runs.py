"""A captured graph run again on its own: the same operations, on made-up data, without a trace; or one clear sentence."""

from __future__ import annotations

import contextlib
import gc
import json
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from example_counts import some
from observed import loaded, seen
from programs import PROGRAMS
from torch.utils.checkpoint import checkpoint

from dynascope.compiler.builder import graphs
from dynascope.compiler.capture.torch_private.tensors import RunCounts
from dynascope.compiler.driver import explain
from dynascope.compiler.lab import graph_run, profile
from dynascope.compiler.lab.graph_run import RECORDED, NotRunnable, function, rebuild, size, synthetic
from dynascope.compiler.report import Graph, GraphRun, Node, Report

X, W = torch.linspace(-1, 1, 12).reshape(3, 4), torch.linspace(0, 1, 16).reshape(4, 4)


class Kept:
    """A backend that keeps what it is given: the witness for what the text gives back."""

    def __init__(self) -> None:
        self.graphs: list[tuple[torch.fx.GraphModule, list[Any]]] = []

    def __call__(self, module: torch.fx.GraphModule, inputs: list[Any]) -> Callable[..., Any]:
        def run(*args: Any) -> Any:
            self.graphs.append((module, [a.clone() if isinstance(a, torch.Tensor) else a for a in args]))
            return module.forward(*args)

        return run


def test_a_graph_is_timed_on_its_own_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second GPU is not the current one."""
    waited: list[Any] = []
    monkeypatch.setattr(torch.accelerator, "synchronize", waited.append)
    for device in ("cpu", "cuda:1"):
        profile.waiter(device)()
    assert waited == ["cuda:1"]


def arithmetic(x: torch.Tensor) -> Any:
    y = -x @ W + 2 * x**2 - x // 3 % 2
    y += 1
    y[0] = 7.5
    y[..., 1:3] *= float("inf")
    return y, y.T > 0, ~(y == y), y.to(torch.float16), torch.full((2,), 1 + 2j), x.max(dim=0), torch.split(x, [1, 2])


def branches(x: torch.Tensor) -> torch.Tensor:
    return torch.cond(x.sum() > 0, lambda x: x.sin() + 1, lambda x: x.cos(), (x,))


def test_a_run_of_a_graph_with_a_condition_is_counted() -> None:
    for counted in (branches, torch.nn.BatchNorm1d(X.shape[1]).eval()):  # whose eps is wrapped in a tensor
        counts = RunCounts()
        call = counts.around(torch.compile(counted, backend=counts.backend, dynamic=True))
        call(X)
        counts.is_counting = True
        call(X)
        assert (counts.graph_runs, counts.eager_ops) == (1, 0)


def checkpointed(x: torch.Tensor) -> torch.Tensor:
    return checkpoint(lambda y: torch.relu(y @ W), x, use_reentrant=False) + 1


def autocast(x: torch.Tensor) -> torch.Tensor:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return x @ W


def mapped(x: torch.Tensor) -> torch.Tensor:
    return torch.vmap(lambda row: row.sin() @ row)(x)


def without_gradients(x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        y = x * 2
    return y.sum() + x.view(x.shape[1], -1).sum()


def noisy(x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.dropout(x + torch.randn(4), 0.5)


def gradient(x: torch.Tensor) -> torch.Tensor:
    return torch.func.grad(lambda y: (y**2).sum())(x)  # type: ignore[no-any-return]


def inference(x: torch.Tensor) -> torch.Tensor:
    with torch.inference_mode():
        return x * 2


FUNCTIONS = [inference, arithmetic, branches, checkpointed, autocast, mapped, without_gradients, noisy, gradient]


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_what_is_rebuilt_does_the_same_as_what_the_backend_got(function: Callable[..., Any], dynamic: bool) -> None:
    kept = Kept()
    report = explain(function, backend=kept, dynamic=dynamic)(X.clone().requires_grad_(function is checkpointed))
    assert len(kept.graphs) == len(report.graphs) == 1
    module, inputs = kept.graphs[0]
    again = rebuild(report.graphs[0].code)
    results = []
    for graph in (module, again):
        torch.manual_seed(0)
        results.append(graph(*[i.clone() if isinstance(i, torch.Tensor) else i for i in inputs]))
    torch.testing.assert_close(*results, rtol=0, atol=0, equal_nan=True)
    wanted = [n for n in report.graphs[0].nodes if n.op.startswith("call_")]
    assert [n.meta[RECORDED] for n in again.graph.nodes if n.op.startswith("call_")] == [n.name for n in wanted]


@pytest.mark.parametrize("program", some(PROGRAMS, 3), ids=lambda p: p.name)
def test_every_graph_of_the_programs_runs_or_says_why_not(program: Any) -> None:
    from dynascope.compiler.compiling import compile as compile_with_flag

    def compiled(function: Any) -> Any:
        return compile_with_flag(function, backend="eager", **program.options)

    report = seen(lambda: loaded(f"graphs_of_{program.name}", program.text("@compiled"), torch=torch, compiled=compiled))
    for graph in report.graphs:
        if program.name == "nonstrict_trace_takes_what_breaks":  # its function is the program's own object
            why = r"uses the attribute wave_(callable|spec), which the report does not describe$"
            with pytest.raises(NotRunnable, match=why):
                graph_run.run_graph(graph, "eager", 1)
            continue
        run = graph_run.run_graph(graph, "eager", 1)
        assert [op.node for op in run.ops] == [n.name for n in graph.nodes if n.op.startswith("call_")]
        assert run.notes == [
            f"operators from outside torch ran again, with all their side effects: {n.target}"
            for n in graph.nodes
            if "dynascope_tests" in n.target
        ]


def two_layers() -> tuple[torch.nn.Module, torch.Tensor]:
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 8)), torch.ones(4, 8)


def test_the_figures_of_a_run() -> None:
    module, x = two_layers()
    report = explain(module, backend="eager")(x)
    run = report.run_graph("g0", backend="aot_eager", calls=4)
    assert run is report.graphs[0].run
    assert (run.device, run.backend, run.calls) == ("cpu", "aot_eager", 4)
    assert run.device_name == f"CPU, {torch.get_num_threads()} thread{'s' * (torch.get_num_threads() != 1)}"
    assert run.speed_up == run.eager_seconds / run.compiled_seconds
    assert run.eager_spread[0] <= run.eager_seconds <= run.eager_spread[1]
    assert len(run.ops) == report.graphs[0].ops == 3
    assert all(op.seconds > 0 for op in run.ops)
    assert Report.from_dict(json.loads(json.dumps(report.to_dict()))).graphs[0].run == run


# -- made-up data ------------------------------------------------------------------------------------------------


def made(**facts: Any) -> Any:
    node = Node(name="x", op="placeholder", target="x", device="cpu", **facts)
    return synthetic({"s0": 3}, torch.Generator().manual_seed(0), node)


@pytest.mark.parametrize(
    "name", ["float32", "float16", "bfloat16", "float64", "complex64", "int64", "uint8", "bool", "float8_e5m2"]
)
def test_made_up_data_is_as_described_and_always_the_same(name: str) -> None:
    state = torch.random.get_rng_state()
    first, second = (made(dtype=name, shape=[2, "s0"], stride=["2*s0", 2]) for _ in range(2))
    assert (first.shape, first.stride(), first.dtype) == ((2, 3), (6, 2), getattr(torch, name))
    assert torch.equal(first.to(torch.complex64), second.to(torch.complex64))
    assert torch.equal(torch.random.get_rng_state(), state)
    if not first.dtype.is_floating_point and not first.dtype.is_complex:
        assert set(first.flatten().tolist()) <= ({0, 1} if name == "bool" else {0})


def test_sizes_are_computed_or_refused_by_name() -> None:
    known = {"2*s0 + 1": 11, "s0*s1**2": 45, "Max(1, s0, s1)": 5, "Min(s0, 3)//2": 1, "Mod(s0, s1)": 2, "-s0": -5}
    assert {text: size(text, {"s0": 5, "s1": 3}, "x") for text in known} == known
    for text in ("u0", "__import__('os')", "2*", "max(1, s0)", "Max()", "s0/0", "ToFloat(s0)"):
        with pytest.raises(NotRunnable, match=r"its input x has a size, .*, whose value was not recorded"):
            size(text, {"s0": 5}, "x")


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({}, "input x is a value that the report does not describe"),
        ({"dtype": "Sym(u3)"}, "has a size, u3, whose value was not recorded"),
        ({"dtype": "DTensor", "shape": [2]}, "is a DTensor, which cannot be synthesized"),
        ({"dtype": "float32", "shape": [10**15], "stride": [1]}, "its input x cannot be synthesized: "),
    ],
)
def test_inputs_that_cannot_be_made_up_are_named(facts: dict[str, Any], words: str) -> None:
    with pytest.raises(NotRunnable, match=words):
        made(**facts)


def lookups(i: torch.Tensor, j: torch.Tensor, k: torch.Tensor, target: torch.Tensor, x: torch.Tensor) -> Any:
    table = torch.nn.functional.embedding(i.view(-1), x)
    return (
        table, x[1:, j], x[..., j, None], x.gather(1, k), torch.index_select(x, 0, k[0] % 2),
        torch.nn.functional.cross_entropy(x, target), torch.nn.functional.one_hot(target, 9), k + 1,
    )  # fmt: skip


def test_integers_that_look_something_up_are_valid_there() -> None:
    x = torch.ones(6, 5)
    i, j, k, target = torch.tensor([[5, 0]]), torch.tensor([4]), torch.zeros(6, 2, dtype=torch.int64), torch.tensor([4] * 6)
    run = explain(lookups, backend="eager")(i, j, k, target, x).run_graph("g0", backend="eager", calls=1)
    assert run.notes == ["integer tensors are 0"]


def test_symbolic_sizes_are_those_of_the_recorded_call() -> None:
    report = explain(lambda x, n: x[:, None] * n, backend="eager", dynamic=True)(torch.ones(7), 5)
    assert set(report.graphs[0].sizes.values()) == {7, 5}
    report.run_graph("g0", backend="eager", calls=1)
    report.graphs[0].sizes = {}
    why = r"^g0 cannot be run again: its input .* has a size, s\d+, whose value was not recorded$"
    with pytest.raises(ValueError, match=why):
        report.run_graph("g0", calls=1)


def shifted(i: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.embedding(i - 9, table)


def test_where_no_made_up_integer_fits_it_is_said() -> None:
    report = explain(shifted, backend="eager")(torch.tensor([9, 10]), torch.ones(2, 3))
    why = "^g0 cannot be run again: on synthetic data it raised IndexError: index out of range"
    with pytest.raises(NotRunnable, match=why):
        report.run_graph("g0", calls=1)


# -- without a trace ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_a_run_keeps_no_tensor_and_no_module(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    report = explain(two_layers()[0], backend="eager")(two_layers()[1])
    alive: list[weakref.ref[Any]] = []

    class Watched(graph_run.Case):
        def run(self, backend: str, calls: int) -> GraphRun:
            alive.extend(weakref.ref(o) for o in [self.module, *self.inputs])
            return super().run(backend, calls)

    monkeypatch.setattr(graph_run, "Case", Watched)
    report.run_graph("g0", backend=backend, calls=1)
    gc.collect()
    assert len(alive) == 6
    assert [r() for r in alive] == [None] * 6


def test_what_the_graph_changes_in_place_is_put_back_before_each_call() -> None:
    seen: list[float] = []

    def f(x: torch.Tensor) -> torch.Tensor:
        x.add_(1)
        return x * 2

    report = explain(f, backend="eager")(torch.ones(3))
    case = graph_run.Case(report.graphs[0])
    case.check()
    for _ in range(3):
        case.prepared(lambda x: seen.append(float(x.sum())) or case.module(x))()
    assert len(set(seen)) == 1
    [note] = report.run_graph("g0", backend="eager", calls=1).notes
    assert note == "the graph changes 1 tensor in place, restored before each call"


def settings_now() -> tuple[Any, ...]:
    return (
        torch.get_default_dtype(), torch.get_default_device(), torch.is_grad_enabled(), torch.is_inference_mode_enabled(),
        torch.is_autocast_enabled("cpu"), torch._C._len_torch_function_stack(), torch._C._is_fwd_grad_enabled(),
        torch._C._functorch.peek_interpreter_stack() is None, torch._C._functorch.get_inplace_requires_grad_allowed(),
        torch._C._autograd._saved_tensors_hooks_get_disabled_error_message(), torch.ones(1).dtype, torch.ones(1).device,
        type(torch.ones(1)),
    )  # fmt: skip


SURROUNDINGS: dict[str, Callable[[], contextlib.AbstractContextManager[Any]]] = {
    "inference mode": torch.inference_mode,
    "default device": lambda: torch.device("meta"),
    "fake tensors": lambda: torch._subclasses.FakeTensorMode(),
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
}


@pytest.mark.parametrize("name", SURROUNDINGS)
def test_what_the_caller_has_set_is_not_the_graphs_and_stays(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    report = explain(lambda x: torch.cos((x + torch.ones(4)) @ W), backend="eager")(X)
    made: list[Any] = []
    prepared = graph_run.Case.prepared
    monkeypatch.setattr(graph_run.Case, "prepared", lambda c, kind: (made.append(c.module(*c.inputs)[0]), prepared(c, kind))[1])
    with SURROUNDINGS[name]():
        before = settings_now()
        run = report.run_graph("g0", backend="aot_eager", calls=1)
        assert settings_now() == before
    assert run.notes == []
    assert {(type(t), t.dtype, t.device.type) for t in made} == {(torch.Tensor, torch.float32, "cpu")}


# -- reports from files ------------------------------------------------------------------------------------


def written(*lines: str) -> Graph:
    """A graph of one input, x, as a file could hold it."""
    body = "".join(f"        {line}\n" for line in lines)
    text = f'class GraphModule(torch.nn.Module):\n    def forward(self, x: "f32[3][1]cpu"):\n{body}        return (x,)\n'
    nodes = graphs.read_graph(text)
    return Graph(id="g0", frame="f0", ops=len(lines), nodes=nodes, outputs=nodes[-1].inputs, code=text)


def test_graphs_of_a_report_from_a_file_are_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    report = explain(lambda x: x + 1, backend="eager")(torch.ones(3))
    traced = explain(lambda x: x + 2, backend="eager")(torch.ones(3))
    traced.origin = "trace"
    monkeypatch.setattr(graph_run, "run_graph", None)
    for read in (Report.from_dict(report.to_dict()), traced):
        why = "^graphs can be run only where they were recorded, and this report was read from a file$"
        with pytest.raises(ValueError, match=why):
            read.run_graph("g0")
        with pytest.raises(KeyError, match=r"there is no 'g9': there are g0\b"):
            read.run_graph("g9")


@torch.library.custom_op("dynascope_tests::theirs", mutates_args=())
def theirs(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


def test_operators_from_outside_torch_are_named() -> None:
    for line in ("y = torch.ops.dynascope_tests.theirs.default(x)", "y = torch.ops.dynascope_tests.theirs(x)"):
        run = graph_run.run_graph(written(line), "eager", 1)
        assert run.ops
        called = line.removeprefix("y = ").removesuffix("(x)")
        assert run.notes == [f"operators from outside torch ran again, with all their side effects: {called}"]
    quantized = ("y = x.unsqueeze(0)", "z = torch.ops.quantized.embedding_bag_byte_prepack.default(y)")
    assert graph_run.run_graph(written(*quantized), "eager", 1).notes == [], "it comes with torch"


# -- refusals ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("torch.ops.higher_order.triton_kernel_wrapper_mutation", "a Triton kernel of the program"),
        ("torch.ops._c10d_functional.all_reduce", "waits for other processes"),
        ("os.system", "cannot be found by this name"),
        ("torch.no.such", "cannot be found by this name"),
        ("__main___helper", "cannot be found by this name"),
    ],
)
def test_functions_that_cannot_be_called_again_are_named(name: str, words: str) -> None:
    with pytest.raises(NotRunnable, match=words):
        function(name)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("y = torch.add(x, open('/etc/passwd'))", "argument that only the program could create"),
        ("y = torch.add(x, object at 0x7f)", "no graph can be built"),
        ("y = self.inner(x)", "calls the module inner, whose parameters"),
        ("y = self.weight", "uses the attribute weight, which the report does not describe"),
        ("y = torch.ones(3, device='nowhere', dtype=slice(1, 2, 3, 4))", "only the program could create"),
        ("y = [v for v in x]", "calls ListComp, which cannot be found by this name"),
        ("y = x if x else 1", "calls IfExp, which cannot be found by this name"),
    ],
)
def test_text_that_cannot_be_built_is_refused(line: str, words: str) -> None:
    with pytest.raises(NotRunnable, match=words):
        rebuild(f"class G(torch.nn.Module):\n    def forward(self, x):\n        {line}\n        return (y,)\n")


def test_refusals_are_one_sentence_before_anything_runs() -> None:
    report = explain(mapped, backend="eager")(X)
    for asked, words in [
        ({"calls": 0}, "at least 1"),
        ({"calls": True}, "at least 1"),
        ({"backend": "no_such"}, "unknown backend 'no_such'"),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match=words) as caught:
            report.run_graph("g0", **asked)  # type: ignore[arg-type]
        assert "\n" not in str(caught.value)
    with pytest.raises(KeyError):
        report.run_graph("g9")
    report.graphs[0].ops = None
    with pytest.raises(ValueError, match=r"^g0 cannot be run again: it was compiled before the recording"):
        report.run_graph("g0")


def test_what_the_backend_cannot_compile_is_told_and_the_rest_is_there() -> None:
    def refuses(module: Any, inputs: Any) -> Any:
        raise RuntimeError("not this one\nand more")

    torch._dynamo.register_backend(refuses, name="refuses_all")  # type: ignore[attr-defined]
    run = explain(mapped, backend="eager")(X).run_graph("g0", backend="refuses_all", calls=1)
    assert run.compiled_seconds is None
    assert run.speed_up is None
    assert run.notes == ["refuses_all could not run the graph on its own: RuntimeError: not this one"]
    assert run.ops


def test_a_mode_of_the_run_that_is_not_taken_over_is_told() -> None:
    report = explain(mapped, backend="eager")(X)
    report.settings["mode"] = "max-autotune"
    notes = report.run_graph("g0", calls=1).notes
    assert notes == ["compiled with the backend's default mode and options, not with those of the run"]
