"""Texts that no run of the search shows in all their forms: settings and marks in a patch.

Inside: these functions may be replaced, their sentences and places should not.
"""

from __future__ import annotations

import pytest

from dynascope.compiler.lab.fix.patch import final_texts, marked_calls, with_settings
from dynascope.compiler.lab.fix.plan import Plan

HEAD = "import torch as t\n\ndef f(x, n=1): return x * n\n\n"
MARK = "t._dynamo.mark_dynamic({}, 0)\n"


def test_settings_stand_above_what_is_compiled() -> None:
    settings = {"torch._dynamo.config.capture_scalar_outputs": True}
    text = with_settings("import torch\nf(1)\n", settings, {})
    assert text == "import torch\n\ntorch._dynamo.config.capture_scalar_outputs = True\n\nf(1)\n"
    text = with_settings("'text'\nf(1)\n", settings, {"torch": "t"})
    assert text == "'text'\n\nt._dynamo.config.capture_scalar_outputs = True\n\nf(1)\n"
    text = with_settings("# a cell\nf(1)\nx.item()\n", settings, {"torch": "torch"})
    assert text.startswith("# a cell\n\ntorch._dynamo.config")
    more = settings | {"torch._dynamo.config.reorderable_logging_functions": ["builtins.print"], "torch._dynamo.config.x": 1}
    one, two, plan = (Plan({"t.py": f"{HEAD}@t.compile\ndef g(): 1\n"}, s) for s in (settings, more, more | {"dynamic": True}))
    text = final_texts(plan, "t.py", "g", "", {}, [(one, two, "quiet"), (two, plan, "sizes")])["t.py"]
    assert "outputs = True\n# holds under a condition: quiet\nt._dynamo.config.reorderable" in text
    assert text.count("quiet") == 1
    assert text.endswith("x * n\n\n# holds under a condition: sizes\n@t.compile(dynamic=True)\ndef g(): 1\n")


@pytest.mark.parametrize(
    ("calls", "marked"),
    [
        ("f(a)\nc = t.compile(f)\nfor b in a:\n    y = c(n=2, x=b)\n",
         f"{MARK.format('a')}f(a)\nc = t.compile(f)\nfor b in a:\n    {MARK.format('b')}    y = c(n=2, x=b)\n"),
        ("y = f(a) or 0\n", f"{MARK.format('a')}y = f(a) or 0\n"),
        ("y = 1 if f(a) else 0\n", f"{MARK.format('a')}y = 1 if f(a) else 0\n"),
        *((f"{call}\n", None) for call in (
            "y = a or f(a)", "y = f(a) if a is not None else None", "f(t.ones(3))", "f(a)\nf(2)", "a = 1; f(a)",
            "for a in b: f(a)", "while f(a): pass", "[f(a) for a in b]", "f(*a)", "f(n=1)", "g(a)",
            "f(a)\nrun(f, b)", "f(a)\ndef run(f, b): return f(b)", "c = t.compile(f)\nc(a)\nrun(c)", "def g(x, y=2): f(x)",
        )),
    ],
)  # fmt: skip
def test_marks_stand_before_the_calls_or_nowhere(calls: str, marked: str | None) -> None:
    assert marked_calls(HEAD + calls, "f", ["x, 0"]) == (None if marked is None else HEAD + marked)
