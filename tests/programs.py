"""Small programs with known graphs, breaks and skips, run through every way into dynascope.

Most follow a situation that PyTorch's documents on graph breaks describe, in our own words.  A program is the text of a cell.
The line `@compiled` precedes the function to compile; it stays a decorator for `observe`, and becomes a comment for
`%%compile`, so line numbers are the same.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

import pytest
import torch

#: whether instructions have columns (Python 3.11 and later): without them, two breaks on one line are one place
COLUMNS = hasattr(CodeType, "co_positions")
#: whether torch notices that an attribute of a module has changed: before 2.13, under Python 3.13.0, it runs the old code
_OLD_TORCH = torch.__version__.startswith(("2.9.", "2.10.", "2.11.", "2.12."))
NOTICES_ATTRIBUTES = not (sys.version_info[:3] == (3, 13, 0) and _OLD_TORCH)


@dataclass(frozen=True)
class Program:
    """A cell, and what its report must say."""

    name: str
    #: where it ends in a function, `fn(torch.randn(3))` follows
    code: str
    #: keyword arguments of `dynascope.compile`, which are also options of `%%compile`
    options: dict[str, object] = field(default_factory=dict)
    #: lines of the cell that each graph captured, in the order of capture
    graphs: tuple[tuple[int, ...], ...] = ()
    #: (line, outcome) of every break, in order
    breaks: tuple[tuple[int, str], ...] = ()
    #: number of hits of each break; (): not compared
    hits: tuple[int, ...] = ()
    resumes: int = 0
    #: names of skipped frames
    skipped: tuple[str, ...] = ()
    recompiles: int = 0
    #: type of the error that the compiler raised
    error: str | None = None
    #: torch release -> how the program differs there, where it is skipped (see examples/reference/torch_versions.md)
    unlike: dict[str, str] = field(default_factory=dict)

    def text(self, decorator: str = "# compiled by the magic") -> str:
        text = self.code.replace("@compiled", decorator).lstrip("\n")
        text += "\nfn(torch.randn(3))\n" if text.splitlines()[-1].startswith(" ") else ""
        above, _, call = text.rstrip("\n").rpartition("\n")
        caught = f"{above}\ntry:\n    {call}\nexcept Exception as error:\n    print(type(error).__name__)\n"
        return caught if self.error else text

    @property
    def places(self) -> list[tuple[int, str]]:
        """(line, outcome) of each break that a report has; without columns, equal ones are one."""
        return list(self.breaks if COLUMNS else dict.fromkeys(self.breaks))


def flags(options: Mapping[str, object]) -> str:
    """Options that are on or off, as the magic takes them."""
    return " ".join(("--" if on else "--no-") + name.replace("_", "-") for name, on in options.items())


def skip_where_unlike(program: Program) -> None:
    for release, difference in program.unlike.items():
        if torch.__version__.startswith(release):
            pytest.skip(f"torch {release}: {difference}")


def check(program: Program, report: Any, shift: int = 0) -> None:
    """Assert that a report says what the program expects; `shift`: number of lines above the program in its cell."""
    assert [(b.line - shift, b.outcome) for b in report.breaks] == program.places
    lines = [
        tuple(sorted({n.line - shift for n in g.nodes if n.op.startswith("call_") and n.line and n.file.startswith("<")}))
        for g in report.graphs
    ]
    assert lines == list(program.graphs)
    assert tuple(f.name for f in report.frames if f.status == "skipped") == program.skipped
    assert all(f.reason for f in report.frames if f.status == "skipped")
    assert report.summary.resumes == program.resumes
    assert report.summary.recompiles == program.recompiles
    if program.hits:
        assert tuple(len(b.hits) for b in report.breaks) == program.hits
    assert (report.error.type if report.error else None) == program.error
    for frame in report.frames:
        if frame.kind == "resume":
            assert frame.break_ is not None
            assert frame.continues is not None
            assert frame.id in [r for h in report.break_(frame.break_).hits for r in h.resumes]
    # what Dynamo was doing at the break is not the reason of the break
    assert not any(b.reason.startswith(("Encountered graph", "Failed to handle", "Graph break in")) for b in report.breaks)
    assert report.unread == {}
    assert all(took is True for took in report.hooks.values()), report.hooks


_DECORATED = """
def noisy(x):
    x = x + 1
    torch._dynamo.graph_break()
    return x + 2

def middle(x):
    return noisy(x)

@compiled
def fn(x):
"""
_TWO = """
def first(x):
    return x + 1

def second(x):
    return x + 2

@compiled
def fn(x):
    x = first(x)
"""
PROGRAMS = [
    # (): the resume function of the decorator's wrapper only passes a tensor on
    Program("allowed_in_a_decorated_function", """
@torch._dynamo.error_on_graph_break(False)""" + _DECORATED + """    return middle(x)
""", {"error_on_graph_break": True}, graphs=((3,), (5,), ()), breaks=((4, "resumed"),), hits=(4,), resumes=2),
    Program("allowed_by_patching_a_library", """
class Foreign(torch.nn.Module):
    def forward(self, x):
        x = x + 1
        torch._dynamo.graph_break()
        return x + 2

foreign = Foreign()
foreign.forward = torch._dynamo.error_on_graph_break(False)(foreign.forward)

@compiled
def fn(x):
    return foreign.forward(x)
""", {"error_on_graph_break": True}, graphs=((3,), (5,), ()), breaks=((4, "resumed"),), resumes=2),
    Program("refused_in_a_decorated_function", """
@torch._dynamo.error_on_graph_break(True)""" + _DECORATED + """    x = x + 4
    torch._dynamo.graph_break()
    return middle(x)
