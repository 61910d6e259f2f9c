"""Repeated calls leave everything as the one call has left it, compared with a twin that was called once and not repeated."""

from __future__ import annotations

import contextlib
import functools
import io
import os
import random
import signal
import sys
import warnings
import weakref
from collections import OrderedDict, deque
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
import torch
from example_counts import examples
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st
from torch.testing._internal.two_tensor import TwoTensor

import dynascope
from dynascope import compiler

OURS = os.path.dirname(compiler.__file__)

WORLD = """
class Thing:
    total = 0
    def __init__(self): self.n, self.items, self.tensor = 0, [1, 2], torch.zeros(2)
    def use(self): self.n, Thing.total = self.n + 1, Thing.total + len(self.items)
class Slots:
    __slots__ = ("late", "n")
    def __init__(self): self.n = 0
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.norm, self.calls = torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2), 0
        self.register_buffer("seen", torch.zeros(2))
    def forward(self, x):
        self.calls += 1
        self.seen += x.detach().sum(0)
        return self.norm(self.linear(x))
model = Net()
optimizer = (torch.optim.Adam if adam else torch.optim.SGD)(model.parameters(), lr=0.1, **({} if adam else {"momentum": 0.9}))
thing, slots, shared, COUNT, table = Thing(), Slots(), [0], 0, torch.zeros(3)
view, leaf = table[1:], torch.ones(2, requires_grad=True)
computed = (leaf * 2).exp()
nested = {"deep": [{"k": [1], "t": torch.ones(2)}], "order": OrderedDict(a=1, b=2), "queue": deque([1, 2, 3]), "set": {1}}
array, drawn, generator = np.zeros(3), [], torch.Generator().manual_seed(1)
def counter():
    n = 0
    def count():
        nonlocal n
        n += 1
        return n
    return count
count = counter()
grid = np.arange(12.0).reshape(3, 4)
cells = np.array([[1]], dtype=object)
state = {"t": torch.zeros(2), "list": [], "a": np.ones(2), "grid": grid, "view": grid[::-1, 1:], "cells": cells}
arguments = (torch.ones(3, 2), state, Thing(), (leaf * 3, [torch.ones(1)]), shared)
"""

CHANGES = (
    "x.add_(1)", "x[0] = COUNT", "state['n'] = state.get('n', 0) + 1",
    "state.setdefault('t', torch.zeros(2)).mul_(2).add_(1)", "state['a'] += 1",
    "state['grid'] += 1; state['view'][0, 0] *= 2; state['cells'][0, 0] += 1",
    "state['list'].append(x.sum().item())", "state.pop('t', None) if 't' in state else state.update(t=torch.ones(2))",
    "given.use(); given.tensor = given.tensor + 1", "given.tensor.add_(1)", "pair[0].mul_(2)",
    "pair[1].append(pair[0].sum())", "also.append(len(shared))", "shared.insert(0, COUNT)", "model(x)",
    "model(x).sum().backward()", "optimizer.step()", "optimizer.zero_grad()", "optimizer.param_groups[0]['lr'] *= 0.5",
    "model.eval() if model.training else model.train()", "model.linear.weight.data.add_(1)", "model.seen = model.seen * 2",
    "model.linear.weight.data = model.linear.weight.data + 1", "model.linear.bias.requires_grad_(False)",
    "model.new = [COUNT]", "model.linear.weight.grad = None", "nested['deep'][0]['k'].append(COUNT)",
    "nested['deep'][0]['t'].add_(1)", "nested['deep'].append({'k': [], 't': x[0]})",
    "nested['order'].move_to_end(next(iter(nested['order'])))", "nested['queue'].rotate(1)",
    "nested['set'].add(len(nested['set']))", "COUNT += 1", "globals()['NEW'] = COUNT; NEW", "thing.use()",
    "Thing.more = COUNT", "thing.items.clear()", "del thing.items[-1:]", "thing.__dict__ = dict(vars(thing), more=COUNT)",
    "slots.n += 1", "slots.late = COUNT", "count()", "table.add_(1)", "view.fill_(COUNT)", "table.resize_(5)[3:] = 0",
    "array[1:] += 1", "leaf.grad = torch.full((2,), float(COUNT))", "computed.sum().backward(retain_graph=True)",
    "leaf.register_hook(lambda g: g * 2)", "drawn.append(torch.rand(1).item())", "drawn.append(random.random())",
    "drawn.append(np.random.rand())", "drawn.append(torch.rand(1, generator=generator).item())",
    "torch.nn.functional.dropout(x)", "torch.set_grad_enabled(not torch.is_grad_enabled())",
    "os.environ['DYNASCOPE_REPLAY'] = str(COUNT)", "print('spoken', COUNT)", "print('spoken', file=sys.stderr)",
)  # fmt: skip


