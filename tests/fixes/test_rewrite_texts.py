"""What each rewrite makes of a source text, character by character, and what it leaves alone."""

from __future__ import annotations

import ast
import itertools
from pathlib import Path
from types import ModuleType

import libcst as cst
import pytest
from harness import REWRITES, edited, lines_of

from dynascope.compiler.fixes import setting_changes, wraps
from dynascope.compiler.fixes.candidate import Candidate, Problem
from dynascope.compiler.fixes.patch import marked_calls, with_settings
from dynascope.compiler.fixes.rewrites import (
    branches,
    counters,
    empty_rows,
    hoist,
    log_values,
    parts,
    printing,
    raise_checks,
    scalars,
    value_loops,
)
from dynascope.compiler.fixes.syntax.effects import changed_in_place, is_pure_call
from dynascope.compiler.fixes.syntax.flow import bound_before
from dynascope.compiler.fixes.syntax.source_text import parse
from dynascope.compiler.fixes.syntax.torch_names import Torch
from dynascope.compiler.fixes.text_edits import with_edits

BRANCH = "Data-dependent branching"


def problem(marked: str, kind: str = BRANCH, reason: str = "", function: str = "f") -> Problem:
    """The problem of the expression between « and »."""
    start, end = marked.index("«"), marked.index("»") - 1
    text = marked.replace("«", "").replace("»", "")
    before, inside = lines_of(text[:start] + "."), lines_of(text[:end] + ".")
    place = (len(before), len(inside), len(before[-1]) - 1, len(inside[-1]) - 1)
    return Problem("program.py", text, place[0], place[1], place[2], place[3], function, kind, reason)


def offered(module: ModuleType, marked: str, **fields: str) -> list[tuple[Candidate, str]]:
    at = problem(marked, **fields)
    found = module.candidates(at)
    return [(candidate, edited(at.source, candidate.edits)) for candidate in found]


HEAD = "import torch\n\n\ndef f(x):\n"

