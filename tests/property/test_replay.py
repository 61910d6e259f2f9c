"""Replays leave everything as the one call has left it, compared with a twin that was called once and not replayed."""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import random
import sys
from collections import OrderedDict, deque
from collections.abc import Iterator
from types import FrameType
from typing import Any

import numpy as np
import torch
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from dynascope.compiler.replay import replay
from dynascope.compiler.replay.replay import RecordedCall

EXAMPLES = int(os.environ.get("DYNASCOPE_EXAMPLES", "150"))
OURS = os.path.dirname(replay.__file__)

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
arguments = (torch.ones(3, 2), {"t": torch.zeros(2), "list": [], "a": np.ones(2)}, Thing(), (leaf * 3, [torch.ones(1)]), shared)
"""

CHANGES = (
    "x.add_(1)", "x[0] = COUNT", "state['n'] = state.get('n', 0) + 1",
    "state.setdefault('t', torch.zeros(2)).mul_(2).add_(1)", "state['a'] += 1",
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


def a_world(changes: list[str], adam: bool) -> dict[str, Any]:
    """A namespace of its own, with the function `f` that makes these changes and the `arguments` for it."""
    body = "".join(f"    {change}\n" for change in changes)
    source = f"{WORLD}\ndef f(x, state, given, pair, also):\n    global COUNT\n{body}    return x"
    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)
    world = {"__name__": "made_world", "torch": torch, "np": np, "random": random, "os": os, "sys": sys, "adam": adam,
             "OrderedDict": OrderedDict, "deque": deque}  # fmt: skip
    exec(compile(source, "<made world>", "exec"), world)
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
        return (*kind, repr(value.tolist()), value.stride(), hooks, described(value.grad if value.is_leaf else None, seen))
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
    names = {k: v for k, v in world.items() if not k.startswith("__") and getattr(v, "__name__", "") not in sys.modules}
    process = [
        random.getstate(),
        torch.get_rng_state().tolist(),
        str(np.random.get_state()),
        torch.is_grad_enabled(),
        dict(os.environ),
    ]
    return [described(names, {}), process]


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


@contextlib.contextmanager
def interrupted(line: int) -> Iterator[list[int]]:
    """Raise KeyboardInterrupt when so many lines of the program or of `replay` have run; yields the number that are left."""
    left, before = [line], sys.gettrace()

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        if not frame.f_code.co_filename.startswith((OURS, "<made world>")):
            return None
        if event == "line":
            left[0] -= 1
            if left[0] == 0:
                raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    try:
        with contextlib.suppress(KeyboardInterrupt):
            yield left
    finally:
        sys.settrace(before)


@settings(max_examples=EXAMPLES, deadline=None, print_blob=True, suppress_health_check=list(HealthCheck))
@given(
    changes=st.lists(st.sampled_from(CHANGES), min_size=3, max_size=14, unique=True),
    adam=st.booleans(),
    turns=st.lists(st.booleans(), min_size=1, max_size=4),
    interrupt=st.none() | st.none() | st.integers(1, 3000),
)
def test_replays_leave_everything_as_the_one_call(
    changes: list[str], adam: bool, turns: list[bool], interrupt: int | None
) -> None:
    twin = a_world(changes, adam)
    with unchanged_process() as printed:
        try:
            twin["f"](*twin["arguments"])
        except RuntimeError:  # a backward without a graph: the call is not replayed then
            reject()
        expected, output = everything(twin), [stream.getvalue() for stream in printed]
    world = a_world(changes, adam)
    with unchanged_process() as printed:
        recorded = RecordedCall(world["f"], world["arguments"], {})
        assert recorded.refusal is None
        before = described(world["arguments"], {})
        world["f"](*world["arguments"])
        assert everything(world) == expected
        with interrupted(interrupt) if interrupt else contextlib.nullcontext(), recorded.replaying() as prepare:
            for only_changed in turns:
                args, kwargs = prepare(only_changed=only_changed)
                if interrupt is None and not only_changed:
                    assert without_versions(described(args, {})) == without_versions(before)
                with contextlib.suppress(RuntimeError):
                    world["f"](*args, **kwargs)
        found = everything(world)
        assert [stream.getvalue() for stream in printed] == output
    reported = any("autograd history" in note for note in recorded.notes)
    assert found == expected or reported


def without_versions(value: Any) -> Any:
    """A description without what clones need not have: the versions and histories of tensors."""
    if isinstance(value, (list, tuple)):
        is_tensor = len(value) == 9 and value[0] in ("Tensor", "Parameter")
        return [without_versions(v) for i, v in enumerate(value) if not (is_tensor and i in (3, 4))]
    return value


def test_an_interrupt_at_any_moment_leaves_everything_as_the_one_call() -> None:
    """Also one that comes while everything is restored."""
    world = a_world(["COUNT += 1", "x.add_(1)", "model(x)", "shared.append(COUNT)", "thing.use()"], adam=False)
    with unchanged_process():
        recorded = RecordedCall(world["f"], world["arguments"], {})
        world["f"](*world["arguments"])
        expected = everything(world)
        for line in itertools.count(1, 211):
            with interrupted(line) as lines_left, recorded.replaying() as prepare:
                args, kwargs = prepare()
                world["f"](*args, **kwargs)
            assert everything(world) == expected, line
            if lines_left[0] > 0:
                break  # it was never interrupted