""", graphs=((12,),), breaks=((13, "resumed"), (4, "raised")), resumes=1, error="Unsupported"),
    Program("an_inner_fullgraph_refuses", """
@torch.compile(fullgraph=True, backend="eager")
def inner(x):
    x = x + 1
    torch._dynamo.graph_break()
    return x + 2

@compiled
def fn(x):
    return inner(x)
""", breaks=((4, "raised"),), error="Unsupported"),
    Program("skipped_on_request", _TWO + """    torch._dynamo.skip_frame()
    return second(x)
""", graphs=((2,), (5,)), breaks=((10, "skipped"),), skipped=("fn",)),
    Program("skipped_by_a_break_in_a_loop", """
@compiled
def fn(x):
    for i in range(5):
        x = x + 1
        if i == 3:
            torch._dynamo.graph_break()
    return x
""", breaks=((6, "skipped"),), skipped=("fn",)),
    Program("the_loop_unrolled_by_hand", """
@compiled
def fn(x):
    def step(i):
        nonlocal x
        x = x + 1
        if i == 1:
            torch._dynamo.graph_break()
    step(0)
    step(1)
    step(2)
    return x
""", graphs=((5,), (5,), (5,)), breaks=((7, "resumed"),), hits=(2,), resumes=2),
    Program("a_context_manager_that_can_be_resumed", """
import contextlib

@compiled
def fn(x):
    with contextlib.nullcontext():
        with torch.no_grad():
            x = x + 1
            torch._dynamo.graph_break()
            return x + 1
""", graphs=((7,), (9,)), breaks=((8, "resumed"),), resumes=1),
    Program("skipped_by_a_break_in_a_try_block", """
@compiled
def fn(x):
    try:
        x = x + 1
        torch._dynamo.graph_break()
        return x + 1
    except Exception:
        pass
""", breaks=((5, "skipped"),), skipped=("fn",)),
    Program("the_skip_isolated_in_a_function", _TWO + """    def problem():
        torch._dynamo.skip_frame()
    problem()
    return second(x)
""", graphs=((2,), (5,)), breaks=((11, "skipped"),), hits=(2,), resumes=1, skipped=("problem",),
            unlike={"2.9": "the caller's break is told at the call, as a place of its own"}),
    Program("an_iterator_as_input", """
@compiled
def fn(xs):
    a = next(xs)
    b = next(xs)
    return a + b

fn(iter([torch.tensor(1.0), torch.tensor(2.0)]))
""", {"fullgraph": True}, breaks=((3, "raised"),), error="Unsupported"),
    Program("nonstrict_trace_takes_what_breaks", """
def wave(x):
    y = x.sin()
    torch._dynamo.graph_break()
    return y.sin()

@compiled
def fn(x):
    return torch._dynamo.nonstrict_trace(wave)(x.cos())
""", {"fullgraph": True}, graphs=((8,),)),
    Program("a_break_under_fullgraph", """
def number():
    torch._dynamo.graph_break()
    return torch.tensor([42])

@compiled
def fn(x):
    return x + number()
""", {"fullgraph": True}, breaks=((2, "raised"),), error="Unsupported"),
    Program("an_opaque_custom_operator", """
@torch.library.custom_op("dynascope_tests::square", mutates_args=())
def square(x: torch.Tensor) -> torch.Tensor:
    return x * x

@square.register_fake
def _(x):
    return torch.empty_like(x)

@compiled
def fn(x):
    return square(x) + 1
""", {"fullgraph": True}, graphs=((11,),)),
    # from here on, not from PyTorch's documents; the README's table of counts has several of them
    Program("one_break_four_calls_deep", """
def d(x):
    x = x + 1
    torch._dynamo.graph_break()
    return x * 2

def c(x):
    return d(x) + 1

def b(x):
    return c(x) + 1

@compiled
def fn(x):
    return b(x) + 1
""", graphs=((2,), (4,), (7,), (10,), (14,)), breaks=((3, "resumed"),), hits=(4,), resumes=4),
    Program("a_helper_that_breaks_called_five_times", """
def helper(x):
    torch._dynamo.graph_break()
    return x * 2

@compiled
def fn(x):
    x = helper(x)
    x = helper(x)
    x = helper(x)
    x = helper(x)
    return helper(x)
""", graphs=((3,),), breaks=((2, "resumed"),), hits=(6,), resumes=5),
    Program("a_data_dependent_branch", """
@compiled
def fn(x):
    x = x + 1
    if x.sum() > 0:
        return x * 2
    return x * 3

fn(torch.ones(3))
""", graphs=((3, 4), (5,)), breaks=((4, "resumed"),), resumes=1),
    Program("two_breaks_on_one_line", """
@compiled
def fn(x):
    x = x + 1
    torch._dynamo.graph_break(); torch._dynamo.graph_break()
    return x + 2
""", graphs=((3,), (5,)), breaks=((4, "resumed"), (4, "resumed")), resumes=2),
    Program("a_callee_that_is_skipped", """
def loop(x):
    for i in range(2):
        x = x + i
        torch._dynamo.graph_break()
    return x

@compiled
def fn(x):
    y = loop(x * 2)
    return y + 1
""", graphs=((9,), (10,)), breaks=((4, "skipped"),), hits=(2,), resumes=1, skipped=("loop",)),
    Program("recompiled_for_another_number", """
@compiled
def fn(x, n):
    return x * n

fn(torch.ones(3), 2)
fn(torch.ones(3), 3)
""", graphs=((3,), (3,)), recompiles=1),
]  # fmt: skip
