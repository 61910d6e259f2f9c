"""Generated programs, and what a compiler that follows Dynamo's rules does with each.

`programs()` draws a program as data; `text()` writes it as Python, one statement a line; `Model` walks it and
tells, knowing nothing of dynascope, which breaks are met, which frames are given up and what is raised.

The rules: a break ends a frame's graph and the frame goes on after it, unless it stands (itself, or the call
that leads to it) in a `for`, a `try` or a `with` of the user's own: then the whole frame runs eagerly, and what
it calls is compiled on its own.  Where a `try` or `with` comes after two or more operations, these are compiled
and only the rest runs eagerly.  A call whose callee breaks is a break of the caller at the same place.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import strategies as st

OPS = ("x = x + 1", "x = x * 2", "x = x.sin()", "x = torch.relu(x)", "x = x - x.mean()")
CALLS = (1, 1, 1, 1, 2)  # operations of each


@dataclass
class Statement:
    kind: str  # op, break, skip, call, branch, for, try, manager, no_grad, allow, forbid
    body: list[Statement] = field(default_factory=list)
    value: int = 0
    line: int = 0


@dataclass
class Function:
    name: str
    body: list[Statement]
    line: int = 0
    #: the flag of a decorator
    region: bool | None = None


def statements(callees: int, depth: int) -> st.SearchStrategy[Statement]:
    leaf = [
        st.builds(Statement, st.just("op"), st.just([]), st.integers(0, len(OPS) - 1)),
        st.builds(Statement, st.just("op"), st.just([]), st.integers(0, len(OPS) - 1)),
        st.builds(Statement, st.just("break")),
        st.builds(Statement, st.just("branch")),
    ]
    if callees:
        leaf.append(st.builds(Statement, st.just("call"), st.just([]), st.integers(0, callees - 1)))
    if depth == 0:
        return st.one_of(leaf)
    inner = st.lists(statements(callees, depth - 1), min_size=1, max_size=2)
    kinds = st.sampled_from(["for", "try", "manager", "no_grad", "allow", "forbid"])
    return st.one_of(*leaf, *leaf, st.builds(Statement, kinds, inner))


@st.composite
def programs(draw: st.DrawFn) -> list[Function]:
    count = draw(st.integers(1, 3))
    functions = []
    for i in range(count):  # a function calls only those before it; the last one is compiled
        functions.append(Function(f"f{i}", copies(draw(st.lists(statements(i, 1), min_size=1, max_size=4)))))
    text(functions)  # numbers the lines
    return functions


def copies(body: list[Statement]) -> list[Statement]:
    """Hypothesis may hand out the same object twice; each statement needs a line of its own."""
    return [Statement(s.kind, copies(s.body), s.value) for s in body]


_HEADS = {
    "for": "for i in range(2):", "try": "try:", "manager": "with Manager():", "no_grad": "with torch.no_grad():",
    "allow": "with torch._dynamo.error_on_graph_break(False):", "forbid": "with torch._dynamo.error_on_graph_break(True):",
}  # fmt: skip


def text(functions: list[Function]) -> str:
    lines = [
        "import torch",
        "class Manager:",
        "    def __enter__(self): pass",
        "    def __exit__(self, kind, error, trace): pass",
    ]
    for function in functions:
        if function.region is not None:
            lines.append(f"@torch._dynamo.error_on_graph_break({function.region})")
        lines.append(f"def {function.name}(x):")
        function.line = len(lines)
        _write(function.body, "    ", lines)
        lines.append("    return x")
    return "\n".join(lines) + "\n"


def _write(body: list[Statement], indent: str, lines: list[str]) -> None:
    for s in body:
        if s.kind == "op":
            lines.append(indent + OPS[s.value])
        elif s.kind == "break":
            lines.append(indent + "torch._dynamo.graph_break()")
        elif s.kind == "call":
            lines.append(f"{indent}x = f{s.value}(x)")
        elif s.kind == "branch":
            lines.append(f"{indent}if (x * 0).sum() == 0:")
            s.line = len(lines)
            lines.append(f"{indent}    x = x + 3")
            continue
        else:
            lines.append(indent + _HEADS[s.kind])
            s.line = len(lines)
            _write(s.body, indent + "    ", lines)
            if s.kind == "try":
                lines.extend([f"{indent}except ZeroDivisionError:", f"{indent}    pass"])
            continue
        s.line = len(lines)


class Refused(Exception):
    """The compiler raises at this line."""


class _Stop(Exception):
    """Tracing cannot go on at this line; `flag` is the setting in force there."""

    def __init__(self, line: int, flag: bool) -> None:
        self.line, self.flag = line, flag


@dataclass
class Model:
    """What becomes of a program: break line -> worst outcome, names of skipped frames, the refusal's line."""

    functions: list[Function]
    flag: bool = False
    breaks: dict[int, str] = field(default_factory=dict)
    skipped: set[str] = field(default_factory=set)
    refused: int | None = None

    def run(self) -> Model:
        try:
            self.frame(self.functions[-1], self.functions[-1].body, self.flag)
        except Refused as refusal:
            self.refused = refusal.args[0]
        return self

    # -- tracing: does anything in here stop the trace? ---------------------------------------------

    def trace(self, body: list[Statement], flag: bool) -> None:
        for s in body:
            self.trace_one(s, flag)

    def trace_one(self, s: Statement, flag: bool) -> None:
        if s.kind in ("break", "branch"):
            raise _Stop(s.line, flag)
        if s.kind == "call":
            self.trace(self.functions[s.value].body, flag)
        elif s.kind in ("allow", "forbid"):
            self.trace(s.body, s.kind == "forbid")
        elif s.body:
            self.trace(s.body, flag)

    # -- a frame: what is compiled, from its first statement on ---------------------------------------

    def frame(self, function: Function, body: list[Statement], flag: bool) -> None:
        """Compile and run the rest of a frame; `body` may hold the rest of blocks that a resume function re-enters."""
        rest = list(body)
        traced, first = 0, True
        while rest:
            s = rest.pop(0)
            try:
                self.trace_one(s, flag)
                traced += self.operations(s)
                continue
            except _Stop as stop:
                self.hit(stop, "resumed" if self.resumable(s) else "skipped")
                if not self.resumable(s):  # the frame, or what is left of it after the last break, runs eagerly
                    if s.kind == "for" or traced < 2:
                        self.skipped.add(function.name)
                        self.eager([*body[: len(body) - len(rest) - 1], s, *rest] if first else [s, *rest], flag)
                    else:
                        self.eager([s, *rest], flag)
                    return
            # the resume function starts with the branch's own statement, or enters and leaves the `with` that it is in
            traced, first = {"branch": 1, "no_grad": 2}.get(s.kind, 0), False
            if s.kind == "call":
                self.frame(self.functions[s.value], self.functions[s.value].body, flag)
            elif s.kind in ("allow", "forbid", "no_grad"):
                self.block(s, flag if s.kind == "no_grad" else s.kind == "forbid")

    def block(self, s: Statement, flag: bool) -> None:
        """The block of a resumable `with`, statement by statement."""
        for part in s.body:
            try:
                self.trace_one(part, flag)
                continue
            except _Stop as stop:
                self.hit(stop, "resumed")
            if part.kind == "call":
                self.frame(self.functions[part.value], self.functions[part.value].body, flag)

    def operations(self, s: Statement) -> int:
        """How many nodes a statement that traces through adds to the graph."""
        if s.kind == "op":
            return CALLS[s.value]
        body = self.functions[s.value].body if s.kind == "call" else s.body
        times = 2 if s.kind == "for" else 1
        return times * sum(map(self.operations, body)) + (2 if s.kind == "no_grad" else 0)

    def resumable(self, s: Statement) -> bool:
        return s.kind in ("break", "branch", "call", "no_grad", "allow", "forbid")

    def eager(self, body: list[Statement], flag: bool) -> None:
        """A frame that runs eagerly: its own breaks do nothing, what it calls is compiled on its own."""
        for s in body:
            if s.kind == "call":
                self.frame(self.functions[s.value], self.functions[s.value].body, flag)
            elif s.kind in ("allow", "forbid"):
                self.eager(s.body, s.kind == "forbid")
            elif s.body:
                self.eager(s.body, flag)

    def hit(self, stop: _Stop, outcome: str) -> None:
        """A break is met, with this outcome unless it is an error."""
        met = [self.breaks.get(stop.line, "resumed"), "raised" if stop.flag else outcome]
        self.breaks[stop.line] = max(met, key=("resumed", "skipped", "raised").index)
        if stop.flag:
            raise Refused(stop.line) from None
