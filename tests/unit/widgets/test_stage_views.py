"""Kernels and the texts of later stages in the views."""

from __future__ import annotations

from typing import Any

from samples import one_break

from dynascope.compiler.report import Kernel, Report
from dynascope.widgets.model import view_model


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


def test_of_large_texts_the_model_says_where_they_are() -> None:
    report = staged("x = 1\n" * 30_000)
    (said,) = parts(report)["fx_graph_runnable"]["body"]["text"]
    assert said == f'The text is in `report.stage_texts["{report.graphs[0].id}"]["fx_graph_runnable"][0]`.'