#: more that a call can change: its setup, the change, and an expression that shows it
PLACES = [
    tuple(section.partition("\n")[2].strip().split("\n--\n"))
    for section in Path(__file__).with_name("replay_places.txt").read_text(encoding="utf-8").split("== ")[1:]
]
COUNTED: list[int] = []


@torch.library.custom_op("dynascope_tests::counted", mutates_args=())
def counted(x: torch.Tensor) -> torch.Tensor:
    COUNTED.append(1)
    return x.clone()


def a_world(changes: list[Any], adam: bool) -> dict[str, Any]:
    """A namespace of its own, with the function `f` that makes these changes and the `arguments` for it."""
    places = [change for change in changes if not isinstance(change, str)]
    setup = "\n".join(place[0] for place in places)
    body = "".join(f"    {change if isinstance(change, str) else change[1]}\n" for change in changes)
    source = f"{setup}\n@torch.compiler.disable\ndef f(x, state, given, pair, also):\n    global COUNT\n{body}    return x\n"
    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)
    world = {"__name__": "made_world", "torch": torch, "np": np, "random": random, "os": os, "sys": sys, "adam": adam,
             "OrderedDict": OrderedDict, "deque": deque, "functools": functools, "weakref": weakref, "TwoTensor": TwoTensor,
             "counted": counted, "COUNTED": COUNTED}  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(WORLD, "<made world>", "exec"), world)
        world["__names__"] = {*world, "NEW"}
        exec(compile(source, "<made world>", "exec"), world)
    world["__seen__"] = [place[2] for place in places]
    return world


def described(value: Any, seen: dict[int, tuple[int, Any]]) -> Any:
    """Everything in a value, for comparing: what is one object twice, and each tensor's values, gradient and version."""
    if id(value) in seen:
        return ("again", seen[id(value)][0])
    if isinstance(value, (type(None), bool, int, float, str)):
        return value
    seen[id(value)] = (len(seen), value)
    if isinstance(value, torch.Tensor):
        kind = (type(value).__name__, value.requires_grad, value.is_leaf, value._version, str(value.grad_fn).partition(" ")[0])
        hooks = len(value._backward_hooks or ())
        values = "" if isinstance(value, TwoTensor) else repr(value.tolist())
        return (*kind, values, value.stride(), hooks, described(value.grad if value.is_leaf else None, seen))
    if isinstance(value, torch.Generator):
        return value.get_state().tolist()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, dict):
        return (type(value).__name__, [(described(k, seen), described(v, seen)) for k, v in value.items()])
    if isinstance(value, (list, tuple, deque, set)):
        return (type(value).__name__, [described(v, seen) for v in value])
    if isinstance(value, type) and value.__module__ != "made_world":
        return value.__name__
    if isinstance(value, type):
        return {k: described(v, seen) for k, v in vars(value).items() if not k.startswith("__")}
    slots = [getattr(value, name, None) for name in getattr(type(value), "__slots__", ())]
    cells = [cell.cell_contents for cell in getattr(value, "__closure__", None) or ()]
    return (type(value).__name__, described(getattr(value, "__dict__", {}), seen), described([*slots, *cells], seen))