#: rewrite, the body of `f` with the break marked, and what each candidate makes of it
CHANGED: list[tuple[ModuleType, str, tuple[str, ...]]] = [
    (
        branches,
        """\
    if «x.sum() > 0»:  # positive
        # twice
        y = x * 2
    else:  # or not
        y = x - 1  # less
    return y  # done
""",
        (
            """\
    # positive
    # twice
    # or not
    # less
    y = torch.where(x.sum() > 0, x * 2, x - 1)
    return y  # done
""",
            """\
    # positive
    def when_true():
        # twice
        y = x * 2
        return y
    def when_false():
        y = x - 1  # less
        return y
    y = torch.cond(x.sum() > 0, when_true, when_false)
    return y  # done
""",
        ),
    ),
    (
        branches,
        """\
    if «x.sum().item() > 0»:
        return x
    return -x
""",
        (
            "    return torch.where(x.sum() > 0, x, -x)\n",
            """\
    def when_true():
        return x.clone()
    def when_false():
        return -x
    return torch.cond(x.sum() > 0, when_true, when_false)
""",
        ),
    ),
    (
        branches,
        "    if «x.sum() > 5»:\n        return x\n    elif x.sum() > 0:\n        return -x\n    return x * 2\n",
        ("    return torch.where(x.sum() > 5, x, torch.where(x.sum() > 0, -x, x * 2))\n",),
    ),
    (
        branches,
        "    if «x.sum() > 5»:\n        return x,\n    return -x,\n",
        (
            """\
    def when_true():
        return x.clone(),
    def when_false():
        return -x,
    return torch.cond(x.sum() > 5, when_true, when_false)
""",
        ),
    ),
    (
        branches,
        "    y = x\n    if «x.sum() > 0»: y = x * 2; z = 1\n    else: z = 2\n    return y * z\n",
        (
            """\
    y = x
    condition = x.sum() > 0
    y = torch.where(condition, x * 2, y)
    z = torch.where(condition, 1, 2)
    return y * z
""",
            """\
    y = x
    def when_true(y):
        y = x * 2
        z = 1
        return y, z
    def when_false(y):
        z = 2
        return y.clone(), z
    y, z = torch.cond(x.sum() > 0, when_true, when_false, (y,))
    return y * z
""",
        ),
    ),
    (
        branches,
        "    return (x if «bool((x > 0).all())» else x * 2) + 1\n",
        (
            "    return (torch.where((x > 0).all(), x, x * 2)) + 1\n",
            "    return (torch.cond((x > 0).all(), lambda: x.clone(), lambda: x * 2)) + 1\n",
        ),
    ),
    (
        raise_checks,
        """\
    if «not torch.isfinite(x).all()»:
        raise ValueError(f"bad {x} {{}}")  # stop
    return x
""",
        ("    # stop\n    torch._assert_async(torch.isfinite(x).all(), 'bad {x} {}')\n    return x\n",),
    ),
    (
        raise_checks,
        "    «assert x.sum() > 0, f'{x}'»\n    return x\n",
        ("    torch._assert_async(x.sum() > 0, '{x}')\n    return x\n",),
    ),
    (
        raise_checks,
        "    if «bool(x.sum() > 9)»:\n        raise E\n    return x\n",
        ('    torch._assert_async(~(x.sum() > 9), "check failed")\n    return x\n',),
    ),
    (
        empty_rows,
        """\
    rows = x.nonzero()[:, 0]
    if «len(rows) > 0»:  # any

        x[rows] = 0  # clear
        y = x[rows]
        x.index_add_(0, rows, y)
    return x
""",
        (
            """\
    rows = x.nonzero()[:, 0]
    # any
    x[rows] = 0  # clear
    y = x[rows]
    x.index_add_(0, rows, y)
    return x
""",
        )
        * 2,
    ),
    (
        scalars,
        "    n = «float(x.max())»  # the largest\n    return (x / n  # by it\n            - n)\n",
        (
            "    n = x.max().detach()  # the largest\n    return (x / n  # by it\n            - n)\n",
            "    n = x.max().detach().float()  # the largest\n    return (x / n  # by it\n            - n)\n",
        ),
    ),
    (
        scalars,
        "    return x * (1 - «(x + 1).mean().item()» / x.std().item())\n",
        ("    return x * (1 - (x + 1).mean().detach() / x.std().detach())\n",),
    ),
    (
        scalars,
        "    x = x - x.mean()\n    x = x / «x.std().item()»\n    return x\n",
        ("    x = x - x.mean()\n    x = x / x.std().detach()\n    return x\n",),
    ),
    (
        scalars,
        "    import math\n    k = x.min().item() if n else g(x * «x.max().item()»)\n    return x * math.sqrt(k), range(k)\n",
        ("    import math\n    k = x.min().item() if n else g(x * x.max().detach())\n    return x * math.sqrt(k), range(k)\n",),
    ),
    (
        value_loops,
        """\
    while «x.sum() < 100»:  # until it is large
        x = x * 2  # twice
    return x
""",
        (
            """\
    # until it is large
    def another_turn(x):
        return x.sum() < 100
    def turn(x):
        x = x * 2  # twice
        return x,
    x, = torch.while_loop(another_turn, turn, (x,))
    return x
""",
        ),
    ),
    (
        printing,
        "    y = x * 2\n    «print('y', y)»  # now\n    y += 1\n    return y * 2\n",
        ("    y = x * 2\n    print('y', y.clone())  # now\n    y += 1\n    return y * 2\n",),
    ),
    (
        printing,
        """\
    y = x * 2
    «print("y", y.sum(), sep="=")»  # half way
    y = y + 1
    print(y)
    return y * 2
""",
        (
            """\
    y = x * 2
    logged = y.sum()
    y = y + 1
    result = y * 2
    print("y", logged, sep="=")  # half way
    print(y)
    return result
""",
        ),
    ),
    (
        printing,
        "    «print(f'{x.sum().item():.2f}', x.max().item(), end='')»\n    return x\n",
        ("    print(f'{x.sum():.2f}', f\"{x.max()}\", end='')\n    return x\n",),
    ),
    (
        printing,
        "    for i in range(3):\n        if i:\n            «print(i, x.sum().item())»\n    return x\n",
        ('    for i in range(3):\n        if i:\n            print(i, f"{x.sum()}")\n    return x\n',),
    ),
    (
        printing,
        '    «print(x.item(), f"{x.item()} {(x + 1).item()}")»\n    x.add_(1)\n    return x * 2\n',
        ('    print(f"{x.clone()}", f"{x.clone()} {x + 1}")\n    x.add_(1)\n    return x * 2\n',),
    ),
    (
        printing,
        "    «print(*x.shape)»\n    return x * 2\n",
        ("    logged = x.shape\n    result = x * 2\n    print(*logged)\n    return result\n",),
    ),
    (
        printing,
        "    for i in range(2):\n        «print(f'  # {i}')»  # why\n    return x * 2\n",
        (
            """\
    messages = []
    for i in range(2):
        messages.append(lambda i=i: print(f'  # {i}'))  # why
    result = x * 2
    def write_messages():
        for message in messages:
            message()
    write_messages()
    return result
""",
        ),
    ),
    (
        printing,
        "    y = 1\n    «print(y)»\n    for y in x:\n        x = x + y\n    return x\n",
        ("    y = 1\n    logged = y\n    for y in x:\n        x = x + y\n    print(logged)\n    return x\n",),
    ),
    (
        printing,
        "    if n:\n        print('a')\n    else:\n        «print('b')»  # c\n    y = x + 1\n    return y * 2\n",
        (
            """\
    y = x + 1
    result = y * 2
    if n:
        print('a')
    else:
        print('b')  # c
    return result
""",
        ),
    ),
    (
        log_values,
        "    total = «x.sum().item()»\n    y = x * 2\n    print(total)  # the sum\n    return y\n",
        (
            """\
    total = x.sum().detach()
    y = x * 2
    total = total.item()
    print(total)  # the sum
    return y
""",
        ),
    ),
    (
        parts,
        """\
    y = x + 1
    for i in range(3):
        y = y * i
        «g(y)»  # breaks
    return y + x
""",
        (
            """\
    y = x + 1
    def run_loop(y):
        for i in range(3):
            y = y * i
            g(y)  # breaks
        return y
    y = run_loop(y)
    return y + x
""",
            """\
    y = x + 1
    def step(y, i):
        y = y * i
        g(y)  # breaks
        return y
    for i in range(3):
        y = step(y, i)
    return y + x
""",
        ),
    ),
    (
        parts,
        "    y = g\n    for i in x:\n        class K(y): pass\n        y = «h(K)»\n    return x + 1\n",
        (
            """\
    y = g
    def run_loop(y):
        for i in x:
            class K(y): pass
            y = h(K)
    run_loop(y)
    return x + 1
""",
            """\
    y = g
    def step(y):
        class K(y): pass
        y = h(K)
        return y
    for i in x:
        y = step(y)
    return x + 1
""",
        ),
    ),
    (
        hoist,
        "    import time\n    for _ in range(2):\n        x = x * «time.time()»\n    return x\n",
        ("    import time\n    started = time.time()\n    for _ in range(2):\n        x = x * started\n    return x\n",),
    ),
]

