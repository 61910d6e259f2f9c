"""Made programs through `explain(f, fix=True)` and `%%compile --fix`: what is chosen holds on inputs new to the search.

All operations keep shape and type.  `DYNASCOPE_EXAMPLES=300 pytest --hypothesis-show-statistics` draws 300 programs and says
how many of them were fixed.
"""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

import torch
from example_counts import examples
from hypothesis import HealthCheck, Phase, assume, event, given, settings
from hypothesis import strategies as st
from notebook import Notebook

sys.path.insert(0, str(Path(__file__).parent.parent / "fixes"))
from harness import fixed, outcome, quiet, same

import dynascope
from dynascope.compiler.report import Report

RECORDED = "torch.linspace(-1, 2, 4)"
NEW = ("torch.linspace(-3, 1, 4)", "torch.tensor([2., -0.5, 0.25, 0.])", "-torch.ones(4) * 9", "torch.ones(7) / 3")
#: said of fixes that hold only where no gradients are asked for
NO_GRADIENTS = "No gradients are asked for"
WITH_GRADIENT = ("torch.linspace(-2, 3, 4).requires_grad_()",)
HEAD, RETURNED = "import torch\n\ndef f(x):\n", "y, z * 1\n"
NAMES = st.sampled_from(["x", "y", "z"])
NUMBER = st.sampled_from(["0.5", "2", "-1", "1.5"])


@st.composite
def value(draw: st.DrawFn) -> str:
    a, b, c = draw(NAMES), draw(NAMES), draw(NUMBER)
    forms = [f"{a} * {c}", f"{a} + {b}", f"{a} - {c}", f"torch.sin({a})", f"{a}.abs() + {c}"]
    return draw(st.sampled_from([*forms, f"torch.where({a} > 0, {b}, {c})", a]))


@st.composite
def condition(draw: st.DrawFn) -> str:
    a, b, c = draw(NAMES), draw(NAMES), draw(NUMBER)
    forms = [
        f"{a}.sum() > {c}", f"({a} > {c}).any()", f"not ({a} > {c}).all()", f"{a}.mean().item() < {c}",
        f"{a}.max() > {c} and {b}.min() < 1", f"-2 < {a}.sum() < 3", f"bool(({a} < {b}).all())",
        f"{a}.sum() < {c} or {b}[0] > 0", f"torch.equal({a}, {b}.abs())",
    ]  # fmt: skip
    return draw(st.sampled_from(forms))


@st.composite
def assignments(draw: st.DrawFn, indent: str) -> list[str]:
    def one() -> str:
        operator = draw(st.sampled_from(["=", "=", "+=", "*="]))
        return f"{indent}{draw(st.sampled_from(['y', 'z']))} {operator} {draw(value())}"

    return [one() for _ in range(draw(st.integers(1, 2)))]


@st.composite
def statement(draw: st.DrawFn, indent: str = "    ", nested: bool = False) -> list[str]:
    kinds = ["assign", "branch", "branch", "choice", "number", "print", "mask", "while"]
    kind = draw(st.sampled_from(kinds if nested else [*kinds, "for", "return", "raise"]))
    inner = indent + "    "
    a, c = draw(NAMES), draw(NUMBER)
    if kind == "assign":
        return draw(assignments(indent))
    if kind == "branch":
        lines = [f"{indent}if {draw(condition())}:  # {kind}", *draw(assignments(inner))]
        if draw(st.booleans()):
            lines += [f"{indent}elif {draw(condition())}:", *draw(assignments(inner))]
        if draw(st.booleans()):
            lines += [f"{indent}else:", f"{inner}# otherwise", *draw(assignments(inner))]
        return lines
    if kind == "choice":
        return [f"{indent}y = {draw(value())} if {draw(condition())} else {draw(value())}"]
    if kind == "number":
        number = draw(st.sampled_from([f"{a}.mean().item()", f"float({a}.max())", f"({a} * 2).sum().item() + 1"]))
        name = draw(st.sampled_from(["k", "n"]))
        return [f"{indent}{name} = {number}", f"{indent}z = {draw(NAMES)} * {name}"]
    if kind == "print":
        forms = [f'print("{a}", {a}.sum().item())', f'print(f"{{{a}.mean():.2f}} of", {c})', f"print({a})", 'print("half way")']
        line = draw(st.sampled_from(forms))
        return (
            [f"{indent}if {draw(condition())}:", f"{inner}{line}"]
            if draw(st.booleans()) and not nested
            else [f"{indent}{line}"]
        )
    if kind == "mask":
        return [f"{indent}m = y > {c}", f"{indent}if m.any():", f"{inner}y = y.clone()", f"{inner}y[m] = {a}[m] * 2"]
    if kind == "while":
        return [f"{indent}while y.abs().sum() < 20:", f"{inner}y = y.abs() * 2 + 1", f"{inner}# again"]
    if kind == "for":
        body = [line for _ in range(draw(st.integers(1, 2))) for line in draw(statement(inner, True))]
        return [f"{indent}for i in range(2):", *body]
    if kind == "return":
        return [f"{indent}if {draw(condition())}:", f"{inner}return {draw(value())}, {draw(value())}"]
    return [f"{indent}if {draw(condition())}:", f'{inner}raise ValueError("out of range")']


