"""Hand-made reports, each of one kind, for the tests of the views and for looking at them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from dynascope.compiler import report as of
from dynascope.widgets.drawing.shapes import Picture
from dynascope.widgets.drawing.split_graph import MOST, split_picture
from dynascope.widgets.features.places import Places

CELL = "/tmp/ipykernel_1/1234.py"
VERSIONS: dict[str, str | None] = {"dynascope": "0.1.0", "torch": "2.13.0", "python": "3.11"}
SETTINGS: dict[str, Any] = dict.fromkeys(("error_on_graph_break", "dynamic", "device")) | {
    "fullgraph": False,
    "backend": "inductor",
}
BREAK = "torch._dynamo.graph_break()"
URL = "https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0025.html"


def split(report: of.Report, most: int = MOST) -> Picture:
    """The split graph of a report that is not large."""
    return split_picture(report, Places(report), most)


def node(
    name: str, op: str, target: str, inputs: list[str], line: int | None, shape: list[int | str] | None = None, **more: Any
) -> of.Node:
    """A node of f32 on the CPU, at a line of the cell."""
    values: dict[str, Any] = {"file": CELL, "dtype": "float32", "device": "cpu", "shape": shape or [8, 16]}
    return of.Node(name=name, op=op, target=target, inputs=inputs, line=line, **(values | more))


def graph(id: str, frame: str, ops: list[tuple[str, str, int]], **more: Any) -> of.Graph:
    """A graph of a chain of ops (name, target, line) on one input."""
    nodes = [node("l_x_", "placeholder", "L_x_", [], ops[0][2] if ops else 1)]
    for name, target, line in ops:
        nodes.append(node(name, "call_function", target, [nodes[-1].name], line))
    nodes.append(of.Node(name="output", op="output", target="output", inputs=[nodes[-1].name]))
    code = "def forward(self, l_x_):\n" + "\n".join(f"    {n} = {t}({i})" for n, t, i in ops) + "\n    return (x,)\n"
    return of.Graph(
        id=id, frame=frame, ops=len(ops), nodes=nodes, code=code, inputs=["l_x_: f32[8, 16] cpu"], outputs=["x"], **more
    )


def frame(id: str, compile_id: str, name: str, line: int, **more: Any) -> of.Frame:
    """A compiled frame of the cell In[3]."""
    values: dict[str, Any] = {"code_name": name, "file": CELL, "cell": 3, "compile_seconds": 0.21, "guard_count": 4}
    return of.Frame(id=id, compile_id=compile_id, name=name, line=line, **(values | more))


def resumed(id: str, of: str, break_: str, at: int, resume: of.Resume, name: str = "f", **more: Any) -> of.Frame:
    """The frame that goes on with frame `of` after a break in line `at`."""
    code_name = f"torch_dynamo_resume_in_{name}_at_{at}"
    values: dict[str, Any] = {"kind": "resume", "code_name": code_name, "continues": of, "break_": break_, "resume": resume}
    return frame(id, f"{id[1:]}/0", name, resume.line, **(values | more))


def broken(id: str, line: int, code: str = BREAK, text: str = "", **more: Any) -> of.Break:
    """A break in the cell at `code` within the line `text`."""
    text = text or f"    {code}"
    column = text.index(code)
    kind = more.get("type", f"Call to `{BREAK}`")
    values: dict[str, Any] = {
        "type": kind, "reason": kind, "gb_ids": ["GB0025"], "urls": [URL], "function": "f",
        "explanation": "User-inserted graph break. Message: None", "hints": [f"Remove the `{BREAK}` call."],
        "region": of.FlagOrigin(kind="default"),
        **dict.fromkeys(("error_on_graph_break", "fullgraph", "allowed"), False),
        "text": "Graph break in user code at In[3]:4\n  Explanation: User-inserted graph break.\n  Hint: Remove the call.",
    } | more  # fmt: skip
    place: dict[str, Any] = {"file": CELL, "line": line, "column": column, "cell": 3, "source": text}
    b = of.Break(id=id, end_line=line, end_column=column + len(code), **place, **values)
    b.stack = b.stack or [of.StackEntry(function=b.function, **place)]
    return b


def report(source: str, name: str, **more: Any) -> of.Report:
    """A report on a cell In[3], with a summary counted from what is given."""
    r = of.Report(versions=VERSIONS, settings=SETTINGS, compiled=[name], **more)
    r.sources = [of.Source(file=CELL, label="In[3]", cell=3, excerpts=[of.Excerpt(line=1, text=source)])] if source else []
    drawn = [f for f in r.frames if f.status != "ignored"]
    r.summary = of.Summary(
        **{name: sum(f.status == name for f in drawn) for name in ("skipped", "empty", "failed", "unfinished")},
        frames=len(drawn), graphs=len(r.graphs), ops=sum(g.ops or 0 for g in r.graphs), breaks=len(r.breaks),
        resumes=sum(f.kind == "resume" for f in drawn), recompiles=len(r.recompiles), compile_seconds=0.84,
        unexpected=sum(not b.allowed for b in r.breaks),
    )  # fmt: skip
    return r


ONE = (
    "def f(x):\n    x = x + 1\n    y = x.relu()\n    torch._dynamo.graph_break()\n"
    "    z = y * 2\n    return z.sum()\n\nf(torch.randn(8, 16))\n"
)


def one_break() -> of.Report:
    """One break, resumed."""
    sites = [of.GuardSite(guards=[of.Guard(kind="TENSOR_MATCH", text="x is a float32 tensor of shape [8, 16]")])]
    frames = [
        frame("f0", "0/0", "f", 1, end_line=6, graph="g0", guard_sites=sites, bytecode="  2  LOAD_FAST x\n",
              modified_bytecode="  2  LOAD_GLOBAL __compiled_fn_1\n"),
        resumed("f1", "f0", "b0", 4, of.Resume(line=5, column=4, locals=["y"], stack=0), graph="g1", end_line=6),
    ]  # fmt: skip
    graphs = [
        graph("g0", "f0", [("x", "operator.add", 2), ("y", "torch.relu", 3)], end="break", break_="b0",
              backend_code="# AOT ID: ['0_inference']\nimport torch\n"),
        graph("g1", "f1", [("z", "operator.mul", 5), ("sum_1", "torch.Tensor.sum", 6)], end="return", backward="pending"),
    ]  # fmt: skip
    hits = [of.Hit(frame="f0", line=4, outcome="resumed", resumes=["f1"])]
    return report(ONE, "f", breaks=[broken("b0", 4, hits=hits)], frames=frames, graphs=graphs)


NESTED = (
    "def k(x):\n    x = x.sin()\n    torch._dynamo.graph_break()\n    return x.cos()\n\ndef h(x):\n    return k(x + 1) * 2\n\n"
    "def g(x):\n    return h(x.exp()) - 1\n\ndef f(x):\n    return g(x * 3).sum()\n"
)


def fixed() -> of.Report:
    """One break with a verified fix and a refused one."""
    found = one_break()
    at = found.breaks[0]
    edit = of.FixEdit(
        file=at.file, first_line=4, last_line=4, before="    print('<b>')\n", after="    logged = 1  # <script>\n"
    )
    found.fixes = [
        of.Fix(
            id="x0", break_=at.id, removes=[at.id], title="Move it", edits=[edit], verdict="verified", reason="agrees",
            assumption="It is printed later", before=of.Counts(breaks=1, graphs=2), after=of.Counts(graphs=1),
        ),
        of.Fix(id="x1", break_=at.id, title="Drop it", verdict="refused", reason="a printed line is lost"),
    ]  # fmt: skip
    before, after = of.Counts(breaks=1, graphs=2), of.Counts(graphs=1)
    found.fix_set = of.FixSet(fixes=["x0"], edits=[edit], cells={at.file: "x = 1\n"}, before=before, after=after)
    return found


def nested() -> of.Report:
    """One break four calls deep: four hits, four resume functions."""
    names = [("f", 12, 13), ("g", 9, 10), ("h", 6, 7), ("k", 1, 3)]
    frames, graphs, hits = [], [], []
    for i, (name, line, at) in enumerate(names):
        called: dict[str, Any] = {"parent": f"f{i - 1}", "called_from": names[i - 1][2]} if i else {}
        frames.append(frame(f"f{i}", f"{i}/0", name, line, end_line=line + (3 if name == "k" else 1), graph=f"g{i}", **called))
        graphs.append(graph(f"g{i}", f"f{i}", [("a", "torch.sin", at if name != "k" else 2)], end="break", break_="b0"))
    for i, (name, _, at) in enumerate(reversed(names), 4):
        resume = of.Resume(line=at + 1 if name == "k" else at, locals=["x"], stack=1)
        frames.append(resumed(f"f{i}", f"f{7 - i}", "b0", at, resume, name, graph=f"g{i}"))
        graphs.append(graph(f"g{i}", f"f{i}", [("b", "torch.cos", resume.line)]))
    for i, (_, _, at) in enumerate(names):
        hits.append(of.Hit(frame=f"f{i}", line=at, outcome="resumed", resumes=[f"f{7 - i}"]))
    stack = [
        of.StackEntry(file=CELL, line=at, function=name, cell=3, source=NESTED.splitlines()[at - 1]) for name, _, at in names
    ]
    return report(NESTED, "f", frames=frames, graphs=graphs, breaks=[broken("b0", 3, function="k", hits=hits, stack=stack)])


LOOP = (
    "def block(x, w):\n    h = x @ w\n    h = h.relu()\n    log(h)\n    y = h.softmax(-1)\n    return decode(y)\n\n"
    "def decode(y):\n    for step in range(4):\n        y = mix(y)\n        print(step)\n    return y\n\n"
    "def mix(y):\n    return y.sin() * y.cos()\n"
)


def loop() -> of.Report:
    """A break that resumes, and one in a loop that makes Dynamo skip the frame (the code of the sketch)."""
    log = broken(
        "b0", 4, "log(h)", function="block", type="Skip calling `torch.compiler.disable()`d function", gb_ids=["GB0098"],
        hits=[of.Hit(frame="f0", line=4, outcome="resumed", resumes=["f1"])],
        explanation="Dynamo was told not to trace `log`: it is under `torch.compiler.disable` (writes a file).",
        hints=["Remove the `torch.compiler.disable` call from `log`, or call it outside of the compiled function."],
    )  # fmt: skip
    prints = broken(
        "b1", 11, "print(step)", "        print(step)", function="decode", type="Failed to trace builtin operator",
        reason="Failed to trace builtin operator `print`", gb_ids=["GB0059"], outcome="skipped",
        explanation="Dynamo does not know how to trace builtin operator `print` with argument types ['int'].",
        hints=["Avoid calling builtin `print` in the compiled region."], hits=[of.Hit(frame="f2", line=11, outcome="skipped")],
    )  # fmt: skip
    frames = [
        frame("f0", "0/0", "block", 1, end_line=6, graph="g0"),
        resumed("f1", "f0", "b0", 4, of.Resume(line=5, locals=["h"], stack=0), "block", end_line=6, graph="g1"),
        frame("f2", "2/0", "decode", 8, end_line=12, status="skipped", reason="graph break in a for loop", break_="b1",
              stopped_by="b1", parent="f1", called_from=6),
        frame("f3", "3/0", "mix", 14, end_line=15, parent="f2", called_from=10, graph="g2"),
        frame("f4", "2/1", "block", 6, kind="resume", code_name="torch_dynamo_resume_in_block_at_6", continues="f1",
              resume=of.Resume(line=6, locals=[], stack=1), status="empty", reason="only returns", end_line=6),
        frame("f5", "4/0", "_remove", 1, status="ignored", file="/usr/lib/python3.11/weakref.py", cell=None),
    ]  # fmt: skip
    graphs = [
        graph("g0", "f0", [("h", "operator.matmul", 2), ("h_1", "torch.relu", 3)], break_="b0", end="break"),
        graph("g1", "f1", [("y", "torch.softmax", 5)]),
        graph("g2", "f3", [("sin", "torch.sin", 15), ("cos", "torch.cos", 15), ("mul", "operator.mul", 15)]),
    ]
    return report(LOOP, "block", breaks=[log, prints], frames=frames, graphs=graphs)


def recompiled() -> of.Report:
    """The same function compiled again for another shape."""
    first = frame("f0", "0/0", "f", 1, end_line=2, graph="g0")
    again = frame("f1", "0/1", "f", 1, end_line=2, graph="g1", recompile_of="f0")
    failed = [of.FailedGuard(kind="value", source="n", before="2")]
    return report(
        "def f(x, n):\n    return x * n\n\nf(a, 2)\nf(a, 3)\n", "f", frames=[first, again],
        graphs=[graph(f.graph or "", f.id, [("mul", "operator.mul", 2)]) for f in (first, again)],
        recompiles=[of.Recompile(frame="f1", of="f0", reasons=["0/0: L['n'] == 2"], failed_guards=failed)],
    )  # fmt: skip


def refused() -> of.Report:
    """fullgraph=True met a break."""
    b = broken("b0", 4, outcome="raised", fullgraph=True, hits=[of.Hit(frame="f0", line=4, outcome="raised")])
    failed = frame("f0", "0/0", "f", 1, end_line=6, status="failed", reason="fullgraph=True allows no graph break",
                   break_="b0", stopped_by="b0", fullgraph=True)  # fmt: skip
    message = f"Call to `{BREAK}`\n  Explanation: User-inserted graph break."
    error = of.Failure(type="Unsupported", message=message, break_="b0", frame="f0", file=CELL, line=4, cell=3)
    r = report(ONE, "f", breaks=[b], frames=[failed], error=error)
    r.settings = SETTINGS | {"fullgraph": True}
    return r


def many(count: int = 100) -> of.Report:
    """`count` breaks in a row: as many resume functions."""
    lines, frames, graphs, breaks = ["def f(x):"], [frame("f0", "0/0", "f", 1, graph="g0", end_line=2 * count + 1)], [], []
    for i in range(count):
        lines += [f"    x = x + {i}", f"    {BREAK}"]
        at, after = 2 * i + 3, f"f{i + 1}"
        graphs.append(graph(f"g{i}", f"f{i}", [("x", "operator.add", at - 1)], break_=f"b{i}"))
        breaks.append(broken(f"b{i}", at, hits=[of.Hit(frame=f"f{i}", line=at, outcome="resumed", resumes=[after])]))
        end: dict[str, Any] = {"graph": f"g{i + 1}"} if i + 1 < count else {"status": "empty", "reason": "only returns"}
        resume = of.Resume(line=at + 1, locals=["x"])
        frames.append(resumed(after, f"f{i}", f"b{i}", at, resume, end_line=2 * count + 2, **end))
    lines.append("    return x")
    return report("\n".join(lines), "f", frames=frames, graphs=graphs, breaks=breaks)


EVIL = '</script><img src=x onerror="window.pwned=1">\'"&\\N\x00\u202egnp.exe\u200f<b>'


def hostile() -> of.Report:
    """Every text of `one_break` made hostile, and one of 100,000 characters."""
    r = one_break()
    long = "A" * 50_000 + EVIL + "Z" * 50_000

    texts = ("name", "code_name", "reason", "type", "explanation", "target", "function", "label", "text", "message", "code",
             "backend_code")  # fmt: skip

    def spoil(thing: Any) -> None:
        for name, value in asdict(thing).items():
            if name in texts:
                setattr(thing, name, EVIL if value is not None else None)
            elif name in ("hints", "locals", "reasons", "words", "inputs", "outputs"):
                setattr(thing, name, [EVIL] * 2)
            else:
                for item in value if isinstance(value, list) else [value]:
                    if isinstance(item, Struct):
                        spoil(item)

    for part in (*r.frames, *r.graphs, *r.breaks):
        spoil(part)
    evil_line = "    evil('" + EVIL.replace("\x00", "") + "')"
    placed: list[Any] = [*r.frames, *r.breaks]
    placed += [n for g in r.graphs for n in g.nodes] + [entry for b in r.breaks for entry in b.stack]
    for thing in placed:
        thing.file = EVIL
    r.breaks[0].urls = ["javascript:window.pwned=1"]
    r.compiled, r.notes = [long], [EVIL, long]
    text = "\n".join([evil_line] * 3 + ["    " + "x" * 100_000, evil_line, evil_line])
    r.sources = [of.Source(file=EVIL, label=EVIL, excerpts=[of.Excerpt(line=1, text=text)])]
    r.error = of.Failure(type=EVIL, message=long, break_="b0")
    r.settings = {"backend": EVIL, "fullgraph": False, "output": EVIL}
    r.graphs[0].run = alone_run(r.graphs[0])
    r.graphs[0].run.device_name = r.graphs[0].run.backend = EVIL
    r.graphs[0].run.notes = [EVIL, long]
    r.unread = {EVIL: 3}
    return r


def alone_run(graph: of.Graph) -> of.GraphRun:
    """What running a graph on its own gives: each operation takes twice as long as the one before."""
    names = [n.name for n in graph.nodes if n.op.startswith("call_")]
    return of.GraphRun(
        device="cpu", device_name="CPU, 2 threads", backend="inductor", calls=10,
        eager_seconds=523e-6, eager_spread=[505e-6, 640e-6], compiled_seconds=93e-6, compiled_spread=[90e-6, 101e-6],
        speed_up=523 / 93,
        ops=[of.OpTime(node=name, seconds=4e-6 * 2**i) for i, name in enumerate(names)],
        notes=["which branch it takes depends on the made-up data"],
    )  # fmt: skip


def alone() -> of.Report:
    """Two graphs, both of them run on their own; the second could not be compiled."""
    r = one_break()
    for graph in r.graphs:
        graph.run = alone_run(graph)
    second = r.graphs[1].run
    assert second is not None
    second.compiled_seconds = second.speed_up = None
    return r


def big_graph(count: int = 10_000, source: str = "def f(x):\n    return deep(x)\n") -> of.Report:
    """One FX graph of `count` nodes."""
    ops = [(f"add_{i}", "operator.add", 2) for i in range(count - 2)]
    return report(source, "f", frames=[frame("f0", "0/0", "f", 1, end_line=2, graph="g0")], graphs=[graph("g0", "f0", ops)])


def layers(count: int = 40) -> of.Report:
    """One FX graph of `count` layers of twelve nodes each, which know their modules."""
    r = big_graph(12 * count + 2, "def f(x):\n    return model(x)\n")
    for i, n in enumerate(r.graphs[0].nodes[1:-1]):
        n.module = f"model.layers.{i // 12}.{'attention' if i % 12 < 7 else 'mlp.up'}"
    return r


REGIONS = (
    "def inner(x):\n    torch._dynamo.graph_break()\n    return x + 1\n\ndef f(x):\n    x = x * 2\n"
    "    with region(error_on_graph_break=False):\n        log(x)\n    x = inner(x)\n"
    "    with region(error_on_graph_break=True):\n        print(x)\n    return x\n"
)


def regions() -> of.Report:
    """Breaks in regions: two allowed, one an error; the error is caught by the user's code."""
    allowed: dict[str, Any] = {"allowed": True, "error_on_graph_break": False}
    within = [of.FlagOrigin(kind="with", file=CELL, line=line, cell=3) for line in (7, 10)]
    hit = [of.Hit(frame="f0", line=8, outcome="resumed", resumes=["f1"])]
    b0 = broken("b0", 8, "log(x)", "        log(x)", region=within[0], hits=hit, **allowed)
    hit = [of.Hit(frame="f1", line=9, outcome="resumed", resumes=["f3"]), of.Hit(frame="f2", line=2, outcome="resumed")]
    b1 = broken("b1", 2, function="inner", region=of.FlagOrigin(kind="decorator", name="inner"), hits=hit, **allowed)
    hit = [of.Hit(frame="f3", line=11, outcome="raised")]
    b2 = broken(
        "b2", 11, "print(x)", "        print(x)", region=within[1], error_on_graph_break=True, outcome="raised", hits=hit
    )
    resume, more = of.Resume(line=9), {"code_name": "torch_dynamo_resume_in_f", "end_line": 12}
    frames = [
        frame("f0", "0/0", "f", 5, end_line=12, graph="g0"),
        resumed("f1", "f0", "b0", 8, resume, status="empty", **more),
        frame("f2", "2/0", "inner", 1, end_line=3, parent="f1", called_from=9, error_on_graph_break=False, graph="g1"),
        resumed("f3", "f1", "b1", 9, resume, status="failed", error_on_graph_break=True, stopped_by="b2",
                reason="Call to print", **more),
    ]  # fmt: skip
    frames[-1].line = 10
    graphs = [graph("g0", "f0", [("x", "operator.mul", 6)], break_="b0"), graph("g1", "f2", [("x", "operator.add", 3)])]
    caught = of.Failure(type="Unsupported", message="Call to print", break_="b2", frame="f3", caught=True)
    return report(REGIONS, "f", breaks=[b0, b1, b2], frames=frames, graphs=graphs, error=caught)