#: rewrite and a body for which it offers nothing
LEFT_ALONE = [
    (branches, "    if «x.sum() > 0»:\n        y = x\n    return y\n"),
    (branches, "    if «x.shape[0] > 2»:\n        x = x * 2\n    return x\n"),
    (branches, "    if «(y := x.sum()) > 0»:\n        x = x * y\n    return x\n"),
    (branches, "    if «x.sum() > 0»:\n        x[0] = 1\n    return x\n"),
    (branches, "    if «x.sum() > 0»:\n        return x, x\n    return x\n"),
    (branches, "    for _ in x:\n        if «x.sum() > 0»:\n            continue\n        x = x * 2\n    return x\n"),
    (branches, "    if «x.sum() > 0»:\n        x = x + 1\n        yield x\n"),
    (branches, "    y = 'a' if «x.sum() > 0» else 'b'\n    return y\n"),
    (branches, "    y = x\n    del y\n    if «x.sum() > 0»:\n        y = x * 2\n    return y\n"),
    (branches, "    y = x\n    if n:\n        del (y, n)\n    if «x.sum() > 0»:\n        y = x * 2\n    return y\n"),
    (branches, "    if «x.sum() > 0»:\n        return *x, x\n    return *x, x\n"),
    (branches, "    if «x.any()»:\n        *y, z = x, x\n    elif x: *y, z = x, 1\n    else: *y, z = 1, x\n    return y\n"),
    (log_values, "    n = «x.sum().item()»\n    return *g(x), n\n"),
    (raise_checks, "    if «x.sum() > 0»:\n        print(x)\n        raise ValueError\n    return x\n"),
    (raise_checks, "    if «x.sum() > 0»:\n        raise\n    return x\n"),
    (raise_checks, "    if «x.ndim > 2»:\n        raise ValueError('many')\n    return x\n"),
    (raise_checks, "    if n:\n        y = x\n    elif «x.isnan().any()»:\n        raise ValueError('nan')\n    return x\n"),
    (empty_rows, "    m = x > 0\n    if n:\n        y = x\n    elif «m.any()»:\n        x[m] = 0\n    return x\n"),
    (branches, "    match g(x):\n        case 1:\n            y = x\n    if «x.sum() > 0»:\n        y = x + 1\n    return y\n"),
    (branches, "    if «x.sum() > 0»:\n        match g(x):\n            case [y, *z]:\n                pass\n    return y\n"),
    (branches, "    with suppress(E):\n        y = g(x)\n    if «x.sum() > 0»:\n        y = x + 1\n    return y\n"),
    (branches, "    with quiet:\n        y = g(x)\n    if «x.sum() > 0»:\n        y = x + 1\n    return y\n"),
    (empty_rows, "    m = x > 0\n    if «m.any()»:\n        x[~m] = 0\n    return x\n"),
    (empty_rows, "    m = x > 0\n    if «m.all()»:\n        x[m] = 0\n    return x\n"),
    (empty_rows, "    m = x > 0\n    if «m.any()»:\n        x[m] = 0\n        y = 1\n    return x * y\n"),
    (empty_rows, "    m = x > 0\n    if «m.any()»:\n        x[m] = 0\n    else:\n        x = x + 1\n    return x\n"),
    (empty_rows, "    m = x > 0\n    if «m.any()»:\n        x[m.long()] = 0\n    return x\n"),
    (empty_rows, "    m = x > 0\n    if «m.sum() > 0»:\n        x[1 - m] = 0\n    return x\n"),
    (empty_rows, "    m = x > 0\n    if «m.any()»:\n        y = x[m].max()\n        x[m] = x[m] / y\n    return x\n"),
    (empty_rows, "    m = x > 0\n    if «m.any()»:\n        n = self.bump()\n        x[m] = 0\n    return x\n"),
    (empty_rows, "    m = x > 0\n    if «m.any()»:\n        x[m] = g(x[m])[0]\n    return x\n"),
    (empty_rows, "    r = x.nonzero()\n    if «len(r)»:\n        x[r] = 1 / len(r)\n    return x\n"),
    (scalars, "    return x[:«x.sum().item()»]\n"),
    (scalars, "    n = «int(x.sum())»\n    return x * n, list(range(n))\n"),
    (scalars, "    n = int(x.sum()) + «int(x.max())»\n    return x * n, list(range(n))\n"),
    (scalars, "    return «x.sum().item()» * 2\n"),
    (scalars, "    return x * 1, {'loss': «x.sum().item()»}\n"),
    (value_loops, "    while «x.sum() < 100»:\n        y = x * 2\n        x = y\n    return x + y\n"),
    (value_loops, "    while «x.sum() < 100»:\n        x = x * 2\n        print(x)\n    return x\n"),
    (value_loops, "    while «x.sum() < 100»:\n        x = x * 2\n        if x[0] > 3: break\n    return x\n"),
    (printing, "    y = x * 2\n    «print(y)»\n    return y\n"),
    (printing, "    y = x * 2\n    «g(y)»\n    return y + 1\n"),
    (log_values, "    n = «x.sum().item()»\n    return x * n\n"),
    (parts, "    for i in x:\n        «g(x)»\n        return x + 1\n"),
    (parts, "    «g(x)»\n    return x + 1\n"),
    (parts, "    for i in x:\n        «g(x)»\n        super().f(x)\n    return x + 1\n"),
    (hoist, "    for i in range(2):\n        x = x * i\n        «g()»\n    return x\n"),
    # the clock ends the loop
    (hoist, "    import time\n    while «time.time()» < 5:\n        x = x * 2\n    return x\n"),
    (hoist, "    import time\n    while True:\n        t = «time.time()»\n        if t > 5: break\n    return x\n"),
]  # fmt: skip


@pytest.mark.parametrize(("module", "body", "results"), CHANGED)
def test_changed(module: ModuleType, body: str, results: tuple[str, ...]) -> None:
    assert [text.removeprefix(HEAD) for _, text in offered(module, HEAD + body, kind="Failed to trace")] == list(results)


@pytest.mark.parametrize(("module", "body"), LEFT_ALONE)
def test_left_alone(module: ModuleType, body: str) -> None:
    assert [text for _, text in offered(module, HEAD + body)] == []


