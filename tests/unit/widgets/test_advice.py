"""Reasons said once, outcomes as they are, advice for the user before that for the compiler's developers."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from samples import loop, nested, one_break

from dynascope.compiler.report import Break, Counts, Fix, Hit, Report, Trial
from dynascope.compiler.report.measurements import FixSettings
from dynascope.compiler.report.overview import causes
from dynascope.widgets.features.breaks import MOVES, advice, outcome_words, reasons
from dynascope.widgets.features.places import Places
from dynascope.widgets.model import view_model
from dynascope.widgets.render.static_output import static_html
from dynascope.widgets.render.text import to_text
from dynascope.widgets.words import compiler_text


def told(type: str, explanation: str, reason: str = "") -> list[str]:
    b = one_break().breaks[0]
    b.type, b.reason, b.explanation = type, reason, explanation
    return reasons(b)


def test_advice_for_another_statement_is_left_out() -> None:
    """A loop cannot be made branchless; only what returns something can keep something from being returned."""
    others = ["If Dynamo is attempting to trace a return statement", "Note: Python `or`/`and` between"]
    hints = ["For the common pattern `if tensor_cond`", "Use `torch.cond`", *others, "Use it."]
    sources = {"    while x.sum() > 0:": "break", "    if x.sum() > 0:": "", "    if x.sum() > 0: return x": "raise",
               "    if x.sum() > 0: print(x)": "other"}  # fmt: skip
    breaks = [Break(id="b0", file="f.py", line=3, source=source, hints=hints, decides=way) for source, way in sources.items()]
    every = [["Co", "Us"], ["Fo", "Us", "Us"], ["Ch", "If", "Us"], ["Us"]]
    assert [[words[:2] for words in advice(Report(), b)] for b in breaks] == every


@pytest.mark.parametrize(
    ("type", "explanation"),
    [
        ("Data-dependent branching", "Detected data-dependent branching (e.g. `if x.sum() > 0:`). Dynamo does not support it."),
        ("Failed to trace builtin operator", "Dynamo does not know how to trace builtin operator `print` with some arguments"),
        ("Unsupported Tensor.item() call with capture_scalar_outputs=False",
         "Dynamo does not support tracing `Tensor.item()` with config.capture_scalar_outputs=False."),
    ],
)  # fmt: skip
def test_a_title_that_its_explanation_repeats_is_left_out(type: str, explanation: str) -> None:
    assert told(type, explanation) == [explanation]
    assert told(type, explanation, type) == [explanation]


def test_what_says_nothing_is_left_out() -> None:
    assert compiler_text("Skip `<function f at 0x7f00aa11bb>` (reason: None)", 200) == "Skip `<function f>`"
    assert compiler_text("cannot trace `print` with ['str'] (has_kwargs False)", 200) == "cannot trace `print` with ['str']"
    assert compiler_text("Skip f (reason: writes a file)", 200) == "Skip f (reason: writes a file)"
    assert compiler_text("a" * 83, 4) == "a" * 83, "an end that says what is left out saves too little"
    assert compiler_text("a" * 5000, 4) == "aaaa… (4,996 more characters)"


def test_a_title_that_says_more_stays() -> None:
    title, why = "Call to `torch._dynamo.graph_break()`", "User-inserted graph break."
    assert told(title, why) == [title, why]
    assert told("Dynamic shape operator", "Operator `nonzero`'s output depends on data.")[0] == "Dynamic shape operator"
    assert told("Some title", "") == ["Some title"]
    assert told("", "", "only a reason") == ["only a reason"]
    assert told("", "") == []


def test_a_verified_fix_is_the_first_step() -> None:
    b = one_break().breaks[0]
    chosen = Fix(id="x0", break_=b.id, title="Choose with torch.cond", verdict="verified", removes=[b.id])
    assert advice(Report(fixes=[chosen]), b)[0] == "A verified fix removes it: Choose with torch.cond."
    holds = advice(Report(fixes=[replace(chosen, verdict="conditional")]), b)[0]
    assert holds == "A fix that holds under a condition removes it: Choose with torch.cond."
    assert "A verified fix" not in " ".join(advice(Report(fixes=[replace(chosen, verdict="refused")]), b))


def test_a_fix_that_only_moves_a_break_is_not_said_to_remove_it() -> None:
    b = one_break().breaks[0]
    moved = Fix(id="x0", title="Move it", verdict="verified", removes=[b.id], before=Counts(breaks=1), after=Counts(breaks=1))
    assert advice(Report(fixes=[moved]), b)[0] == "A verified fix moves it: Move it."
    assert advice(Report(fixes=[replace(moved, after=Counts(breaks=0))]), b)[0] == "A verified fix removes it: Move it."


def test_nothing_is_advised_that_needs_another_torch() -> None:
    hints = ["Enable compiled autograd, too.", "Do it otherwise.", "Set `torch._dynamo.config.capture_scalar_outputs = True`."]
    file = "/x/site-packages/torch/nn/modules/module.py"
    steps = advice(Report(), Break(id="b0", file=file, line=3, outcome="resumed", hints=hints))
    assert steps[0].startswith("Set `torch._dynamo.config.capture_scalar_outputs")
    assert steps[1] == "The line is in torch's own code: move the call that leads to it out of the compiled code."
    assert not {*hints[:2]} & {*steps}
    assert advice(Report(), Break(id="b0", file="f.py", line=3, outcome="resumed", hints=hints))[0] == hints[1]
    assert advice(Report(), Break(id="b0", file="f.py", line=3, source="raise E", outcome="skipped"))[0].startswith("Raise it")
    alone = Break(id="b0", file="f.py", line=3, function="<listcomp>", outcome="skipped")
    assert advice(Report(), alone) == ["Move it out of the compiled code."], "there is no other line"
    logs = Break(id="b0", file="f.py", line=3, hints=["Add it to `torch._dynamo.config.ignore_logging_functions`."])
    assert advice(Report(), logs)[0].endswith(" (compiled code then logs nothing there)")
    made = replace(logs, type="Uninitialized nn.Module", source="super().__init__()", hints=["Ensure your nn.Module instance"])
    read = replace(logs, type="Tensor.tolist() with non-integer tensor", hints=["Ensure the input tensor to `tolist()` is"])
    for b, step in ((made, "Make the module outside of the compiled code, "), (read, "Keep the value in a tensor, or read")):
        assert advice(Report(), b)[0].startswith(step)


def test_a_setting_that_holds_for_another_break_is_not_advised() -> None:
    b = one_break().breaks[0]
    b.hints = ["Set `torch._dynamo.config.capture_scalar_outputs = True`."]
    settings: FixSettings = {"torch._dynamo.config.capture_scalar_outputs": True}
    other = Fix(id="x0", break_="b9", verdict="verified", removes=["b9"], settings=settings)
    assert advice(Report(fixes=[other]), b)[0].endswith("was tried, and not seen to remove the graph break.")
    gone = Report(fixes=[other, Fix(id="x1", break_=b.id, reason="it is gone")])
    assert "the graph break, as it is gone." in advice(gone, b)[0]
    untried = replace(other, verdict="untried")
    assert advice(Report(fixes=[untried]), b)[0].endswith("(the compiler's hint, not tried)")
    refused = [replace(other, verdict="refused"), replace(untried, break_=b.id)]
    assert "was tried at In[3]:4 and refused" in advice(Report(breaks=[b, replace(b, id="b9")], fixes=refused), b)[0]
    for refused[0].reason in ("the graph break stays", "the graph break makes way for another one"):  # b9 does
        assert "the compiler's hint, not tried" in advice(Report(breaks=[b, replace(b, id="b9")], fixes=refused), b)[0]


def test_no_general_hint_of_this_torch_is_the_first_step() -> None:
    hints = pytest.importorskip("torch._dynamo.graph_break_hints")
    general = ("DYNAMO_BUG", "DIFFICULT", "FUNDAMENTAL", "SUPPORTABLE", "CAUSED_BY_EARLIER_GRAPH_BREAK")
    b = one_break().breaks[0]
    for b.hints in (getattr(hints, name, []) for name in general):
        assert advice(Report(), b)[0].startswith("Move it out of the compiled code")


@pytest.mark.parametrize(
    ("flags", "first"),
    [
        ({}, "Graph breaks are errors here:"),
        ({"fullgraph": True}, "fullgraph allows no graph break at all:"),
        ({"fullgraph": False, "error_on_graph_break": True}, "error_on_graph_break is on here:"),
        ({"error_on_graph_break": False, "hints": ["Use the same shapes."]}, "Use the same shapes."),
        ({"fullgraph": True, "type": "RuntimeError when making fake tensor call", "hints": ["Pad it."]}, "Pad it."),
        ({"reason": "This operator doesn't work unless it is captured completely", "hints": ["Pad it."]}, "Pad it."),
        ({"fullgraph": True, "error": "KeyError: 'k'", "hints": ["Pad it."]}, "Pad it."),
        ({"outcome": "skipped", "allowed": True}, "Nothing to do"),
        ({"outcome": "skipped", "error": "There was no fake impl registered for <CustomOpDef(f)>."}, "Say which shape"),
    ],
)
def test_advice_on_an_error_names_a_flag_only_if_it_is_known(flags: dict[str, Any], first: str) -> None:
    (step,) = advice(Report(), Break(**{"id": "b0", "file": "f.py", "line": 3, "outcome": "raised"} | flags))
    assert step.startswith(first)


def broken_in_the_middle() -> Report:
    """A break after which Dynamo could not resume: what came before it is compiled."""
    r = one_break()
    r.breaks[0].outcome = r.breaks[0].hits[0].outcome = "skipped"
    return r


def test_where_only_the_rest_runs_eagerly_no_frame_is_said_to_be_skipped() -> None:
    model = view_model(broken_in_the_middle())
    assert model["breaks"][0]["outcome_text"] == "rest runs eagerly"
    assert model["details"]["b0"]["facts"][0][1] == "the rest of the frame runs eagerly"
    report = broken_in_the_middle()
    report.breaks[0].type = "Attempted to wrap strided NestedTensor"
    assert advice(report, report.breaks[0])[0].startswith("No graph can have such a tensor: ")
    assert any(line.get("reason") == "break · rest runs eagerly" for line in model["sources"][0]["lines"])
    report = one_break()
    report.frames[1].status, report.frames[1].reason = "ignored", "no tensor-related objects found in frame"
    told = outcome_words(Places(report), report.breaks[0])
    assert told == "the rest of the frame runs eagerly: Dynamo found no tensor passed to it"
    report.breaks[0].hits[0].resumes = []  # as in a wrapper, which calls the function anew
    assert outcome_words(Places(report), report.breaks[0]) == "resumed"
    report.frames[0].reason = report.frames[1].reason
    assert outcome_words(Places(report), report.breaks[0]).startswith("the whole frame runs eagerly: Dynamo found no tensor")


def test_a_break_names_the_frame_that_it_makes_run_eagerly() -> None:
    r = loop()
    b = r.breaks[1]
    assert "(the whole frame runs eagerly)" in to_text(r, colour=False, width=100)  # its own
    assert any(step.startswith(MOVES) for step in advice(r, b))
    (skipped,), reason = [f for f in r.frames if f.stopped_by == b.id], "torch.compile does not support sparse Tensors"
    told, skipped.reason = skipped.reason, reason  # it is skipped also without the break
    assert "at the break at In[3]:11: torch.compile" in to_text(r, colour=False, width=100)
    assert not any(step.startswith(MOVES) for step in advice(r, b))
    skipped.reason = told
    b.function = "deep_inside"
    assert "(decode runs eagerly)" in to_text(r, colour=False, width=100)
    b.hits.append(Hit(frame="f3", line=15, outcome="skipped"))  # its code before the break is compiled
    assert "(decode and the rest of mix run eagerly, " in to_text(r, colour=False, width=100)
    b.hits.pop()
    facts = view_model(r)["details"]["b1"]["facts"]
    assert ["runs eagerly", "decode (3/0)", "f2"] in [[a, f"{v.split(' (')[0]} (3/0)", id] for a, v, id in facts]


def test_of_many_frames_that_run_eagerly_some_are_named_and_the_others_counted() -> None:
    r = nested()
    b = r.breaks[0]
    b.outcome = "skipped"
    for hit in b.hits:
        eager = r.frame(hit.frame)
        hit.outcome = eager.status = "skipped"
        eager.stopped_by = b.id
    assert "(f, g and 2 more run eagerly" in to_text(r, colour=False, width=100)


def test_the_static_table_says_what_to_do() -> None:
    r = loop()
    for b in r.breaks:
        b.hints = ["Use `torch.cond` <here>."]
    assert static_html(r).count("→ Use torch.cond &lt;here&gt;.") == len(r.breaks)


@pytest.mark.parametrize(
    ("file", "type", "explanation", "hint"),
    [
        ("/x/site-packages/torch/optim/optimizer.py", "Call to `torch._dynamo.graph_break()`", "User-inserted graph break.",
         "Remove the `torch._dynamo.graph_break()` call."),
        ("train.py", "Attempted to inline function marked as skipped",
         "Dynamo developers have intentionally marked that the function `Optimizer.zero_grad` should not be traced.",
         "Avoid calling the function `Optimizer.zero_grad`."),
        ("train.py", "Unsupported Tensor.backward() call",
         "Dynamo currently does not support tracing `Tensor.backward()`.", "Move the call out."),
    ],
)  # fmt: skip
def test_what_torch_breaks_by_design_is_left(file: str, type: str, explanation: str, hint: str) -> None:
    [b] = one_break().breaks
    b.file, b.type, b.explanation, b.hints = file, type, explanation, [hint]
    first, *others = advice(Report(), b)
    # what it costs is measured: not said here
    assert first.startswith("This break is by design. In a training loop, compile the forward pass and the loss")
    assert hint not in others
    b.outcome = "skipped"
    assert advice(Report(), b)[0].startswith("Compile the forward pass and the loss")


def test_backward_is_left_where_an_optimizer_is_or_torch_cannot_trace_it() -> None:
    [b] = one_break().breaks
    b.type, b.explanation, b.hints = "Unsupported Tensor.backward() call", "`Tensor.backward()`", ["Set torch._dynamo.x=True"]
    step = replace(b, id="b1", explanation="the function `Optimizer.step` should not be traced.")
    assert advice(Report(breaks=[b]), b)[0] == "Set torch._dynamo.x=True (the compiler's hint, not tried)"
    assert advice(Report(breaks=[b, step]), b)[0].startswith("This break is by design")


def test_a_break_by_design_is_not_what_to_do_first() -> None:
    r = one_break()
    own = replace(r.breaks[0], id="b9", type="Unsupported Tensor.backward() call", explanation="`Tensor.backward()`", hits=[
        Hit(frame="f0", line=3, outcome="resumed") for _ in range(5)])  # fmt: skip
    r.breaks = [*r.breaks, own, replace(r.breaks[0], id="b8", type="Unsupported context manager")]
    assert [cause.breaks for cause in causes(r)] == [["b8"], ["b0"], ["b9"]], "what is to be left is last"
    assert advice(r, r.breaks[0])[0].startswith("The program asks for it: remove the `torch._dynamo.graph_break()` call")
    for b, searches in ((own, False), (r.breaks[2], True)):
        r.breaks, r.settings, r.trials = [b], {"backend": "eager"}, [Trial(breaks=1)]
        assert ("`--fix`" in to_text(r, colour=False)) is searches, "no change is looked for where none is meant"


def test_a_setting_that_nobody_has_tried_is_told_as_a_hint() -> None:
    b = replace(one_break().breaks[0], hints=["Set `torch._dynamo.config.capture_scalar_outputs = True` to capture it."])
    report = Report(breaks=[b])
    assert advice(report, b)[0].endswith("= True` to capture it. (the compiler's hint, not tried)")
    settings: FixSettings = {"torch._dynamo.config.capture_scalar_outputs": True}
    report.trials = [Trial(breaks=1), Trial(settings=settings, breaks=0, removes=[b.id])]
    assert advice(report, b)[0].endswith("= True` to capture it. (tried: 1 becomes 0 graph breaks when the calls are repeated)")
    assert Trial(breaks=1, graphs=2).no_gain_over(Trial(breaks=1, graphs=0, skipped=1)) is None, "the next one was hidden"
    report.trials[1].removes = ["b9"]
    assert "was tried, and not seen to remove the graph break" in advice(report, b)[0]
    report.trials[1] = Trial(settings=settings, harm="it ends in an error: InternalTorchDynamoError: no")
    assert advice(report, b)[0].startswith("Keep the value in a tensor, or read it outside of the compiled code: ")
    assert "it ends in an error: InternalTorchDynamoError: no." in advice(report, b)[0]
