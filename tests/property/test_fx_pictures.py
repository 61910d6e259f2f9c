"""Pictures of FX graphs, for any nodes and any text: they are made, and each edge joins boxes that are there.

The graphs are such as torch writes, and worse: names bound again, stores in place, reads of names that come later or
never, modules and source lines nested at will.  A view that cannot be drawn fails the test (see tests/conftest.py).
"""

from __future__ import annotations

import json
import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from dynascope.compiler.builder import graphs
from dynascope.compiler.report import Excerpt, Frame, Graph, GraphRun, Node, OpTime, Report, Source, Summary
from dynascope.widgets.drawing.fx_picture import DRAWN
from dynascope.widgets.model import view_model
from dynascope.widgets.render.page import to_html
from dynascope.widgets.render.picture import to_svg
from dynascope.widgets.render.static_output import to_mimebundle
from dynascope.widgets.render.text import to_text

FILE = "/home/me/model.py"
OPS = ("placeholder", "get_attr", "call_function", "call_method", "call_module", "output")
#: few, so that names meet again
NAMES = ("output", "output_1", "x", "l_x_", "setitem", "inputs", "start", "y", "<b>")
MODULES = (None, "inputs", "model", "model.layers.0", "model.layers.0.attn.q", "model.layers.1", "model.layers.1.mlp", "head")
LARGE = (299, 300, 301, 1_000, 3_000)
TARGETS = ("sin", "operator.setitem", "torch.nn.functional.linear")


def one_node(chance: random.Random, names: list[str]) -> Node:
    return Node(
        name=chance.choice(names), op=chance.choice(OPS), target=chance.choice(TARGETS),
        inputs=[chance.choice(names) for _ in range(chance.randrange(4))],
        file=FILE if chance.random() < 0.8 else None, line=chance.choice([None, 1, 2, 3, 40]), module=chance.choice(MODULES),
        dtype=chance.choice([None, "float32"]), shape=chance.choice([None, [], [8, "s0"]]), device=chance.choice([None, "cpu"]),
    )  # fmt: skip


@st.composite
def small_graphs(draw: st.DrawFn) -> list[Node]:
    """Up to 30 nodes, each drawn on its own, so that a failing one shrinks."""
    name, inputs = st.sampled_from(NAMES), st.lists(st.sampled_from(NAMES), max_size=4)
    node = st.builds(
        Node, name=name, op=st.sampled_from(OPS), target=st.sampled_from(["sin", "operator.iadd", ""]), inputs=inputs,
        module=st.sampled_from(MODULES), file=st.sampled_from([None, FILE]), line=st.sampled_from([None, 1, 2]),
    )  # fmt: skip
    return draw(st.lists(node, max_size=30))