@pytest.mark.parametrize(("module", "body", "results"), [c for c in CHANGED if c[2]])
@pytest.mark.parametrize("layout", ["crlf", "tabs", "cr_at_end", "method", "no_line_end"])
def test_layouts(module: ModuleType, body: str, results: tuple[str, ...], layout: str) -> None:
    """Other line ends, indentation and surroundings: the same change, and the rest as it was."""
    changes = {
        "crlf": lambda text: text.replace("\n", "\r\n"),
        "tabs": lambda text: text.replace("    ", "\t"),
        "cr_at_end": lambda text: text + "\n\n# the end\n\x0c\nz = '''\n    a\n  '''\n",
        "method": lambda text: text.replace("def f(x)", "@decorated(1)\ndef f(x, *, k: int = 1) -> 'T'"),
        "no_line_end": lambda text: text.rstrip("\n"),
    }
    change = changes[layout]
    found = offered(module, change(HEAD + body), kind="Failed to trace")
    assert [text.rstrip() for _, text in found] == [change(HEAD + result).rstrip() for result in results]


def test_torch_is_named_as_the_module_names_it() -> None:
    body = "    if «x.sum() > 0»: x = x * 2\n    return x\n"

    def first(head: str) -> str:
        return offered(branches, head + body)[0][1]

    assert "t.where(" in first("import torch as t\n\ndef f(x):\n")
    assert "x = select(" in first("from torch import where as select\n\ndef f(x):\n")
    assert "torch.where(" in first("import torch.nn as nn\nimport torch\n\ndef f(x):\n")
    text = first('"""Docs."""\nfrom __future__ import annotations\n\nimport os\n\ndef f(x):\n')
    assert text.startswith('"""Docs."""\nfrom __future__ import annotations\n\nimport torch\nimport os\n')
    assert "torch.where(" in text
    text = first("def f(x):\n    import torch as th\n")
    assert "th.where(" in text
    assert first("from torch import nn\n\ndef f(x):\n").startswith("import torch\nfrom torch import nn\n")
    assert first("@decorated\ndef f(x):\n").startswith("import torch\n@decorated\ndef f(x):\n")
    assert not first("def f(x):\n    torch.relu(x)\n").startswith("import")  # a cell: imported by an earlier one


def test_each_branch_that_becomes_part_of_a_choice_is_forced() -> None:
    body = "    if «x.sum() > 0»:\n        return x\n    if x.max() > 3:\n        return -x\n    return x * 2\n"
    [(candidate, _)] = [found for found in offered(branches, HEAD + body) if found[0].title == "Choose with torch.where"]
    assert [test.after for test in candidate.tests] == ["x.sum() > 0", "x.max() > 3"]


def test_a_cells_statements() -> None:
    """An earlier cell may have bound a name that nothing above binds; the cell gets no name of its own."""
    cell = "for i in range(2):\n    if «x.sum() > i»:\n        x, y = y, x\nz = x\n"
    where = "torch.where(x.sum() > i, y, x), torch.where(x.sum() > i, x, y)"
    assert offered(branches, cell)[0][1] == f"import torch\nfor i in range(2):\n    x, y = {where}\nz = x\n"
    assert [c.title for c, _ in offered(branches, "if i:\n    x = i\n" + cell)] == []


def test_a_message_that_needs_two_settings() -> None:
    at = problem("import torch\n\ndef f(x):\n    «print(f'{x.sum().item():.2f}')»\n", reason="Tensor.item()")
    captured, both = setting_changes.candidates(at)[:2]
    printed = {"torch._dynamo.config.reorderable_logging_functions": ["builtins.print"]}
    assert both.settings == {**captured.settings, **printed}


def test_settings_stand_above_what_is_compiled() -> None:
    settings = {"torch._dynamo.config.capture_scalar_outputs": True}
    text = with_settings("import torch\nf(1)\n", settings, {})
    assert text == "import torch\n\ntorch._dynamo.config.capture_scalar_outputs = True\n\nf(1)\n"
    text = with_settings("'text'\nf(1)\n", settings, {"torch": "t"})
    assert text == "'text'\n\nt._dynamo.config.capture_scalar_outputs = True\n\nf(1)\n"
    text = with_settings("# a cell\nf(1)\nx.item()\n", settings, {"torch": "torch"})
    assert text.startswith("# a cell\n\ntorch._dynamo.config")


def test_marks_stand_before_the_calls() -> None:
    head = "import torch as t\n\ndef f(x, n=1): return x * n\n\n"

    def marked(calls: str) -> str | None:
        text = marked_calls(head + calls, "f", ["x, 0"])
        return None if text is None else text.removeprefix(head)

    mark = "t._dynamo.mark_dynamic({}, 0)\n"
    assert marked("f(a)\nc = t.compile(f)\nfor b in a:\n    y = c(n=2, x=b)\n") == (
        f"{mark.format('a')}f(a)\nc = t.compile(f)\nfor b in a:\n    {mark.format('b')}    y = c(n=2, x=b)\n"
    )
    assert marked("y = f(a) or 0\n") == f"{mark.format('a')}y = f(a) or 0\n"
    assert marked("y = 1 if f(a) else 0\n") == f"{mark.format('a')}y = 1 if f(a) else 0\n"
    assert marked("y = a or f(a)\n") is None
    others = ["f(t.ones(3))", "f(a)\nf(2)", "a = 1; f(a)", "for a in b: f(a)", "while f(a): pass", "[f(a) for a in b]", "f(*a)"]
    assert [marked(f"{other}\n") for other in [*others, "f(n=1)", "g(a)"]] == [None] * 9


