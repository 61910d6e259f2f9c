"""Calls that are repeated for `check` and `profile`: which are not, and what is said of effects that cannot be undone.

That everything else is undone is a property test (`tests/property/test_replay.py`).
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import io
import itertools
import logging
import operator
import os
import queue
import sqlite3
import sys
import threading
import warnings
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import dynascope
from dynascope.compiler.lab import objects
from dynascope.compiler.lab.recorded_call import RecordedCall
from dynascope.compiler.report import Report


def again(function: Callable[..., Any], *args: Any, **settings: Any) -> tuple[Report, list[str]]:
    """Call a function that is not compiled, and repeat the call; returns the report, and what was said before the call."""
    plain = torch.compiler.disable(function)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        explain = dynascope.explain(lambda *given: (ONE + 1, plain(*given)), backend="eager", **(settings or {"check": True}))
        report = explain(*(args or [torch.ones(1)]))
    return report, [str(warning.message) for warning in caught if "dynascope:" in str(warning.message)]


#: a graph runs in each call, whatever else the call does
ONE = torch.ones(1)


def refusal(function: Callable[..., Any], *args: Any) -> str:
    """Why the call is not repeated; "" if it is."""
    check = again(function, *args)[0].check
    return "" if check.compared else check.why_not


def notes(function: Callable[..., Any], *args: Any) -> list[str]:
    """What the report says of effects that could not be undone."""
    report, _ = again(function, *args)
    assert report.check.compared, report.check.why_not
    return [note for note in report.notes if not note.startswith("check: ")]


# -- calls that are not repeated -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setup", "call", "why"),
    [
        ("it = iter([1, 2, 3])", "next(it)", "it can reach a list_iterator, whose state cannot be restored"),
        ("it = itertools.count()", "next(it)", "whose state cannot be restored"),
        ("it = map(str, [1, 2])", "next(it)", "whose state cannot be restored"),
        ("it = (n for n in range(2))", "next(it)", "it can reach a generator, whose state cannot be restored"),
        ("", "input() if x is None else x", "it can call input, which would wait for you"),
        ("", "given.name", "one of its arguments is a file"),
        ("lock = threading.Lock()", "lock.acquire()", "could wait for it forever"),
        ("lock = threading.RLock()", "lock.acquire()", "could wait for it forever"),
        ("lock = threading.Semaphore(1)", "lock.acquire()", "could wait for it forever"),
        ("file = open(os.devnull)", "file.close()", "that is closed now"),
        ("class Worse:\n    __class__ = property(lambda self: {}['class'])\nworse = Worse()", "worse",
         "inspecting the objects that it can reach raised KeyError: 'class'"),
        ("calls = queue.SimpleQueue()", "return calls.put(1) or 1 / (2 - calls.qsize())",
         "when repeated, it raised ZeroDivisionError"),
    ],
)  # fmt: skip
def test_a_call_that_cannot_be_repeated(setup: str, call: str, why: str) -> None:
    world = {"itertools": itertools, "threading": threading, "os": os, "queue": queue}
    exec(f"{setup}\ndef f(x, given): {call}", world)
    with open(os.devnull) as file:
        assert why in refusal(world["f"], torch.ones(1), file if "given" in call else None)
    world.get("file", file).close()


# -- what is said before the call, and after it --------------------------------------------------------------------------


def test_what_others_see_too_is_said_before_the_call(tmp_path: Path) -> None:
    local, memory, done = threading.local(), io.StringIO(), threading.Event()
    lines, hidden = queue.Queue[Any](), queue.SimpleQueue[Any]()
    library = torch.library.Library("dynascope_foreign", "DEF")
    library.define("same(Tensor x) -> Tensor")
    library.impl("same", lambda x: x.clone(), "CompositeExplicitAutograd")
    local.n = 0
    with contextlib.closing(sqlite3.connect(":memory:")) as database, open(tmp_path / "out.txt", "w+") as file:
        calls: list[tuple[Callable[..., Any], tuple[str, ...]]] = [
            (lambda x: hidden.put(1), ("_queue.SimpleQueue",)),
            (lambda x: database.execute("select 1"), ("sqlite3.Connection",)),
            (lambda x: (memory.write("x"), lines.put(1), done.set(), setattr(local, "n", 1)),
             ("_thread._local", "a file (StringIO)", "a queue.Queue", "a threading.Event")),
            (lambda x: file.write("x"), ("a file (",)),
            (lambda x: file.read(1), ("a file (",)),
            (lambda x: torch.ops.dynascope_foreign.same(x), ("torch.ops.dynascope_foreign",)),
            (lambda x: open(os.devnull).close(), ("`open`",)),
        ]  # fmt: skip
        for function, words in calls:
            report, said = again(function)
            assert len(said) == 1, words
            assert all(part in said[0] for part in words), said
            assert said[0].removeprefix("dynascope: ") in report.notes
    library._destroy()


def dumped(text: str) -> None:
    Path("never").write_text(text)


class Net(torch.nn.Module):
    def __init__(self, path: str = "") -> None:
        super().__init__()
        self.text = path or str(os.unlink)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + 1

    def export(self) -> None:
        torch.save(self.state_dict(), "never")
        dumped(self.text)

    @property
    def listing(self) -> int:
        return os.system("ls")


Other, net, held = type("Other", (Net,), {}), Net(), [Net().export]
vars(net).update(dump=[], open=0)


def test_what_the_call_may_use_is_what_its_code_names() -> None:
    calls: list[tuple[Callable[..., Any], str | None]] = [
        (lambda x: net(x) + len(net.text), None),  # as every model has, methods that this call does not use
        (lambda x: net.dump.append(net.open), None),  # a list and a number
        (lambda x: net.export(), "`save`, `write_text`"),
        (lambda x: held[0](), "`save`, `write_text`"),
        (net.export, "`save`, `write_text`"),
        (lambda x: net.listing, "`system`"),
        (lambda x: Other()(x), "`unlink`"),
        (lambda x: getattr(net, "ex" + "port")(), "`save`, `system`, `unlink`, `write_text`"),
        (type("Saved", (Net,), {"forward": lambda self, x: torch.save(x, "never")})(), "`save`"),
    ]
    for function, words in calls:
        said = RecordedCall(function, (torch.ones(1),), {}).side_effects
        assert [sentence.partition(":")[0] for sentence in said] == ([f"the call may use {words}"] if words else [])


def test_usual_objects_are_nothing_to_say_of() -> None:
    first, log, locks = operator.itemgetter(0), np.log, [threading.Lock(), threading.RLock(), threading.Semaphore(2)]
    things = [io.SEEK_SET, Path("a"), torch.float32, np.dtype(int), np.float32(1), object(), torch.optim.AdamW([torch.ones(1)])]
    torch.func.grad(lambda x: things.append(x * 2) or x.sum())(torch.ones(2))  # has no storage
    pair, own = namedtuple("pair", "a b"), type("own", (), {"__module__": property(len)})  # so are some classes in C

    def f(x: torch.Tensor) -> Any:
        for lock in locks:
            with lock:
                things.append(memoryview(b""))
        return first([pair(x + float(log(2.0)), own()), torch.relu, len])

    assert notes(f) == []


def test_what_is_seen_to_have_changed_for_good_is_said_afterwards() -> None:
    seen, written = contextvars.ContextVar("seen", default=0), contextvars.ContextVar("written", default=0)
    cache, weight = torch.zeros(2, 2), torch.ones(2, requires_grad=True)

    @functools.lru_cache(1)
    def doubled(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    def f(x: torch.Tensor) -> None:
        written.set(written.get() + seen.get() + 1)
        cache[0] = weight * 2
        doubled(x)

    assert sorted(notes(f)) == [
        "the autograd history of a tensor of shape (2, 2), which the call changes in place, is not restored",
        "the cache of doubled keeps what repeated calls have put into it",
        "the context variable written keeps what repeated calls have set",
    ]
    assert cache.tolist() == [[2, 2], [0, 0]]


# -- what is undone, of the process --------------------------------------------------------------------------------------


def test_settings_of_the_process_take_one_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a" / "a" / "a" / "a").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    threads, known = torch.get_num_threads(), len(sys.path)

    def f(x: torch.Tensor) -> None:
        os.chdir("a")
        sys.path.append("a")
        torch.set_num_threads(torch.get_num_threads() + 1)
        torch.set_grad_enabled(not torch.is_grad_enabled())

    try:
        again(f)
        assert (Path.cwd(), len(sys.path), torch.get_num_threads()) == (tmp_path / "a", known + 1, threads + 1)
        assert not torch.is_grad_enabled()
    finally:
        torch.set_num_threads(threads)
        torch.set_grad_enabled(True)


def test_only_the_output_of_the_repeated_calls_is_held_back(capsys: pytest.CaptureFixture[str]) -> None:
    def other() -> None:
        print("another thread", flush=True)
        print("another thread", file=sys.stderr)

    def f(x: torch.Tensor) -> None:
        print("a call", sys.stdout.isatty())
        sys.stdout.writelines(["of it\n"])
        sys.stdout.buffer.write(b"bytes")
        print("a call", file=sys.stderr)
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()

    again(f)
    told = capsys.readouterr()
    for text in (told.out, told.err):
        assert text.count("a call") == 1
        assert text.count("another thread") == 3
    assert told.out.count("of it") == told.out.count("bytes") == 1


# -- copies of arguments -------------------------------------------------------------------------------------------------


class Pair(tuple):
    def __new__(cls, a: Any, b: Any) -> Pair:
        return super().__new__(cls, (a, b))


def test_copies_are_what_their_originals_are() -> None:
    """Their classes, attributes, strides, aliases, gradients, histories and modes."""
    base, weight, pair = torch.arange(12.0).reshape(3, 4), torch.ones(3, requires_grad=True), Pair(torch.ones(2), 1)
    pair.scale = 3  # type: ignore[attr-defined]
    (weight * 2).sum().backward()
    hidden = (weight * 2).expand(2, 3).t()
    with torch.inference_mode():
        of_inference = torch.ones(3)
    views = (base, base[1:], base.t(), torch.ones(1, 3).expand(5, 3))
    given = (*views, weight, weight.grad, hidden, of_inference, pair, base.max(0))
    first: list[str] = []

    def f(*args: Any) -> None:
        base, view, turned, expanded, weight, grad, hidden, of_inference, pair, largest = args
        base.data.add_(1)
        about = [
            view.tolist(),
            turned.stride(),
            expanded.stride(),
            weight.grad is grad,
            grad.tolist(),
            of_inference.is_inference(),
        ]
        about += [hidden.is_leaf, hidden.requires_grad, hidden.stride(), hidden.tolist(), type(pair), pair.scale, type(largest)]
        first[:] = first or [repr(about)]
        assert first == [repr(about)]

    assert refusal(f, *given) == ""
    assert base[0, 0] == 1


def test_an_argument_that_was_computed_can_be_changed_in_place_by_each_call() -> None:
    report = dynascope.explain(lambda h: h.add_(1) * 2, backend="aot_eager", profile=2)(torch.ones(3, requires_grad=True) * 2)
    assert report.profile is not None, report.notes


def test_what_is_logged_in_a_repeated_call_reaches_nobody() -> None:
    written, log = io.StringIO(), logging.getLogger("dynascope.tests.repeated")
    log.addHandler(handler := logging.StreamHandler(written))
    try:
        assert notes(lambda x: (x + 1, log.warning("once"))) == []
    finally:
        log.removeHandler(handler)
    assert written.getvalue() == "once\n"


def test_results_whose_memory_the_next_call_takes_are_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = torch.zeros(4)  # as a CUDA graph has it, whose next run makes its last results unreadable
    taken: set[int] = set()
    monkeypatch.setattr(objects, "has_memory", lambda storage: storage.data_ptr() not in taken)
    call = RecordedCall(torch.sin, (torch.ones(4),), {})
    call.result = result = [memory.copy_(torch.arange(4.0))[1:], memory[::2]]
    for lost in (set[int](), {memory.data_ptr()}):
        with call.replaying() as prepare:
            prepare()
            memory.zero_()
            taken |= lost
        assert [r.tolist() for r in result] == [[1, 2, 3], [0, 2]]
        assert len({r.untyped_storage().data_ptr() for r in result} - taken) == 1