def cached() -> of.Report:
    """Compiled before the recording: its graphs are known, its breaks are not."""
    known = frame("f0", "0/0", "f", 1, end_line=6, status="cached", graph="g0", compile_seconds=None)
    r = report(ONE, "f", frames=[known], graphs=[of.Graph(id="g0", frame="f0", ops=None)])
    r.summary.cached, r.summary.frames = 1, 0
    return r


def unfinished() -> of.Report:
    """A log that was cut: the graph of the function was captured, then nothing more is known."""
    cut = frame("f0", "0/0", "f", 1, end_line=6, status="unfinished", graph="g0", compile_seconds=None,
                reason="the log does not hold the end of this compile")  # fmt: skip
    r = report(ONE, "f", frames=[cut], graphs=[graph("g0", "f0", [("x", "operator.add", 2)])])
    r.origin = "trace"
    return r


def empty() -> of.Report:
    """Nothing was compiled."""
    return of.Report(
        versions=VERSIONS, settings=SETTINGS, notes=["The cell calls none of its functions: call f to have it compiled."]
    )


LIBRARY = "/opt/env/lib/python3.11/site-packages/zoo/model.py"
_BLOCK = '''class Block{n}:
    def forward(self, x):
        """Run the block.

        The docstring has several lines.
        """
        x = x.sin()
        if x.sum() > 0:
            x = x + x.item()
        x = x.cos()
        x = x + 1
        x = x * 2
        return self.next(x)

'''
_KINDS = (
    ("x.sum() > 0", "Data-dependent branching", "Use `torch.cond` to express dynamic control flow."),
    ("x.item()", "Unsupported Tensor.item() call with capture_scalar_outputs=False",
     "Set `torch._dynamo.config.capture_scalar_outputs = True` to include these operations in the captured graph."),
)  # fmt: skip