def test_a_name_that_something_else_binds_stays_where_it_is() -> None:
    body = "    for i in range(2):\n        x = x * x\n        n = «os.cpu_count()»\n    return x, n\n"
    [text] = texts(hoist, "import os\n" + HEAD + body)
    assert "    n = os.cpu_count()\n    for i in range(2):\n        x = x * x\n    return x, n\n" in text
    for bound in ("def f(x, n):\n", "def f(x):\n    for n in x: pass\n", "def f(x):\n    (n := 3)\n"):
        [text] = texts(hoist, "import os\nimport torch\n\n\n" + bound + body)
        assert "    looked_up = os.cpu_count()\n    for i in range(2):\n        x = x * x\n        n = looked_up\n" in text


def test_an_import_moves_to_the_others() -> None:
    body = "    for _ in range(2):\n        «import os»  # slow\n        x = x * len(os.sep)\n    return x\n"
    [(_, text)] = offered(hoist, HEAD + body)
    moved = "import torch\nimport os  # slow\n\n\ndef f(x):\n"
    assert text == moved + "    for _ in range(2):\n        x = x * len(os.sep)\n    return x\n"


def test_a_function_that_two_functions_call_is_wrapped_once() -> None:
    functions = "# the first\ndef f(x):\n    return «library.g(x)»\n\ndef h(x):\n    return library.g(x)\n"
    at = problem(f"import torch\nimport library\n\n{functions}")
    [candidate] = wraps.called(at)
    once = with_edits(at.source, candidate.edits)
    helper = "_traced_library_g = torch._dynamo.nonstrict_trace(library.g)\n\n\n"
    assert once == f"import torch\nimport library\n\n{helper}{functions}".replace("«library.g(x)»", "_traced_library_g(x)")
    at = problem(once.replace("library.g(x)", "«library.g(x)»"))
    [candidate] = wraps.called(at)
    assert with_edits(at.source, candidate.edits) == once.replace("library.g(x)", "_traced_library_g(x)")


def test_recompiles() -> None:
    text = "import torch\n\ndef f(x, n):\n    «return x * n»\n\nfor step in range(9):\n    f(torch.ones(2), step)\n"
    [(candidate, new)] = offered(counters, text, kind="recompile", reason="n")
    assert "f(torch.ones(2), torch.tensor(step))" in new
    assert candidate.tensors == ("n",)
    text = """\
import torch

class Net(torch.nn.Module):
    def __init__(self):
        self.step = 0

    def f(self, x):
        «self.step += 1»
        return x * self.step
"""
    [(candidate, new)] = offered(counters, text, kind="recompile", reason="self.step")
    assert "self.step = torch.tensor(0)" in new
    assert "        self.step = self.step + 1\n" in new
    text = "import torch\n\nscale = 2.5\n\ndef f(x):\n    «return x * scale»\n"
    [(candidate, new)] = offered(counters, text, kind="recompile", reason="scale")
    assert new.startswith("import torch\n\nscale = torch.tensor(2.5)\n")
    assert offered(counters, text + "\nscale = text\n", kind="recompile", reason="scale") == []
    assert offered(counters, text, kind="a break", reason="scale") == []
    [(candidate, new)] = offered(counters, text.replace("scale =", "scale: float ="), kind="recompile", reason="scale")
    assert new.startswith("import torch\n\nscale: float = torch.tensor(2.5)\n")
    for other in ("scale: float = text", "scale, other = text, 1"):
        assert offered(counters, f"{text}\n{other}\n", kind="recompile", reason="scale") == []


NAMESAKES = """\
import torch

steps = 1

class Base(torch.nn.Module):
    def __init__(self):
        self.steps = 2

class Net(Base):
    def __init__(self):
        self.inner = Inner()
        self.other = made()

    def run(self, n, k):
        self.steps += 1
        return k * n  # here

class Inner:
    steps = 3

    def __init__(self):
        self.steps = 4

def f(n, x):
    return x * n * steps

def g(f):
    steps = 5
    f(6, x)
    steps += 1

def h():
    global steps
    steps = 7
    steps += 8

net = Net()
net.run(9, 10)
run(11, 12)
f(13, x)
net.f(14, x)
"""


@pytest.mark.parametrize(
    ("line", "reason", "changed"),
    [
        ("return x * n", "steps", {"steps = 1": "steps = torch.tensor(1)", "    steps = 7": "    steps = torch.tensor(7)",
                                   "    steps += 8": "    steps = steps + 8"}),
        ("return k * n", "self.steps", {"        self.steps = 2": "        self.steps = torch.tensor(2)",
                               "        self.steps += 1": "        self.steps = self.steps + 1"}),
        ("return k * n", "self.inner.steps", {"        self.steps = 4": "        self.steps = torch.tensor(4)"}),
        ("return k * n", "self.other.steps", {}),
        ("return k * n", "n", {}),
        ("return x * n", "n", {"f(13, x)": "f(torch.tensor(13), x)"}),
    ],
)  # fmt: skip
def test_another_number_of_the_same_name_stays(line: str, reason: str, changed: dict[str, str]) -> None:
    found = offered(counters, NAMESAKES.replace(line, f"«{line}»"), kind="recompile", reason=reason)
    wanted = [changed.get(one, one) for one in NAMESAKES.splitlines()]
    assert [new.splitlines() for _, new in found] == ([wanted] if changed else [])


GUARDS = (
    "    y = x[i] if «i < 4» else x\n    return y\n",
    "    if «i < 4»:\n        return x[i]\n    return x\n",
    "    n = i + 0\n    if «i < 4»:\n        return x[n]\n    return x\n",
)


@pytest.mark.parametrize("body", GUARDS)
def test_a_condition_that_guards_an_index_stays_one(body: str) -> None:
    head = HEAD.replace("(x)", "(x, i)")
    assert [c.title for c, _ in offered(branches, head + body)] == ["Choose with torch.cond"]
    both = [c.title for c, _ in offered(branches, head + body.replace("i < 4", "x[i] < 4"))]
    assert both == ["Choose with torch.where", "Choose with torch.cond"]