@st.composite
def programs(draw: st.DrawFn) -> str:
    body = [line for _ in range(draw(st.integers(1, 4))) for line in draw(statement())]
    text = "\n".join(["import torch", "", "def f(x):", "    y = x + 1", "    z = x * 2", *body, "    return y, z * 1", ""])
    return text.replace("\n", draw(st.sampled_from(["\n", "\n", "\r\n"])))


@settings(
    max_examples=examples(1, full=30),
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
@given(programs(), st.booleans())
def test_what_is_chosen_holds_on_new_inputs(text: str, is_cell: bool) -> None:
    """As a function, or its body as a cell, of which the fixed cell is a body again."""
    whole = text.replace("\r\n", "\n") if is_cell else text
    assume(not outcome(whole, RECORDED).error)
    if is_cell:
        body, _, _ = whole.removeprefix(HEAD).rpartition("    return ")
        assume("return" not in body)
        report, fixed_text = of_cell(textwrap.dedent(body) + RETURNED)
    else:
        done = fixed(whole, RECORDED, seconds=120)
        report, fixed_text = done.report, done.text
        assert done.traces == ""
    found = report.fixes_to_apply(conditional=True)
    assert found is not None
    assume(report.breaks)
    if not found.fixes:
        event("nothing is chosen" if found.is_complete else "cut short")
        return
    event("no break remains" if not found.after.breaks else "fewer breaks, or more is captured")
    chosen = [x for x in report.fixes or () if x.chosen]
    # a tensor that is printed names the function of its gradient, which is another one when compiled
    printed = is_cell and any(f"print({name})" in text for name in "xyz")
    inputs = NEW if printed or any(NO_GRADIENTS in x.condition for x in chosen) else NEW + WITH_GRADIENT
    torch._dynamo.reset()
    options = {"backend": "aot_eager", "fullgraph": not found.after.breaks}
    wrong = same(fixed_text, whole, inputs, "RuntimeError", found.settings, **options)
    assert not wrong, f"{[x.title for x in chosen]}\n{text}\n{fixed_text}\n{wrong}"


def of_cell(cell: str) -> tuple[Report, str]:
    """The report of a cell, and the function whose body is the fixed cell."""
    setup, notebook = f"import torch\nx = {RECORDED}", Notebook()
    plain = notebook.run(setup, cell)
    with quiet():
        done = notebook.run(setup, cell, "%%compile --fix --fix-seconds 120 --backend eager --view none", history=True)
    assert (done.names, done.same) == (plain.names, plain.same)
    report = dynascope.last()
    after = next(iter(report.fixes_to_apply(conditional=True).cells.values()), cell)
    lines = [line for line in after.removesuffix(RETURNED).splitlines() if not line.startswith(("%%compile", "import torch"))]
    sets = [line for line in lines if line.startswith("torch._dynamo.config")]
    body = textwrap.indent("\n".join(line for line in lines if line not in sets), "    ")
    return report, HEAD.replace("\n\n", "\n".join(["", *sets, ""]) + "\n") + f"{body}\n    return {RETURNED}"


def test_the_programs_are_various() -> None:
    seen: set[str] = set()

    @settings(max_examples=100, database=None)
    @given(programs())
    def look(text: str) -> None:
        compile(text, "program", "exec")
        seen.update(
            word for word in ("while", "print", "for", "raise", "item", "elif", "m.any", "return", "+=") if word in text
        )

    look()
    assert len(seen) == 9
