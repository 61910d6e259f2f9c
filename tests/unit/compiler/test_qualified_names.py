"""A frame's qualified name: the function with its class, as the source has it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import torch

import dynascope
from dynascope.compiler.report import Frame, Report
from dynascope.compiler.report.overview import call_tree, qualified
from dynascope.widgets.features.places import Places


class Block(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.sin()
        torch._dynamo.graph_break()
        return x.cos()


def outer(x: torch.Tensor) -> torch.Tensor:
    return Block()(x) + 1


def test_a_log_names_a_compiled_module_by_its_class_as_a_live_run_does(tmp_path: Path) -> None:
    code = f"import sys, torch; sys.path.insert(0, {str(Path(__file__).parent)!r}); from test_qualified_names import Block; "
    code += "torch.compile(Block(), backend='eager')(torch.ones(3))"
    environment = {**os.environ, "TORCH_TRACE": str(tmp_path)}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, timeout=300)
    with dynascope.observe() as recording:
        torch.compile(Block(), backend="eager")(torch.ones(3))
    for report in (recording.report, dynascope.load(tmp_path)):
        assert report.compiled == ["Block"]
        assert [(f.name, f.kind) for f in report.frames] == [("Block", "function"), ("Block", "resume")]


def test_methods_are_named_with_their_class() -> None:
    report = dynascope.explain(outer, backend="eager")(torch.ones(3))
    names = {(f.kind, f.name, f.qualname) for f in report.frames if f.status != "ignored" and f.file == __file__}
    assert {("function", "outer", "outer"), ("function", "forward", "Block.forward")} <= names
    assert ("resume", "forward", "Block.forward") in names
    assert [call.name for root in call_tree(report) for _, call in root.walk()] == ["outer", "Block.forward"]


def test_a_compiled_module_keeps_the_name_that_the_user_gave_it() -> None:
    frame = Frame(id="f0", compile_id="0/0", name="Net", code_name="forward", qualname="Base.forward", file="m.py", line=1)
    assert qualified(frame) == "Net"


def test_a_view_without_the_class_in_its_source_takes_the_name_from_the_frame() -> None:
    frame = Frame(
        id="f0", compile_id="0/0", name="forward", code_name="forward", qualname="A.B.forward", file="m.py", line=3, end_line=9
    )
    places = Places(Report(frames=[frame]))
    assert places.name(frame) == "A.B.forward"
    assert places.function("forward", "m.py", 7) == "A.B.forward"
    assert places.function("forward", "m.py", 10) == "forward"