def test_an_edit_is_as_small_as_it_can_be() -> None:
    body = "    y = x + 1\n    if «y.sum() > 0»:\n        y = y * 2\n    return y\n"
    for candidate, text in offered(branches, HEAD + body):
        assert text
        for edit in candidate.edits:
            before, after = lines_of(edit.before), lines_of(edit.after)
            assert edit.last_line - edit.first_line + 1 == len(before)
            assert 6 <= edit.first_line <= edit.last_line <= 7
            assert len(before) == 1 or (before[-1] != after[-1])


def test_text_that_is_not_python() -> None:
    at = Problem("cell", "%matplotlib inline\nif x.sum() > 0:\n    y = 1\n", 2, 2, 3, 14, "", BRANCH, "")
    assert [c for rewrite in REWRITES for c in rewrite(at)] == []


def test_real_code() -> None:
    """Offers for each statement of real modules: edits fit, the result is Python, and nothing raises."""
    import torch.nn.functional

    text = Path(torch.nn.functional.__file__).read_text(encoding="utf-8")
    lines = text.splitlines()
    nodes = [
        n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.If | ast.IfExp | ast.While | ast.For | ast.Assert | ast.Call)
    ]
    count = 0
    for node in itertools.islice(nodes, 0, None, 30):
        at = node.test if isinstance(node, ast.If | ast.IfExp | ast.While) else node
        column = len(lines[at.lineno - 1].encode()[: at.col_offset].decode())
        found = Problem("functional.py", text, at.lineno, at.end_lineno or at.lineno, column, None, "", BRANCH, "")
        for rewrite in REWRITES:
            for candidate in rewrite(found):
                ast.parse(edited(text, candidate.edits))
                count += 1
    assert count


@pytest.mark.parametrize(
    ("code", "changes"),
    [
        ("x[0], x[1] = x[1], x[0]", True), ("a, *x[1:] = x", True), ("del x[0]", True), ("del (x.a, y)", True),
        ("x[0]: int = 1", True), ("for x[0] in y: pass", True), ("with y as x.a: pass", True), ("a, x = x, a", False),
        ("del x", False), ("x[0]: int", False), ("for a in x: pass", False), ("with x as a: pass", False),
    ],
)  # fmt: skip
def test_every_form_of_assignment_that_changes_a_value_in_place(code: str, changes: bool) -> None:
    assert changed_in_place({"x"}, cst.parse_module(code)) == changes


def test_a_value_that_is_changed_in_place_is_not_read_by_a_choice() -> None:
    """The backward of sin needs the old y: `y += torch.where(..., y.sin(), 0)` would lose it where y stays as it is."""
    head = HEAD + "    y = x * 2\n    if «x.sum() > 0»:\n        y += "
    assert any("torch.where" in text for _, text in offered(branches, head + "x.sin()\n    return y\n"))
    assert not any("torch.where" in text for _, text in offered(branches, head + "y.sin()\n    return y\n"))


def test_the_column_of_a_call_is_in_characters() -> None:
    """`ast` counts bytes."""
    marked = problem('import torch\nimport tool\n\ndef f(x):\n    é = "ü"; x = «tool.run(x)»\n    return x\n')
    [candidate] = wraps.called(marked)
    assert '    é = "ü"; x = _traced_tool_run(x)\n' in with_edits(marked.source, candidate.edits)


def texts(module: ModuleType, marked: str, **fields: str) -> list[str]:
    return [text for _, text in offered(module, marked, **fields)]


@pytest.mark.parametrize(
    ("module", "body", "wanted"),
    [
        (
            branches, "    if «2 * float((x - y).pow(2).sum() + y.sum()) > 1000»:\n        x = y\n    return x\n",
            "torch.where(2 * ((x - y).pow(2).sum() + y.sum()) > 1000, y, x)",
        ),
        (
            branches, "    return x if «int((x * y).sum() + y.sum()) > 3» else y\n",
            "torch.where(((x * y).sum() + y.sum()).long() > 3, x, y)",
        ),
        (scalars, "    return y * «float((x * y).sum() + y.sum())»\n", "return y * ((x * y).sum() + y.sum()).detach()"),
        (
            branches, "    if «x.sum() > 0»:\n        r = y + 1\n    elif self.training:\n"
            "        r = y * 2 if self.fast else y\n    else:\n        r = y * 3\n    return r\n",
            "torch.where(x.sum() > 0, y + 1, ((y * 2 if self.fast else y) if self.training else y * 3))",
        ),
        (
            branches, "    if «x.sum() > 0»:\n        return x * 2, (h, c)\n    return x, (h, c)\n",
            "return torch.where(x.sum() > 0, x * 2, x), (h, c)",
        ),
        (
            branches, "    return x if «(a if p else b) < c.sum().item() < 3» else y\n",
            "torch.logical_and((a if p else b) < c.sum(), c.sum() < 3)",
        ),
    ],
)  # fmt: skip
def test_parentheses_stay_where_they_mean_something(module: ModuleType, body: str, wanted: str) -> None:
    assert any(wanted in text for text in texts(module, HEAD + body)), texts(module, HEAD + body)


def test_a_condition_that_becomes_a_tensor_is_forced_and_its_precision_named() -> None:
    body = "    if «x.sum().item() > 1e30»:\n        return x.half()\n    return x * 2\n"
    candidate, _ = offered(branches, HEAD + body)[0]
    assert [(test.before, test.after) for test in candidate.tests] == [("x.sum().item() > 1e30", "x.sum() > 1e30")]
    assert "the precision and the range of the tensor's dtype" in candidate.assumption
    candidate, _ = offered(branches, HEAD + "    if «torch.equal(x, y)»:\n        return x + 1\n    return x * 2\n")[0]
    assert [test.after for test in candidate.tests] == ["torch.eq(x, y).all()"]
    assert "The tensors that torch.equal compares have the same shape." in candidate.assumption


