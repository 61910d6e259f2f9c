"""Programs for the twin test: the same text runs plain and recorded, and nobody may see a difference.

A program is a module: definitions, a function `f(x)` made of parts (parts.txt), and a scene that compiles and calls it
(scenes.txt).  The first programs go through all parts, then through other scenes; `text(number)` is always the same text.
A program has three names from outside: `compile_it(function, **options)` is `torch.compile` with a backend that keeps
graphs, `call(function, *args)` runs and keeps the result or the error, and `saw(value)` keeps a value.
"""

from __future__ import annotations

import random
import re
import textwrap
from pathlib import Path

HERE = Path(__file__).parent
HEAD = """\
import abc, asyncio, collections, contextlib, contextvars, copy, dataclasses, enum, functools, inspect, io, itertools, logging
import operator, os, random, sys, threading, time, traceback, types, warnings, weakref
from concurrent.futures import ThreadPoolExecutor
import torch
import torch.utils.checkpoint
from torch import nn
from torch._dynamo import graph_break
"""
HELPER = """\
def helper(x):
    x = x.sin()
    graph_break()
    return x + 1
"""
#: a word in a part -> what it stands for, each in a part of its own
FORMS = {
    "DECORATOR": {
        "plain": "@torch.compiler.disable",
        "called": "@torch.compiler.disable()",
        "recursive": "@torch.compiler.disable(recursive=True)",
        "not_recursive": "@torch.compiler.disable(recursive=False)",
        "reason": "@torch.compiler.disable(reason='why not')",
        "not_recursive_reason": "@torch.compiler.disable(recursive=False, reason='why not')",
        "dynamo": "@torch._dynamo.disable",
        "dynamo_not_recursive": "@torch._dynamo.disable(recursive=False)",
    },
    "RECURSIVE": {"recursive": "True", "not_recursive": "False"},
    "STANCE": {
        name: repr(name) for name in ("default", "force_eager", "eager_on_recompile", "eager_then_compile", "fail_on_recompile")
    },
}
#: statements between the parts
BETWEEN = ("x = x * 2", "x = x + 1", "graph_break()", "x = x.cos()", "if x.sum() > 0:\n    x = x + 3", "")


def _sections(file: str) -> dict[str, str]:
    """`== name` begins a section."""
    found = re.findall(r"^== (\w+)\n(.*?)(?=^== |\Z)", (HERE / file).read_text(encoding="utf-8"), re.M | re.S)
    sections = {}
    for name, body in found:
        word = next((word for word in FORMS if word in name), "")
        for form, replacement in FORMS.get(word, {"": ""}).items():
            sections[name.replace(word, form)] = body.replace(word, replacement) if word else body
    return sections


#: name -> (definitions, statements of `f` that read and bind x)
PARTS = {name: tuple(("\n" + body).rpartition("\n--\n")[::2]) for name, body in _sections("parts.txt").items()}
#: name -> what compiles and calls `f`
SCENES = _sections("scenes.txt")


def text(number: int) -> str:
    """The program with this number."""
    draw = random.Random(number)
    names, scenes = list(PARTS), list(SCENES)
    first = names[number % len(names)]
    scene = scenes[(number + number // len(names)) % len(scenes)]
    chosen = [first, *draw.sample([n for n in names if n != first], draw.choice((0, 1, 1, 2)))]
    draw.shuffle(chosen)
    body = [line for name in chosen for line in (draw.choice(BETWEEN), PARTS[name][1].strip())]
    body.sort(key=lambda lines: not lines.startswith("global "))  # a `global` statement comes before all uses
    program = [
        f"# {scene}: {', '.join(chosen)}",
        HEAD,
        *dict.fromkeys(PARTS[name][0].replace("HELPER", HELPER) for name in chosen),
        "\ndef f(x):",
        *(textwrap.indent(lines, "    ") for lines in body),
        "    return x\n",
        "def scene():",
        textwrap.indent(SCENES[scene], "    "),
    ]
    return "\n".join(program).replace("NUMBER", str(number))
