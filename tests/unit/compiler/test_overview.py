"""The overview of a large report: the program as a tree of calls, and the causes behind its breaks and recompiles."""

from __future__ import annotations

import pytest
import torch
from msgspec.structs import replace
from observed import seen

import dynascope
from dynascope.compiler.report import Break, BreakCost, Frame, Hit, Profile, Recompile, ReportData, Segment
from dynascope.compiler.report.data import FailedGuard
from dynascope.compiler.report.measurements import InputRun
from dynascope.compiler.report.overview import Call, Owners, call_tree, causes, package, ran_in, setting_in


def inner(x: torch.Tensor) -> torch.Tensor:
    x = x.sin()
    torch._dynamo.graph_break()
    return x.cos()


def inlined(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def looped(x: torch.Tensor) -> torch.Tensor:
    for _ in range(2):
        x = inner(x) + 1
        torch._dynamo.graph_break()
    return x


def program(x: torch.Tensor) -> torch.Tensor:
    x = inlined(inner(x))
    return looped(x)


def frame(n: int, file: str = "m.py", **fields: str) -> Frame:
    """The n-th frame, of a function `f` in line n."""
    return Frame(id=f"f{n}", compile_id=f"{n}/0", name="f", code_name="f", file=file, line=n, **fields)  # type: ignore[arg-type]


def rows(tree: list[Call]) -> list[tuple[int, str]]:
    return [(depth, call.name) for root in tree for depth, call in root.walk()]


def test_a_function_its_resume_functions_and_its_versions_are_one_call() -> None:
    report = dynascope.explain(program, backend="eager")(torch.ones(3))
    tree = call_tree(report)
    assert rows(tree) == [(0, "program"), (1, "inner"), (1, "looped")], "looped reuses what inner has"
    ((_, root), (_, first), (_, loop)) = tree[0].walk()
    assert [f.kind for f in root.frames][:2] == ["function", "resume"]
    assert not any(call.calls for call in (first, loop))
    assert loop.skipped is not None
    # every frame that is not ignored is in the tree once, and every break on one call
    placed = [f.id for root in tree for _, call in root.walk() for f in call.frames]
    assert sorted(placed) == sorted(f.id for f in report.frames if f.status != "ignored")
    assert sorted(b for root in tree for _, call in root.walk() for b in call.breaks) == sorted(b.id for b in report.breaks)
    assert first.breaks
    assert loop.is_eventful


def test_recompiled_versions_are_counted_on_the_same_call() -> None:
    compiled = torch.compile(inlined, backend="eager", dynamic=False)
    (call,) = call_tree(seen(lambda: [compiled(torch.ones(n)) for n in (2, 3, 4)]))
    assert (len(call.frames), call.recompiles, len(call.graphs)) == (3, 2, 3)
    assert call.is_eventful


def test_a_break_in_an_inlined_function_gets_a_row_below_the_deepest_frame() -> None:
    outer = Frame(id="f0", compile_id="0/0", name="outer", code_name="outer", file="m.py", line=1, end_line=5)
    middle = Frame(id="f1", compile_id="1/0", name="middle", code_name="middle", file="m.py", line=7, end_line=9, parent="f0")
    hits = [Hit(frame="f0", line=3, outcome="skipped"), Hit(frame="f1", line=8, outcome="skipped")]
    broken = Break(id="b0", file="other.py", line=20, function="helper", hits=hits)
    assert rows(call_tree(ReportData(frames=[outer, middle], breaks=[broken]))) == [(0, "outer"), (1, "middle"), (2, "helper")]


def test_whose_file_it_is_shows_in_its_path() -> None:
    assert package("/opt/venv/lib/python3.12/site-packages/torchvision/ops/boxes.py") == "torchvision"
    assert package("C:\\Python\\Lib\\site-packages\\timm\\layers.py") == "timm"
    assert package("/opt/venv/lib/python3.12/site-packages/six.py") == "six"
    assert package("<frozen abc>") == package("/usr/lib/python3.12/inspect.py") == "Python"
    for folder in ("Python311", "miniconda3\\envs\\torch", "uv\\python\\cpython-3.11-windows-x86_64-none"):
        assert package(f"C:\\Users\\a\\{folder}\\Lib\\contextlib.py") == "Python"
    for own in ("/home/a/project/model.py", "/home/a/python3.11/model.py", "<ipython-input-3-0d4b>", "<stdin>", "<string>"):
        assert package(own) is None


def test_the_library_of_the_model_is_the_package_of_most_functions_beside_torch() -> None:
    site = "/v/lib/python3.12/site-packages"
    files = ["/home/a/train.py", *[f"{site}/torch/nn/linear.py"] * 3, f"{site}/timm/vit.py", f"{site}/timm/mlp.py"]
    files += [f"{site}/einops/core.py"]
    owners = Owners(ReportData(frames=[frame(n, file) for n, file in enumerate(files)]))
    assert owners.library == "timm"
    assert [owners.of(file) for file in files] == ["own", *["other"] * 3, "model", "model", "other"]
    assert owners.of("timm/layers/norm.py") == "model", "some of the compiler's paths begin at the package"
    assert owners.of("src/norm.py") == "own"
    assert Owners(ReportData()).library is None


def test_eager_code_belongs_to_the_function_that_was_skipped_there() -> None:
    def gap(frame: str, broken: str, ops: int) -> Segment:
        return Segment(kind="gap", lane="CPU", start=0.0, duration=1.0, label="", frame=frame, break_=broken, op_count=ops)

    report = ReportData(
        frames=[frame(0), frame(1, status="skipped", stopped_by="b0", parent="f0")],
        breaks=[Break(id="b0", file="m.py", line=1), Break(id="b1", file="m.py", line=9)],
        profile=Profile(calls=1, median_seconds=3.0, segments=[gap("f0", "b0", 4), gap("f0", "b1", 2), gap("f0", "b0", 1)]),
    )
    assert [(frame, s.op_count) for frame, s in ran_in(report)] == [("f1", 4), ("f0", 2), ("f1", 1)]
    assert {c.breaks[0]: c.eager_ops for c in causes(report)} == {"b0": 7}, "one type, so one cause"


def scalars(break_id: str, hits: int) -> Break:
    return Break(
        id=break_id, file="m.py", line=1, type="Unsupported Tensor.item() call with capture_scalar_outputs=False",
        hints=["Set `torch._dynamo.config.capture_scalar_outputs = True` or ..."],
        hits=[Hit(frame=f"f{n}", line=1, outcome="resumed") for n in range(hits)],
    )  # fmt: skip


def test_breaks_with_one_setting_are_one_cause_and_the_costly_cause_comes_first() -> None:
    other = Break(
        id="b2", file="m.py", line=2, type="Data-dependent branching", hits=[Hit(frame="f0", line=2, outcome="skipped")] * 2
    )
    after = Break(
        id="b3", file="m.py", line=3, type="X", hints=["This graph break may have been caused by an earlier graph break."]
    )
    recompile = Recompile(frame="f5", of="f4", failed_guards=[FailedGuard(kind="size", source="x")])
    data = ReportData(breaks=[after, other, scalars("b0", 1), scalars("b1", 1)], recompiles=[recompile])
    found = causes(data)
    assert [c.breaks for c in found] == [["b2"], ["b0", "b1"], ["b3"], []]
    assert (found[1].setting, found[3].guard) == ("capture_scalar_outputs", "size")
    assert [*found[3].frames] == ["f5"]
    # measured times outrank what the structure suggests
    data.profile = Profile(
        calls=3, median_seconds=1.0, breaks=[BreakCost(break_="b1", seconds=0.5), BreakCost(break_="b2", seconds=0.1)]
    )
    assert [c.breaks for c in causes(data)][:2] == [["b1", "b0"], ["b2"]]
    assert causes(data)[0].seconds == 0.5
    data.profile.breaks.pop()
    assert causes(data)[0].breaks == ["b2"], "a frame that runs eagerly, at an unknown cost"
    assert [c.breaks for c in causes(replace(data, inputs=[InputRun(arguments="2", frames=["f0"])]))][:2] == [["b3"], ["b2"]]
    # and recompiles in call after call of one function outrank both
    inside = Frame(id="f1", compile_id="1/0", name="g", code_name="g", file="m.py", line=5, parent="f0")
    data.frames = [replace(inside, id="f0", line=1, parent=None), inside, replace(inside, id="f5")]
    data.recompiles = [replace(recompile, call=call) for call in (2, 3, 5)]
    assert causes(data)[-1].guard == "size"
    data.recompiles[2].call = 4
    assert causes(data)[0].guard == "size"
    data.frames.append(replace(inside, id="f6", parent=None))
    data.recompiles[2].frame = "f6"
    assert causes(data)[-1].guard == "size", "another function's call"
    data.recompiles[2] = replace(recompile, call=4, failed_guards=[FailedGuard(kind="size", source="y")])
    assert causes(data)[-1].guard == "size", "another value"
    # what takes another value each time, although another guard fails first, and in as many versions
    of = [FailedGuard(kind="length" if n else "not empty", source="log", compile_id=f"0/{n}") for n in range(3)]
    for frame, guard, again in zip(data.frames, of, data.recompiles, strict=False):
        again.frame, again.failed_guards = frame.id, [replace(guard, kind="rank", now="2"), guard]
    assert (causes(data)[0].guard, causes(data)[0].in_each_call) == ("length", True)


def test_what_only_the_first_call_has_and_what_was_refused() -> None:
    first = scalars("b1", 9)
    first.first_call_only = True
    refused = Recompile(frame="f9", of="f8", failed_guards=[FailedGuard(kind="size", source="x")], refused_by="recompile_limit")
    found = causes(ReportData(breaks=[first, scalars("b0", 1)], recompiles=[refused]))
    expected = [(["b0"], False, "capture_scalar_outputs"), (["b1"], True, None)]
    assert [(c.breaks, c.first_call, c.setting) for c in found] == expected
    # at the limit, what has filled it counts
    kinds = {"f0": "size", "f1": "value", "f2": "value", "g0": "size", "g1": "size"}
    frames = [Frame(id=id, compile_id="0/1", name=id, code_name=id[0], file="m.py", line=1) for id in kinds]
    again = [Recompile(frame=id, of="x", failed_guards=[FailedGuard(kind=kind)]) for id, kind in kinds.items()]
    report = ReportData(frames=frames, recompiles=[*again, replace(again[0], refused_by="recompile_limit")])
    assert [c.guard for c in causes(report)] == ["value", "size"]
    first.hits[0].outcome = "skipped"  # it runs eagerly from then on
    assert [c.breaks for c in causes(ReportData(breaks=[first, scalars("b0", 1)]))] == [["b1"], ["b0"]]


def test_settings_are_read_from_both_forms_of_hints() -> None:
    assert setting_in(["Set torch._dynamo.config.allow_rnn=True to enable ..."]) == "allow_rnn"
    assert setting_in(["Set torch._dynamo.trace_autograd_ops=True"]) == "trace_autograd_ops"
    assert setting_in(["Change `torch._dynamo.config.trace_autograd_ops` to `True`."]) == "trace_autograd_ops"
    assert setting_in(["Use `torch._assert_async`", "Set torch._dynamo.config.compiled_autograd = True."]) is None


@pytest.mark.parametrize("alternates", ["global state", "requires_grad"])
def test_a_list_that_grows_is_the_cause_where_something_alternates_too(alternates: str) -> None:
    log = [0]
    compiled = torch.compile(lambda x: (log.append(0), x + len(log)), backend="eager")
    with dynascope.observe() as recording:
        for number in range(4):
            with torch.set_grad_enabled(number % 2 == 0 or alternates == "requires_grad"):
                compiled(torch.ones(3, requires_grad=number % 2 == 0 and alternates == "requires_grad"))
    assert {c.guard: len(c.frames) for c in causes(recording.report)} == {"length": 2, alternates: 1}


def test_a_version_that_serves_no_more_is_no_cause_of_later_recompiles() -> None:
    class Counter:
        n = 0

    @torch.compile(backend="eager")
    def f(counter: Counter, x: torch.Tensor) -> torch.Tensor:
        counter.n += 1
        return x + counter.n

    counter = Counter()
    with dynascope.observe() as recording:
        for size in (4, 4, 4, 3):
            f(counter, torch.ones(size))
    assert {c.guard: len(c.frames) for c in causes(recording.report)} == {"new attribute": 1, "value": 1, "size": 1}
    assert str(recording.report).count("had no attribute n of its own") == 1
