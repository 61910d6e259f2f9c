"""Kernels and the texts of later stages in the views."""

from __future__ import annotations

from typing import Any

from samples import one_break

from dynascope.compiler.report import Kernel, Report
from dynascope.widgets.model import view_model
from dynascope.widgets.view import View


def staged(script: str) -> Report:
    report = one_break()
    graph = report.graphs[0]
    named = next(n.name for n in graph.nodes if n.line is not None)
    graph.kernels = [
        Kernel(name="triton_poi_fused_0", count=2, ops=["aten.add", "aten.relu"], nodes=[named, "gone"]),
        Kernel(name="cpp_fused_add_1"),
    ]
    report.stage_texts = {graph.id: {"fx_graph_runnable": [script, "second"], "new_stage": ["x"]}}
    return report


def parts(report: Report) -> dict[str, Any]:
    return {part["key"]: part for part in view_model(report)["details"][report.graphs[0].id]["parts"]}


def test_kernels_have_the_lines_of_the_nodes_that_the_compiler_names() -> None:
    report = staged("import torch")
    first, second = parts(report)["kernels"]["body"]
    node = next(n for n in report.graphs[0].nodes if n.line is not None)
    assert first[0] == "triton_poi_fused_0 (2 times)"
    assert first[1].endswith(f":{node.line}")
    assert first[2] == "fuses aten.add, aten.relu"
    assert second == ["cpp_fused_add_1", "", "", ""]


def test_small_texts_are_in_the_model() -> None:
    made = parts(staged("import torch\x1b[31m"))
    assert made["fx_graph_runnable"]["body"]["text"] == "import torch␛[31m"
    assert made["fx_graph_runnable1"]["name"] == "Runnable script 2"
    assert "new_stage" not in made


def test_large_texts_are_fetched() -> None:
    script = "x = 1\n" * 30_000
    report = staged(script)
    body = parts(report)["fx_graph_runnable"]["body"]
    assert body == {"graph": report.graphs[0].id, "stage": "fx_graph_runnable", "number": 0}
    view, sent = View(report), list[Any]()
    view.send = lambda content, buffers=None: sent.append(content)
    view._on_message(None, {"kind": "text", "id": "7", **body}, [])
    assert sent == [{"kind": "ack", "id": "7", "text": script}]
    for wrong in ({}, {"graph": [], "stage": {}, "number": "x"}, {"graph": "g0", "stage": "fx_graph_runnable", "number": 9}):
        view._on_message(None, {"kind": "text", "id": "8", **wrong}, [])
        assert sent[-1]["text"] == "The kernel no longer has this text."
    view.close()