@pytest.mark.parametrize(
    "body",
    [
        "    idx = torch.arange(2)\n    h = torch.sin(x)\n    if «h.sum() > 0»:\n        r = h[idx]\n"
        "    elif h.sum() < -5:\n        r = h[idx] * 3\n    else:\n        r = h[idx] * 2\n    return r\n",
        "    i = x.argmax()\n    h = x.sin()\n    if «h.sum() > 0»:\n        r = h[i]\n"
        "    else:\n        r = h[0]\n    return r\n",
        "    if «x.sum() > 0»:\n        x = x[idx]\n    return x\n",
        "    h = self.lin(x)\n    if «h.sum() > 0»:\n        h = h[self.k]\n    return h\n",
        "    y = x[idx]\n    if «y.sum() > 0»:\n        y = x[idx] * 2\n    return y\n",
        "    if «x.mean() > 0»:\n        r = F.cross_entropy(x, y)\n    else:\n        r = x.sum()\n    return r\n",
    ],
)
def test_an_index_that_no_condition_asks_about_may_be_used(body: str) -> None:
    titles = [candidate.title for candidate, _ in offered(branches, "import torch.nn.functional as F\n" + HEAD + body)]
    assert "Choose with torch.where" in titles


@pytest.mark.parametrize(
    "body",
    [
        "    ok = i < x.shape[0]\n    if «ok»:\n        r = x[i]\n    else:\n        r = x[0]\n    return r\n",
        "    left = x.shape[0] - i\n    if «left > 0»:\n        r = x[i]\n    else:\n        r = x[0]\n    return r\n",
        "    ok = i < n\n    every = ok.all()\n    if «every»:\n        r = x[i]\n    else:\n        r = x[0]\n    return r\n",
        "    if «self.i < len(x)»:\n        r = x[self.i]\n    else:\n        r = x[0]\n    return r\n",
        "    self.left = len(x) - self.i\n    if «self.left > 0»:\n        r = x[self.i]\n"
        "    else:\n        r = x[0]\n    return r\n",
        "    h = x[i.clamp(max=3)]\n    left = h.shape[0] - i\n    if «left > 0»:\n        r = x[i]\n"
        "    else:\n        r = x[0]\n    return r\n",
        "    x = x[idx]\n    left = x.shape[0] - idx.max()\n    if «left > 0»:\n        r = x[idx]\n"
        "    else:\n        r = x[0]\n    return r\n",
        "    for i in items:\n        if «left > 0»:\n            x = x[i]\n        left = len(x) - i\n    return x\n",
        "    ok = i.lt(n)\n    if «ok»:\n        r = x[i]\n    else:\n        r = x[0]\n    return r\n",
        "    n = i + 1\n    ok = n < len(x)\n    if «ok»:\n        r = x[n]\n    else:\n        r = x[0]\n    return r\n",
        "    if «(t >= 0).all()»:\n        r = F.cross_entropy(target=t, input=x)\n"
        "    else:\n        r = x.sum()\n    return r\n",
        "    if «t.max() < x.shape[1]»:\n        r = F.cross_entropy(x, t)\n    else:\n        r = x.sum()\n    return r\n",
    ],
)
def test_an_index_that_a_condition_guards_is_not_always_used(body: str) -> None:
    titles = [candidate.title for candidate, _ in offered(branches, "import torch.nn.functional as F\n" + HEAD + body)]
    assert "Choose with torch.where" not in titles


def test_a_number_from_what_may_change_in_place_is_copied() -> None:
    body = "    scale = «self.total[0].item()»\n    if self.reset:\n        self.total.zero_()\n    return x ** scale + 1\n"
    assert "scale = self.total[0].detach().clone()" in texts(scalars, HEAD + body)[0]
    body = "    scale = «t.item()»\n    t.zero_()\n    return x * scale\n"
    assert "scale = t.detach().clone()" in texts(scalars, HEAD + body)[0]
    for view in ("self.total.detach()", "x[0].view(())"):
        assert f"{view}.detach().clone()" in texts(scalars, HEAD + f"    return x * «{view}.item()»\n")[0]
    for body in ("n, s = self.stats\n", "pair = self.n, self.s\n    n, s = pair\n", "[n, s] = self.n, self.s\n"):
        body = f"    {body}    scale = «s.item()»\n    self.stats[1].zero_()\n    return x * scale\n"
        assert "scale = s.detach().clone()" in texts(scalars, HEAD + body)[0]
    body = "    n, s = x.shape[0], x.sum()\n    return x * «s.item()» + n\n"
    assert "x * s.detach() + n" in texts(scalars, HEAD + body)[0]
    body = "    t = self.total\n    scale = «t.item()»\n    self.total.zero_()\n    return x * scale\n"
    assert "scale = t.detach().clone()" in texts(scalars, HEAD + body)[0]
    body = "    last = «self.total.item()»\n    y = x * 2\n    self.total.zero_()\n    log.append(last)\n    return y * 2\n"
    assert "last = self.total.detach().clone()" in texts(log_values, HEAD + body)[0]
    assert "return x * t.detach()\n" in texts(scalars, HEAD + "    return x * «t.item()»\n")[0]


