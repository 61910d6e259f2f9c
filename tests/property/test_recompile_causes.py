"""Generated programs in which one thing changes from call to call: every recompile has the right cause, line and values.

A program reads sizes, numbers, globals, attributes and containers, each on a line of its own, in the compiled function or in
one that it calls.  Each call changes one of them to a value that it never had.
"""

from __future__ import annotations

import types
from dataclasses import dataclass, field
from typing import Any

import torch
from example_counts import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from observed import loaded

from dynascope.compiler.capture.recording import observe

EXAMPLES = examples(8)


@dataclass
class Kind:
    """Something that a program reads: how, and what a failed guard says of it."""

    #: the statement; `{n}` is its number
    line: str
    #: kind and source of the guard that fails
    guard: str
    source: str
    #: the n-th value; and the values then and now, as the report has them
    values: list[Any]
    texts: list[str] = field(default_factory=list)

    def text(self, index: int) -> str:
        return self.texts[index] if self.texts else repr(self.values[index])


KINDS = {
    "number": Kind("x = x * n{n}", "value", "n{n}", [2, 3, 5, 7, 11]),
    "float": Kind("x = x + (f{n} if f{n} > 0.3 else -f{n})", "value", "f{n}", [0.25, 0.5, 0.75, 1.5, 2.5]),
    "text": Kind("x = x + len(t{n})", "value", "t{n}", ["a", "bb", "ccc", "dddd", "eeeee"]),
    "global": Kind("x = x - G{n}", "value", "G{n}", [2, 3, 5, 7, 11]),
    "attribute": Kind("x = x * config.a{n}", "value", "config.a{n}", [2, 3, 5, 7, 11]),
    "nested": Kind("x = x * config.inner.b{n}", "value", "config.inner.b{n}", [0.5, 1.5, 2.5, 3.5, 4.5]),
    "entry": Kind("x = x + d{n}['key']", "value", "d{n}['key']", [2, 3, 5, 7, 11]),
    "item": Kind("x = x + l{n}[0]", "value", "l{n}[0]", [2, 3, 5, 7, 11]),
    "length": Kind("x = x + len(c{n})", "length", "c{n}", [1, 2, 3, 4, 5]),
    "size": Kind("x = x + s{n}.sum()", "size", "s{n}", [2, 3, 4, 5, 6]),
    "dtype": Kind(
        "x = x + y{n}.mean()", "dtype", "y{n}", [torch.float32, torch.float64, torch.bfloat16], ["Float", "Double", "BFloat16"]
    ),
}


@dataclass
class Changing:
    """A program: what it reads, which of it in a helper, and what changes at each call after the first."""

    reads: list[str]
    helped: list[bool]
    changes: list[int]

    def lines(self) -> tuple[str, list[int]]:
        """The program's text, and the line of each read."""
        names = [f"{p}{n}" for n, kind in enumerate(self.reads) for p in _parameters(kind)]
        head = ", ".join(["x", "config", *names])
        text, at = [], [0] * len(self.reads)
        for n, kind in enumerate(self.reads):
            if self.helped[n]:
                text += [f"def helper{n}({head}):", "    " + KINDS[kind].line.format(n=n), "    return x"]
                at[n] = len(text) - 1
        text.append(f"def f({head}):")
        for n, kind in enumerate(self.reads):
            text.append(f"    x = helper{n}({head})" if self.helped[n] else "    " + KINDS[kind].line.format(n=n))
            at[n] = at[n] or len(text)
        return "\n".join([*text, "    return x"]) + "\n", at


def _parameters(kind: str) -> list[str]:
    letters = {
        "number": "n", "float": "f", "text": "t", "entry": "d", "item": "l", "length": "c", "size": "s", "dtype": "y",
    }  # fmt: skip
    return [letters[kind]] if kind in letters else []


@st.composite
def programs(draw: st.DrawFn) -> Changing:
    reads = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=4))
    helped = draw(st.lists(st.booleans(), min_size=len(reads), max_size=len(reads)))
    changes = draw(st.lists(st.integers(0, len(reads) - 1), min_size=1, max_size=4))
    kept = []
    for n in changes:
        if kept.count(n) < len(KINDS[reads[n]].values) - 1:
            kept.append(n)
    return Changing(reads, helped, kept)


def arguments(program: Changing, module: Any, at: list[int]) -> list[Any]:
    """The arguments of a call in which the n-th read has its at[n]-th value; sets globals and attributes."""
    config = types.SimpleNamespace(inner=types.SimpleNamespace())
    found: list[Any] = []
    for n, kind in enumerate(program.reads):
        value = KINDS[kind].values[at[n]]
        if kind == "global":
            setattr(module, f"G{n}", value)
        elif kind == "attribute":
            setattr(config, f"a{n}", value)
        elif kind == "nested":
            setattr(config.inner, f"b{n}", value)
        else:
            made = {
                "entry": lambda v: {"key": v}, "item": lambda v: [v], "length": lambda v: list(range(v)),
                "size": lambda v: torch.ones(v), "dtype": lambda v: torch.ones(2, dtype=v),
            }.get(kind, lambda v: v)  # fmt: skip
            found.append(made(value))
    return [torch.ones(3), config, *found]


@settings(max_examples=EXAMPLES, deadline=None, print_blob=True, suppress_health_check=list(HealthCheck))
@given(programs())
def test_every_recompile_has_its_cause_and_line(program: Changing) -> None:
    source, lines = program.lines()
    module = loaded("changing", source, torch=torch)
    torch._dynamo.reset()
    compiled = torch.compile(module.f, backend="eager", dynamic=False)
    at = [0] * len(program.reads)
    expected = []
    with observe() as recording:
        compiled(*arguments(program, module, at))
        for call, n in enumerate(program.changes, 2):
            kind = KINDS[program.reads[n]]
            at[n] += 1
            compiled(*arguments(program, module, at))
            values = (kind.text(at[n] - 1), kind.text(at[n]))
            expected.append((call, kind.guard, kind.source.format(n=n), lines[n], *values))
    told = []
    for recompile in recording.report.recompiles:
        guard = recompile.failed_guards[0]
        line = guard.at.line if guard.at is not None else None
        told.append((recompile.call, guard.kind, guard.source, line, guard.before, guard.actual or guard.now))
    assert told == expected
    assert [r.entries for r in recording.report.recompiles] == list(range(2, len(expected) + 2))
