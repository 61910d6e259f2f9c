"""Comparing the structure of outputs: pure, no kernel."""

from __future__ import annotations

import base64
from typing import Any

import nbformat
import pytest

from dynascope.compiler.report import Break, Report, Summary
from dynascope.compiler.report.comparison import MIME, outline
from dynascope.docs_tests.outputs import compare, normalized, outlines, stable

BREAK = {"type": "graph_break()", "line": 4, "outcome": "resumed"}


def report(*breaks: dict[str, Any], torch: str = "2.13.0", python: str = "3.11.7", **summary: Any) -> Any:
    counts = {"graphs": len(breaks) + 1, "breaks": len(breaks), "compile_seconds": 0.5, **summary}
    made = {"summary": counts, "breaks": list(breaks), "torch": torch, "python": python}
    return nbformat.v4.new_output("display_data", {MIME: made})


def error(name: str) -> Any:
    return nbformat.v4.new_output("error", ename=name, evalue="no", traceback=[])


def stream(name: str, text: str) -> Any:
    return nbformat.v4.new_output("stream", name=name, text=text)


def moved(**changes: Any) -> dict[str, Any]:
    return {**BREAK, **changes}


@pytest.mark.parametrize(
    ("stored", "now", "expected"),
    [
        ([report(BREAK)], [report(BREAK)], []),
        ([report(BREAK)], [report(moved(place="In[2]"), compile_seconds=9.0)], []),
        ([report(BREAK)], [report(BREAK, later_addition=3)], []),
        ([report()], [report(BREAK)], ["a new graph break", "other counts"]),
        ([report(BREAK)], [report()], ["a lost graph break", "other counts"]),
        ([report(BREAK)], [report(moved(line=6))], ["a new graph break", "a lost graph break"]),
        ([report(BREAK)], [report(moved(outcome="skipped"))], ["a new graph break", "a lost graph break"]),
        ([report(BREAK)], [report(moved(type="print"))], ["a new graph break", "a lost graph break"]),
        ([report(BREAK)], [report(BREAK, graphs=3)], ["other counts"]),
        ([report(BREAK)], [report(BREAK, BREAK)], ["a new graph break", "other counts"]),
        ([report(BREAK)], [], ["0 reports (stored: 1)"]),
        ([error("ValueError")], [], ["an error is gone"]),
        ([], [error("ValueError")], ["a new error"]),
        ([error("ValueError")], [error("KeyError")], ["another error"]),
        ([], [stream("stderr", "UsageError: no such flag")], ["a new error"]),
        ([], [stream("stdout", "UsageError: printed by the page")], []),
        ([report(BREAK)], [report(torch="2.9.1")], []),
        ([report(BREAK)], [report(torch="2.13.1")], ["a lost graph break", "other counts"]),
        ([report(BREAK, python="")], [report(python="3.10.13")], []),
        ([report(BREAK, python="3.10.13")], [report(python="3.10.2")], ["a lost graph break", "other counts"]),
        ([report(BREAK)], [report(python="3.13.0")], ["a lost graph break", "other counts"]),
    ],
)
def test_compare(stored: list[Any], now: list[Any], expected: list[str]) -> None:
    assert [d.what for d in compare({"outputs": stored}, {"outputs": now})] == expected


def test_several_reports_are_told_apart() -> None:
    (found, *_) = compare({"outputs": [report(), report()]}, {"outputs": [report(), report(BREAK)]})
    assert found.what == "report 2: a new graph break"
    assert "graph_break()" in found.detail


def test_outline_is_what_is_compared() -> None:
    made = Report(
        summary=Summary(graphs=2, breaks=1, compile_seconds=0.8), versions={"torch": "2.13.0+cpu", "python": "3.11.7"}
    )
    made.breaks.append(Break(id="b0", file="<cell>", cell=2, line=4, type="graph_break()", outcome="resumed"))
    found = outline(made.to_dict())
    assert found["breaks"] == [moved(place="In[2]")]
    assert (found["torch"], found["python"]) == ("2.13.0", "3.11.7")
    assert found["summary"]["graphs"] == 2
    assert "compile_seconds" not in found["summary"]


def test_structure_may_lie_in_the_metadata() -> None:
    output = nbformat.v4.new_output("display_data", {"text/plain": "x"}, metadata={MIME: {"breaks": []}})
    assert outlines([output]) == [{"breaks": []}]


@pytest.mark.parametrize(
    ("text", "ours", "expected"),
    [
        ("<function f at 0x7f00deadbeef>", False, "<function f at 0x…>"),
        ("color 0xff00", False, "color 0xff00"),
        ("took 3.2 s", False, "took 3.2 s"),
        ("compiled in 0.84 s, 31\n    ms", True, "compiled in … s, …\n    s"),
        ("/home/a/.venv/lib/python3.11/site-packages/torch/x.py:3: W", False, "torch/x.py:3: W"),
        ("/tmp/ipykernel_77/123.py:4: UserWarning", False, "<cell>:4: UserWarning"),
        ("In[3]:4 and shape (3, 4) s", True, "In[3]:4 and shape (3, 4) s"),
    ],
)
def test_stable(text: str, ours: bool, expected: str) -> None:
    assert stable(text, ours) == expected


def test_times_inside_a_picture_go_too() -> None:
    svg = "<svg><text>0.84 s</text></svg>"
    html = f'<img src="data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}">'
    encoded = stable(html, ours=True).partition("base64,")[2].partition('"')[0]
    assert base64.b64decode(encoded).decode() == "<svg><text>… s</text></svg>"


def test_widgets_leave_nothing() -> None:
    view = "application/vnd.jupyter.widget-view+json"
    outputs = [
        nbformat.v4.new_output("display_data", {view: {"model_id": "1"}, "text/plain": "Box()"}),
        nbformat.v4.new_output("display_data", {view: {"model_id": "2"}, "text/plain": "B()", "text/html": "<b>kept</b>"}),
    ]
    assert [dict(o.data) for o in normalized(outputs)] == [{"text/html": "<b>kept</b>"}]


def test_removed_outputs_are_not_stored() -> None:
    out = nbformat.v4.new_output("stream", name="stdout", text="out")
    err = nbformat.v4.new_output("stream", name="stderr", text="err")
    assert normalized([out, err], {"remove-output"}) == []
    assert normalized([out, err], {"remove-stderr"}) == [out]


def test_each_path_of_a_long_token_goes() -> None:
    """In base64 there is no space: a search from each of its characters would take hours."""
    image = "iVBORw0KGgo/" * 200_000
    assert stable(image) == image
    assert stable("/a/site-packages/b.py:/c/site-packages/d.py /tmp/ipykernel_3/4.py") == "d.py <cell>"


def test_the_figures_of_a_profile_are_not_stored() -> None:
    text = "f: 1 graph\n\nrun time: 1 ms a call\n    gaps 3%\n  → Fix this\n\n- next\n\nnote: the profiler slows it\ndown"
    assert stable(text, ours=True) == "f: 1 graph\n\nrun time: not stored, as it differs from run to run\n\n- next"
    assert stable('<p style="x">the profiler slows the call</p></div>', ours=True) == "</div>"
    doubts = ["the profiler slows it\ndown", "the calls took very different times"]
    assert stable("\n".join(f"note: {note}" for note in ["one", *doubts, "two"]), ours=True) == "note: one\nnote: two"
    assert "pays back" not in stable("2 inputs: 1 makes\n    1. a: pays back after 3 calls", ours=True)