def everything(world: dict[str, Any]) -> Any:
    """All that can be told about a world and the process; it may change the world."""
    names = {k: v for k, v in world.items() if k in world["__names__"] and getattr(v, "__name__", "") not in sys.modules}
    process = [
        random.getstate(),
        torch.get_rng_state().tolist(),
        str(np.random.get_state()),
        torch.is_grad_enabled(),
        dict(os.environ),
    ]
    return [described(names, {}), process, [repr(eval(seen, world)) for seen in world["__seen__"]]]


@contextlib.contextmanager
def unchanged_process() -> Iterator[tuple[io.StringIO, io.StringIO]]:
    out, err, gradients = io.StringIO(), io.StringIO(), torch.is_grad_enabled()
    os.environ.pop("DYNASCOPE_REPLAY", None)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            yield out, err
    finally:
        torch.set_grad_enabled(gradients)
        os.environ.pop("DYNASCOPE_REPLAY", None)


def compare(changes: list[Any], adam: bool, options: dict[str, Any], interrupt: int = 0) -> int:
    """Call a world with its calls repeated, and a twin once; returns the number of lines that ran after an interrupt."""
    twin = a_world(changes, adam)
    with unchanged_process() as printed:
        try:
            twin["f"](*twin["arguments"])
        except RuntimeError:  # a backward without a graph: the call is not repeated then
            reject()
        expected, output = everything(twin), [stream.getvalue() for stream in printed]
    world = a_world(changes, adam)
    with unchanged_process() as printed, interrupted(interrupt) as left, warnings.catch_warnings():
        warnings.simplefilter("ignore")

        def entry(*args: Any) -> Any:
            result = world["f"](*args)
            left[1] = True
            return result

        notes = []
        with contextlib.suppress(KeyboardInterrupt):
            torch._dynamo.reset()
            notes = dynascope.explain(entry, backend="eager", **options)(*world["arguments"]).notes
        sys.settrace(None)
        found = everything(world)
        assert [stream.getvalue() for stream in printed] == output
    assert found == expected or any("autograd history" in note for note in notes)
    return left[0]


@contextlib.contextmanager
def interrupted(line: int) -> Iterator[list[Any]]:
    """Ctrl-C when so many lines of the product and the world have run after the first call; 0: never."""
    left, before = [line, False], sys.gettrace()

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        if not frame.f_code.co_filename.startswith((OURS, "<made world>")):
            return None
        if event == "line" and left[1]:
            left[0] -= 1
            if left[0] == 0:
                signal.raise_signal(signal.SIGINT)
        return trace

    if line:
        sys.settrace(trace)
    try:
        yield left
    finally:
        sys.settrace(before)


@pytest.mark.parametrize("number", range(12))
def test_every_change_is_undone(number: int) -> None:
    """Each in the company of others."""
    changes = [*CHANGES, *PLACES]
    random.Random(7).shuffle(changes)
    compare(changes[number::12], adam=bool(number % 2), options={"profile": 2} if number % 3 == 0 else {"check": True})


@settings(max_examples=examples(8), deadline=None, print_blob=True, suppress_health_check=list(HealthCheck))
@given(
    changes=st.lists(st.sampled_from([*CHANGES, *PLACES]), min_size=3, max_size=14, unique=True),
    adam=st.booleans(),
    options=st.sampled_from([{"check": True}, {"check": True}, {"profile": 1}, {"check": True, "second_call": True}]),
    interrupt=st.just(0) | st.just(0) | st.integers(1, 60_000),
)
def test_repeated_calls_leave_everything_as_the_one_call(
    changes: list[Any], adam: bool, options: dict[str, Any], interrupt: int
) -> None:
    compare(changes, adam, options, interrupt)


def test_an_interrupt_at_any_moment_leaves_everything_as_the_one_call() -> None:
    """Also one that comes while everything is restored."""
    changes, line = ["COUNT += 1", "x.add_(1)", "model(x)", "shared.append(COUNT)", "thing.use()"], 1
    while compare(changes, False, {"check": True}, line) <= 0:
        line += 4001