@st.composite
def large_graphs(draw: st.DrawFn) -> list[Node]:
    """Hundreds or thousands of nodes, in folds by module, by line, or by number; blocks of inputs among them."""
    count, chance = draw(st.sampled_from(LARGE)), random.Random(draw(st.integers(0, 2**32)))
    names = [*NAMES, *(f"n{i}" for i in range(draw(st.sampled_from([0, 10, count]))))]
    nodes = [one_node(chance, names) for _ in range(count)]
    known = draw(st.sampled_from(["modules", "lines", "nothing"]))
    layer = draw(st.sampled_from([1, 7, 100, 1_000]))
    inputs = draw(st.sampled_from([0, 50, 400]))
    for i, node in enumerate(nodes):
        node.module = (
            f"model.layers.{i // layer}.{chance.choice(['attn', 'mlp.up', 'mlp.down'])}" if known == "modules" else None
        )
        node.file, node.line = (FILE, 1 + i // layer) if known == "lines" else (None, None)
        node.op = "placeholder" if i < inputs else "call_function" if node.op == "placeholder" and i % 3 else node.op
    return nodes


def report_of(nodes: list[Node], code: str = "", run: GraphRun | None = None) -> Report:
    frame = Frame(id="f0", compile_id="0/0", name="f", code_name="f", file=FILE, line=1, graph="g0")
    graph = Graph(id="g0", frame="f0", ops=sum(n.op.startswith("call_") for n in nodes), nodes=nodes, code=code, run=run)
    source = Source(file=FILE, label="model.py", excerpts=[Excerpt(line=1, text="def f(x):\n    return x\n")])
    return Report(compiled=["f"], frames=[frame], graphs=[graph], sources=[source], summary=Summary(frames=1, graphs=1))


def check(report: Report) -> None:
    """All forms of the report are made, and what the picture joins is in it."""
    model = view_model(report)
    assert json.loads(json.dumps(model, allow_nan=False)) == model
    nodes = report.graphs[0].nodes
    body = next((p["body"] for p in model["details"]["g0"]["parts"] if p["key"] == "graph"), None)
    assert (body is None) == (not nodes)
    if body is not None:
        assert len(body["nodes"]) == len(nodes)
        for i, node in enumerate(body["nodes"]):
            for source in node["reads"]:
                assert 0 <= source < i
                assert nodes[source].name in nodes[i].inputs
                assert all(other.name != nodes[source].name for other in nodes[source + 1 : i])
        assert held(body["picture"], body["nodes"]) == list(range(len(nodes)))
    assert "could not be drawn" not in to_html(report) + to_svg(report) + to_text(report, colour=False, width=100)
    assert set(to_mimebundle(report, model)) == {"text/html", "text/plain"}


def held(picture: Any, nodes: list[Any]) -> list[int]:
    """The nodes that a picture shows, one by one or in folds; each edge is one of two boxes, and one that is read."""
    folds = picture.get("folds")
    firsts = [f["first"] for f in folds] if folds else [picture["first"] + i for i in range(len(picture["boxes"]))]
    counts = [f["count"] for f in folds] if folds else [1] * len(firsts)
    assert len(picture["boxes"]) == len(picture["titles"]) == len(picture["notes"]) == len(firsts)
    assert len(picture["edges"]) == len(picture["joined"])
    read: set[tuple[int, int]] = set()
    box_of = {
        n: box for box, (first, count) in enumerate(zip(firsts, counts, strict=True)) for n in range(first, first + count)
    }
    for n, box in box_of.items():
        read |= {(box_of[source], box) for source in nodes[n]["reads"] if box_of.get(source, box) != box}
    for box, note in enumerate(picture["notes"]):  # of inputs that many folds read, the arrow to the first is drawn
        readers = sorted(b for a, b in read if a == box)
        if folds and f"· read by {len(readers)} parts" in note:
            assert all(nodes[n]["kind"] in ("input", "param") for n in range(firsts[box], firsts[box] + counts[box]))
            read -= {(box, b) for b in readers[1:]}
    assert {tuple(pair) for pair in picture["joined"]} == read
    for fold in folds or ():
        if fold["count"] <= DRAWN:
            assert held(fold["inside"], nodes) == list(range(fold["first"], fold["first"] + fold["count"]))
    return list(box_of)


@given(small_graphs())
@settings(max_examples=150)
def test_any_few_nodes(nodes: list[Node]) -> None:
    check(report_of(nodes))


@given(large_graphs(), st.booleans())
@settings(max_examples=8)
def test_any_many_nodes(nodes: list[Node], measured: bool) -> None:
    ops = [OpTime(node=n.name, seconds=1e-6 * (i % 7)) for i, n in enumerate(nodes) if n.op.startswith("call_")]
    run = GraphRun(device="cpu", device_name="CPU", backend="inductor", calls=3, eager_seconds=0.1, ops=ops)
    check(report_of(nodes, run=run if measured else None))


LINES = (
    "{a} = {b} + {c}", "{a}: 'f32[8, s0]cpu' = torch.sin({b})", "{a} = {b}.view(2, {c})", "{b}[0] = {c};  {a} = {b}",
    "{b} += {c};  {a} = {b}", "{a} = {b}", "{a} = self.L__self___{b}_", "{a} = self.layer({b})", "{b} = {c} = None",
    "{a} = None",
    "# File: /home/me/model.py:{n} in f, code: {a} = {b}", "# No stacktrace found for following nodes", "{a} = {b}[({c}, 0)]",
    "{a} = torch.cat([{b}, {c}], dim = {b}.size(0))",
)  # fmt: skip
WORDS = ("output", "output_1", "output_2", "L_x_", "l_x_", "x", "setitem", "y")


@st.composite
def texts(draw: st.DrawFn) -> str:
    """The text of a graph: names are bound again, freed, stored into, and read before they are bound."""
    word = st.sampled_from(WORDS)
    arguments = draw(st.lists(word, unique=True, max_size=3))
    line = st.builds(
        lambda form, a, b, c, n: form.format(a=a, b=b, c=c, n=n), st.sampled_from(LINES), word, word, word, st.integers(1, 9)
    )
    body = [f"        {text}\n" for text in draw(st.lists(line, max_size=40))]
    returned = ", ".join(draw(st.lists(word, max_size=3)))
    head = f"class GraphModule(torch.nn.Module):\n    def forward({', '.join(['self', *arguments])}):\n"
    return head + "".join(body) + f"        return ({returned})\n"


@given(texts())
@settings(max_examples=150)
def test_any_text(text: str) -> None:
    nodes = graphs.read_graph(text)
    assert sum(n.name == nodes[-1].name for n in nodes) == 1  # of the output, torch prints no name
    check(report_of(nodes, text))