def model(functions: int = 9, breaks: int = 6, recompiles: int = 5) -> of.Report:
    """A model of a library, called from a cell: each block calls two others; each break is followed by a resume function."""
    text = "import zoo\n\ndef step(x):\n    x = x * 2\n    return zoo.model(x)\n\nstep(x)\n"
    library = "".join(_BLOCK.format(n=n) for n in range(functions)).splitlines()
    frames = [frame("f0", "0/0", "step", 3, end_line=5, graph="g0", qualname="step")]
    graphs = [graph("g0", "f0", [("mul", "operator.mul", 4)])]

    def add(name: str, line: int, **more: Any) -> of.Frame:
        """One frame of the library with a graph, at the end."""
        id = len(frames)
        made = frame(f"f{id}", f"{id}/0", name, line, file=LIBRARY, cell=None, graph=f"g{id}", **more)
        frames.append(made)
        ops = [(f"cos_{i}", "torch.cos", line + 7 - (made.kind == "resume") * 4) for i in range(3)]
        graphs.append(graph(f"g{id}", made.id, ops))
        for n in graphs[-1].nodes:
            n.file = LIBRARY
        return made

    first = [
        add("forward", 14 * n + 2, end_line=14 * n + 13, qualname=f"Block{n}.forward", parent=f"f{(n + 1) // 2}", called_from=5)
        for n in range(functions)
    ]
    found, again = [], []
    for n in range(breaks):
        owner, (code, kind, hint) = first[n % functions], _KINDS[n // functions % 2]
        line = owner.line + 6 + n // functions % 2
        hits = [of.Hit(frame=owner.id, line=line, outcome="resumed", resumes=[f"f{len(frames)}"])]
        made = broken(f"b{n}", line, code, library[line - 1], type=kind, hints=[hint], reason=kind, hits=hits)
        made.file, made.cell, made.function, made.stack = LIBRARY, None, "forward", []
        found.append(made)
        resume = of.Resume(line=line + 1, locals=["x"])
        add("forward", line, kind="resume", end_line=owner.end_line, qualname=owner.qualname, continues=owner.id,
            break_=made.id, resume=resume, code_name=f"torch_dynamo_resume_in_forward_at_{line}")  # fmt: skip
    last = {f.id: f for f in first}
    for n in range(recompiles):
        old = first[n % max(1, functions // 2)]
        made_again = add("forward", old.line, end_line=old.end_line, qualname=old.qualname, parent=old.parent, called_from=5,
                         recompile_of=last[old.id].id)  # fmt: skip
        guard = of.FailedGuard(kind="size", source="x", dimension=0, before=str(n + 2), now=str(n + 3))
        again.append(of.Recompile(frame=made_again.id, of=last[old.id].id, failed_guards=[guard]))
        last[old.id] = made_again
    r = report(text, "step", frames=frames, graphs=graphs, breaks=found, recompiles=again)
    r.sources.append(of.Source(file=LIBRARY, label="model.py", excerpts=[of.Excerpt(line=1, text="\n".join(library))]))
    return r


def long_names(methods: int = 18) -> of.Report:
    """A class with a long name, each of whose methods calls the next one and has a graph break; a call was measured."""
    owner, file = "GeneralizedDetectorWithFeaturePyramid", LIBRARY.replace("model.py", "generalized_detector_with_pyramid.py")
    names = [f"postprocess_detections_of_level_{n}" for n in range(methods)]
    library = [f"class {owner}(torch.nn.Module):"]
    for name, called in zip(names, [*names[1:], "finish"], strict=True):
        library += [f"    def {name}(self, features, proposals):", "        scores = features.softmax(-1)",
                    "        if scores.max() > self.score_threshold_of_detections: proposals = proposals[:100]",
                    f"        return self.{called}(features, proposals)", ""]  # fmt: skip
    test = "scores.max() > self.score_threshold_of_detections"
    frames = [frame("f0", "0/0", "predict", 1, end_line=2, qualname="predict")]
    graphs, found, segments = [], [], []
    for n, name in enumerate(names):
        line = 5 * n + 2
        place: dict[str, Any] = {"file": file, "cell": None, "qualname": f"{owner}.{name}", "end_line": line + 3}
        frames.append(frame(f"f{n + 1}", f"{n + 1}/0", name, line, parent=f"f{n}", called_from=line - 2 if n else 2,
                            graph=f"g{n}", **place))  # fmt: skip
        graphs.append(graph(f"g{n}", f"f{n + 1}", [("softmax", "torch.softmax", line + 1)], break_=f"b{n}"))
        for captured in graphs[-1].nodes:
            captured.file = file
        kind, hint = _KINDS[n % 2][1:]
        hits = [of.Hit(frame=f"f{n + 1}", line=line + 2, outcome="resumed", resumes=[])]
        stack = [of.StackEntry(file=CELL, line=2, function="predict", cell=3, source="return detector(features, proposals)")]
        stack += [of.StackEntry(file=file, line=5 * at + 5, function=name) for at, name in enumerate(names[:n])]
        stack.append(of.StackEntry(file=file, line=line + 2, function=name, source=library[line + 1].strip()))
        made = broken(f"b{n}", line + 2, test, library[line + 1], type=kind, reason=kind, hints=[hint], hits=hits, stack=stack)
        made.file, made.cell, made.function = file, None, name
        found.append(made)
        segments.append(of.Segment(kind="graph", lane="cpu", start=n * 1e-3, duration=8e-4, label=f"graph {n}", graph=f"g{n}"))
        segments.append(
            of.Segment(kind="gap", lane="cpu", start=n * 1e-3 + 8e-4, duration=2e-4, label=f"gap {n}", break_=f"b{n}")
        )
    text = "def predict(detector, features, proposals):\n    return detector(features, proposals)\n\npredict(*inputs)\n"
    r = report(text, "predict", frames=frames, graphs=graphs, breaks=found)
    r.sources.append(
        of.Source(file=file, label=file.rpartition("/")[2], excerpts=[of.Excerpt(line=1, text="\n".join(library))])
    )
    r.notes = ["the call can reach the operators torch.ops.zoo: what it changes there is not undone", "a second note"]
    costs = [of.BreakCost(break_=b.id, seconds=2e-4, share=1 / 90) for b in found]
    r.profile = of.Profile(calls=3, median_seconds=1e-3 * methods, lanes=["cpu"], segments=segments, breaks=costs)
    return r


def huge() -> of.Report:
    """A model of 1,000 frames, 300 breaks and 500 recompiles."""
    return model(functions=199, breaks=300, recompiles=500)


SAMPLES: dict[str, Callable[[], of.Report]] = {
    "one": one_break, "fixed": fixed, "nested": nested, "loop": loop, "recompile": recompiled,
    "refused": refused, "many": many, "hostile": hostile, "big": big_graph, "layers": layers,
    "alone": alone, "regions": regions, "cached": cached, "unfinished": unfinished,
    "empty": empty, "model": model, "long_names": long_names,
}  # fmt: skip
