"""Generated programs with regions, and what must become of each break: the innermost setting wins, fullgraph over all.

A program is drawn as data, with flags for the whole run and regions on functions and on statements.  It can be written in
two ways that must come to the same: `--region` targets beside the plain text, and `region()` in the text.  `expected` walks
the data, and knows nothing of torch or dynascope.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import strategies as st
from made_programs import Function, Statement, copies, text


@dataclass
class Expected:
    """What the report must tell."""

    #: line of each break that is met -> for each time, whether an explicit region allows it
    breaks: dict[int, set[bool]] = field(default_factory=dict)
    #: the line where the compiler raises
    refused: int | None = None

    @property
    def sure(self) -> dict[int, bool]:
        """The breaks that are always allowed or never; where nothing can be sure a report may say either."""
        return {line: min(found) for line, found in self.breaks.items() if len(found) == 1}


class _Refused(Exception):
    pass


@dataclass
class Program:
    """Functions (the last one is called), and the settings of one run."""

    functions: list[Function]
    fullgraph: bool = False
    flag: bool | None = None
    on_functions: dict[int, bool] = field(default_factory=dict)
    #: the statement, by its place among all of them -> its flag
    on_statements: dict[int, bool] = field(default_factory=dict)
    #: of a region around the call from Python
    on_call: bool | None = None

    def expected(self) -> Expected:
        """What the rules say of `functions` with these regions; lines are those of the functions' text."""
        found = Expected()
        flags = {id(s): self.on_statements[i] for i, s in enumerate(self.statements()) if i in self.on_statements}

        def call(index: int, flag: bool, explicit: bool) -> None:
            if index in self.on_functions:
                flag, explicit = self.on_functions[index], True
            walk(self.functions[index].body, flag, explicit)

        def walk(body: list[Statement], flag: bool, explicit: bool) -> None:
            for s in body:
                now, by_region = (flags[id(s)], True) if id(s) in flags else (flag, explicit)
                if s.kind in ("break", "branch"):
                    stops = self.fullgraph or now
                    found.breaks.setdefault(s.line, set()).add(by_region and not stops)
                    if stops:
                        found.refused = s.line
                        raise _Refused
                elif s.kind == "call":
                    call(s.value, now, by_region)
                elif s.kind in ("allow", "forbid"):
                    walk(s.body, s.kind == "forbid", True)
                else:
                    walk(s.body, now, by_region)

        try:
            outside = self.on_call if self.on_call is not None else bool(self.flag)
            call(len(self.functions) - 1, outside, self.on_call is not None)
        except _Refused:
            pass
        return found

    def statements(self) -> list[Statement]:
        """All of them, outer ones before those inside."""
        return [s for f in self.functions for s in _all(f.body)]

    # -- as flags and targets of the magic, beside the plain text ------------------------------------------

    def source(self) -> str:
        return text(self.functions)

    def settings(self) -> dict[str, bool]:
        given = {"fullgraph": self.fullgraph or None, "error_on_graph_break": self.flag}
        return {name: value for name, value in given.items() if value is not None}

    def regions(self, above: int) -> dict[str, str]:
        """--region targets; `above` lines stand above the text."""
        targets = {}
        for index, flag in self.on_functions.items():
            targets[f"f{index}"] = flag
        every = self.statements()
        for index, flag in self.on_statements.items():
            first, last = every[index].line, _last_line(every[index])
            targets[f"{first + above}" if first == last else f"{first + above}-{last + above}"] = flag
        return {target: "error" if flag else "allow" for target, flag in targets.items()}

    # -- as `region()` in the text -----------------------------------------------------------------------

    def in_the_code(self) -> Program:
        """The same program with its regions written into it: decorators, and a `with` around each statement."""
        flags = {id(s): self.on_statements[i] for i, s in enumerate(self.statements()) if i in self.on_statements}

        def written(body: list[Statement]) -> list[Statement]:
            out = []
            for s in body:
                made = Statement(s.kind, written(s.body), s.value)
                out.append(Statement("forbid" if flags[id(s)] else "allow", [made]) if id(s) in flags else made)
            return out

        functions = [Function(f.name, written(f.body), region=self.on_functions.get(i)) for i, f in enumerate(self.functions)]
        text(functions)  # numbers the lines
        return Program(functions, self.fullgraph, self.flag, dict(self.on_functions), {}, self.on_call)

    def region_source(self) -> str:
        """The text of a program whose regions are in the code, with dynascope's own `region`."""
        return text(self.functions).replace("torch._dynamo.error_on_graph_break(", "dynascope.region(error_on_graph_break=")


def _all(body: list[Statement]) -> list[Statement]:
    return [inner for s in body for inner in (s, *_all(s.body))]


def _last_line(s: Statement) -> int:
    return _last_line(s.body[-1]) if s.body else s.line + (s.kind == "branch")


def _statements(callees: int, depth: int) -> st.SearchStrategy[Statement]:
    """Statements that Dynamo can resume after, so that every break is met where the program comes to it."""
    leaf = [
        st.builds(Statement, st.just("op"), st.just([]), st.integers(0, 4)),
        st.builds(Statement, st.just("break")),
        st.builds(Statement, st.just("branch")),
    ]
    if callees:
        leaf += [st.builds(Statement, st.just("call"), st.just([]), st.integers(0, callees - 1))] * 2
    if depth == 0:
        return st.one_of(leaf)
    inner = st.lists(_statements(callees, depth - 1), min_size=1, max_size=2)
    return st.one_of(*leaf, st.builds(Statement, st.sampled_from(["no_grad", "allow", "forbid"]), inner))


@st.composite
def controlled(draw: st.DrawFn) -> Program:
    """A program with flags and regions of every kind."""
    functions = [
        Function(f"f{i}", copies(draw(st.lists(_statements(i, 1), min_size=1, max_size=3))))
        for i in range(draw(st.integers(1, 3)))
    ]
    text(functions)  # numbers the lines
    flag = draw(st.sampled_from([True, True, False, None]))
    made = Program(functions, fullgraph=draw(st.integers(0, 5)) == 0, flag=flag)
    to = st.sampled_from([False, False, True])
    made.on_functions = draw(st.dictionaries(st.integers(0, len(functions) - 1), to, max_size=2))
    made.on_statements = draw(st.dictionaries(st.integers(0, len(made.statements()) - 1), to, max_size=2))
    return made