@pytest.mark.parametrize(
    ("module", "text"),
    [
        (
            parts, HEAD + "    y = x.sin()\n    try:\n        for item in items:\n            y = y + 1\n"
            "            «check(item)»\n            y = y * 2\n    except ValueError:\n"
            "        return y * 10\n    return y.cos()\n",
        ),
        (
            parts, HEAD + "    y = x.sin()\n    for i in range(2):\n        try:\n            if Log.flag: y = y + 1\n"
            "            «check(y)»\n        except ValueError:\n            pass\n"
            "        if i > 5: return y\n    return y.cos()\n",
        ),
        (
            parts, HEAD + "    y = x.sin()\n    for i in range(2):\n        with contextlib.suppress(ValueError):\n"
            "            y = y + 1\n            «check(y)»\n            y = y * 2\n"
            "        if i > 5: return y\n    return y.cos()\n",
        ),
        (
            printing, HEAD + '    y = x.sin()\n    if self.verbose:\n'
            '        «log.warning("""Values:\nmax %s""", y.max())»\n'
            "    return y * 2\n",
        ),
        (
            empty_rows, HEAD + "    if «(x < 0).any()»:\n"
            "        x = x.masked_fill(x < 0, 0)\n        y[x < 0] = 1\n    return y, x\n",
        ),
        (
            empty_rows, HEAD + "    mask = x < 0\n    if «mask.any()»:\n"
            "        mask = self.blocked\n        y[mask] = 1\n    return y\n",
        ),
    ],
)  # fmt: skip
def test_what_would_do_something_else_is_not_offered(module: ModuleType, text: str) -> None:
    assert texts(module, text) == []


@pytest.mark.parametrize(
    "above",
    [
        "    for y in items:\n        pass\n    else:\n        z = x + 1\n",
        "    flag and (y := x + 1)\n    z = x + 1\n",
    ],
)
def test_a_name_that_may_be_unbound_is_not_bound(above: str) -> None:
    source = parse(f"def f(x, items, flag):\n{above}        return z\n".replace("        return", "    return"))
    assert source is not None
    inside = [s for s in source.all_of(cst.SimpleStatementLine) if "z = x + 1" in source.text_of(s)]
    assert "y" not in bound_before(source, inside[0])


def test_a_method_of_a_module_in_a_list_may_do_anything() -> None:
    source = parse("def f(self, x):\n    self.block.forward(x)\n    self.blocks[0].forward(x)\n    x[0].sum()\n")
    assert source is not None
    torch_names = Torch(source, source.module)
    calls = {source.text_of(call): is_pure_call(torch_names, call) for call in source.all_of(cst.Call)}
    assert calls == {"self.block.forward(x)": False, "self.blocks[0].forward(x)": False, "x[0].sum()": True}


def test_a_text_of_several_lines_moves_as_it_is() -> None:
    body = '    y = x.sin()\n    if self.verbose:\n        «log.warning("""Values:\n            max %s""", y.max())»\n'
    body += "    return y * 2\n"
    [moved, *_] = texts(printing, HEAD + body)
    assert '"""Values:\n            max %s"""' in moved


def test_the_mask_that_a_statement_replaces_is_not_used_any_more() -> None:
    body = "    if «(y < 0).any()»:\n        y = y.masked_fill(y < 0, 0)\n    return y\n"
    assert "    y = y.masked_fill(y < 0, 0)\n    return y\n" in texts(empty_rows, HEAD + body)[0]


def test_later_messages_in_one_line_move_too() -> None:
    body = '    y = x.sin()\n    «print("first", y.sum())»\n    if self.verbose: print("later")\n    return y * 2\n'
    for text in texts(printing, HEAD + body):
        assert text.index('"first"') < text.index('"later"')


def test_a_number_of_the_class_stays() -> None:
    text = (
        "import torch\n\nclass Net(torch.nn.Module):\n    scale = 1.0\n\n    def restart(self):\n        self.scale = 1.0\n\n"
        "    def forward(self, x):\n        self.scale *= 0.5\n        return «x * self.scale»\n"
    )
    at = problem(text, kind="recompile", reason="self.scale", function="Net.forward")
    assert counters.candidates(at) == []
    with_init = text.replace("def restart(self)", "def __init__(self)")
    for made in (with_init, with_init.replace("self.scale = 1.0", "self.scale: float = 1.0")):
        assert counters.candidates(problem(made, kind="recompile", reason="self.scale", function="Net.forward"))


def test_a_return_over_several_lines_after_a_branch() -> None:
    body = "    if «x.sum() > 0»:\n        return x, x\n    z = x + 1\n    y = z * 2\n"
    body += "    return (\n        z,\n        y,\n    )\n"
    assert any("torch.where" in text for text in texts(branches, HEAD + body))


def test_the_body_of_a_loop_in_a_suppress_stays_where_it_is() -> None:
    body = "    y = x.sin()\n    with contextlib.suppress(ValueError):\n        for item in items:\n            y = y + 1\n"
    body += "            «check(item)»\n            y = y * 2\n    return y.cos()\n"
    assert not [text for text in texts(parts, HEAD + body) if "def step(" in text or "def run_loop(" in text]


def test_a_condition_of_several_lines_is_put_in_parentheses() -> None:
    body = "    if (\n        «x.sum()\n        > 0»\n    ):\n        a, b = x, y\n"
    body += "    else:\n        a, b = y, x\n    return a, b\n"
    made = texts(branches, HEAD + body)
    assert any("condition = (x.sum()\n        > 0)\n" in text for text in made), made


def test_numbers_by_themselves_as_conditions() -> None:
    body = "    if «{}»:\n        return x + 1\n    return x * 2\n"
    candidate, text = offered(branches, HEAD + body.format("x.any().item()"))[0]
    assert "torch.where(x.any(), x + 1, x * 2)" in text
    assert "precision" not in candidate.assumption
    assert [(test.before, test.after) for test in candidate.tests] == [("x.any()", "x.any()")]
    assert "precision" not in offered(branches, HEAD + body.format("not x.any().item()"))[0][0].assumption
    candidate, _ = offered(branches, HEAD + body.format("bool(x.sum().item() > 1e30)"))[0]
    assert [(test.before, test.after) for test in candidate.tests] == [("x.sum().item() > 1e30", "x.sum() > 1e30")]
    assert "the precision and the range" in candidate.assumption
    assert "torch.where(x.sum().long() != 0, x + 1, x * 2)" in texts(branches, HEAD + body.format("int(x.sum())"))[0]
    assert "torch.where(x.sum().long() != 0, x * 2, x + 1)" in texts(branches, HEAD + body.format("not int(x.sum())"))[0]
