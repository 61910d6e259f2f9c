"""A replayed call leaves nothing changed that is restored, reports what is not, or is not replayed."""

from __future__ import annotations

import contextlib
import contextvars
import datetime
import functools
import io
import itertools
import logging
import operator
import os
import queue
import random
import re
import sqlite3
import sys
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

from dynascope.compiler.driver.explain import explain
from dynascope.compiler.replay import snapshot
from dynascope.compiler.replay.clone import Clones
from dynascope.compiler.replay.object_state import size_of
from dynascope.compiler.replay.replay import RecordedCall

ARRAY = np.zeros(3)


@pytest.fixture(autouse=True)
def fresh_torch() -> None:
    torch._dynamo.reset()


def again(function: Callable[..., Any], *args: Any) -> RecordedCall:
    """Call once, then replay three times."""
    recorded = RecordedCall(function, args, {})
    function(*args)
    assert recorded.refusal is None
    with recorded.replaying() as prepare:
        for _ in range(3):
            args, kwargs = prepare()
            function(*args, **kwargs)
    return recorded


def test_writes_through_data_are_restored() -> None:
    w = torch.ones(2)

    def f(x: torch.Tensor) -> torch.Tensor:
        w.data.add_(1)
        return x * w.sum()

    report = explain(f, backend="eager", profile=3)(torch.ones(2))
    assert report.profile is not None, report.notes
    assert w.tolist() == [2.0, 2.0]


def test_assigned_data_are_restored() -> None:
    linear = torch.nn.Linear(2, 2)
    torch.nn.init.ones_(linear.weight)
    kept: list[int] = []

    def f(x: torch.Tensor) -> torch.Tensor:
        linear.weight.data = linear.weight.data + 1
        return linear(x)

    recorded = RecordedCall(f, (torch.ones(2),), {})
    f(torch.ones(2))
    kept.append(linear.weight.data_ptr())
    with recorded.replaying() as prepare:
        for _ in range(3):
            args, kwargs = prepare()
            f(*args, **kwargs)
    assert linear.weight.tolist() == [[2.0, 2.0], [2.0, 2.0]]
    assert linear.weight.data_ptr() == kept[0]


def test_overlapping_resized_and_read_only_tensors() -> None:
    expanded = torch.zeros(1).expand(4)
    resized = torch.zeros(2)
    sparse = torch.ones(2).to_sparse()
    array = np.arange(3.0)
    array.flags.writeable = False

    def f(x: torch.Tensor) -> None:
        expanded[:1].add_(1)
        sparse.mul_(2)
        resized.resize_(64).fill_(7)
        x.add_(float(array[0]))

    recorded = again(f, torch.ones(2))
    assert expanded.tolist() == [1.0] * 4
    assert sparse.to_dense().tolist() == [2.0, 2.0]
    assert resized.numel() == 64
    assert not recorded.notes


def test_arrays_and_buffers_are_restored() -> None:
    ARRAY[:] = 0
    view, buffer, things = ARRAY[1:], bytearray(b"a"), np.array([[1], None], dtype=object)

    def f(x: torch.Tensor, argument: np.ndarray[Any, Any]) -> None:
        ARRAY[0] += 1
        view[0] += 1
        buffer.extend(b"b")
        things[0].append(2)
        argument += 1

    argument = np.zeros(2)
    again(f, torch.ones(1), argument)
    assert ARRAY.tolist() == [1.0, 1.0, 0.0]
    assert buffer == b"ab"
    assert things[0] == [1, 2]
    assert argument.tolist() == [1.0, 1.0]


def test_arrays_among_the_arguments_are_restored_in_place() -> None:
    base = np.arange(12.0).reshape(3, 4)
    inner = np.array([[1]], dtype=object)

    def f(base: Any, view: Any, inner: Any) -> None:
        base += 1
        view[0, 0] *= 2
        inner[0, 0] += 1

    again(f, base, base[::-1, 1:], inner)
    assert base.tolist() == [[1, 2, 3, 4], [5, 6, 7, 8], [9, 20, 11, 12]]
    assert inner[0, 0] == 2


def test_a_tensor_that_is_not_copied_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "MOST_BYTES", 40)
    first, large = torch.zeros(4), torch.zeros(100)
    (note,) = snapshot.StateSnapshot([first, large, large[1:], large.view(10, 10), torch.zeros(4)]).notes
    assert note.startswith("1 of the tensors and arrays that the call can reach is not copied, because together they are")


def test_attributes_of_classes_and_slots_are_restored() -> None:
    class Counts:
        calls = 0
        seen: ClassVar[list[int]] = []

        def __call__(self, x: torch.Tensor) -> torch.Tensor:
            type(self).calls += 1
            type(self).new = 1  # type: ignore[attr-defined]
            self.seen.append(1)
            return x

    class Slots:
        __slots__ = ("late", "number")

        def __init__(self) -> None:
            self.number = 0

    counts, slots = Counts(), Slots()

    def f(x: torch.Tensor, argument: Slots) -> torch.Tensor:
        slots.number += 1
        argument.number += 1
        return counts(x)

    argument = Slots()
    again(f, torch.ones(1), argument)
    assert (Counts.calls, Counts.seen, slots.number, argument.number) == (1, [1], 1, 1)


def test_random_generators_are_restored() -> None:
    python, torchs, numpys, old = random.Random(1), torch.Generator(), np.random.default_rng(1), np.random.RandomState(1)

    def draw() -> tuple[Any, ...]:
        return python.random(), torch.rand(1, generator=torchs).item(), numpys.random(), old.rand()

    def f(x: torch.Tensor) -> None:
        draw()

    torchs.manual_seed(1)
    again(f, torch.ones(1))
    found = draw()
    python, torchs, numpys, old = random.Random(1), torch.Generator(), np.random.default_rng(1), np.random.RandomState(1)
    torchs.manual_seed(1)
    draw()
    assert found == draw()


@pytest.mark.parametrize("make", [lambda: iter([1, 2, 3]), lambda: itertools.count(), lambda: map(str, [1, 2])])
def test_a_call_that_may_use_up_an_iterator_is_not_repeated(make: Callable[[], Any]) -> None:
    it = make()

    def f(x: torch.Tensor) -> Any:
        return x, next(it)

    report = explain(f, backend="eager", profile=3)(torch.ones(1))
    assert report.profile is None
    assert any("which can be used only once" in note for note in report.notes)
    assert next(it) in (1, 2, "2")


def test_what_a_traceback_leads_to_is_not_followed() -> None:
    def fails() -> None:
        numbers = iter([1, 2])
        raise ValueError(next(numbers))

    caught = []
    try:
        fails()
    except ValueError as error:
        caught.append(error)
    assert RecordedCall(lambda x: caught, (torch.ones(1),), {}).refusal is None


def test_hidden_state_is_reported() -> None:
    hidden = queue.SimpleQueue[int]()

    def f(x: torch.Tensor) -> None:
        hidden.put(1)

    assert ["_queue.SimpleQueue" in note for note in again(f, torch.ones(1)).side_effects] == [True]


def test_a_connection_to_a_database_is_reported_though_it_can_be_called() -> None:
    with contextlib.closing(sqlite3.connect(":memory:")) as database:

        def f(x: torch.Tensor) -> None:
            database.execute("select 1")

        assert ["sqlite3.Connection" in note for note in RecordedCall(f, (torch.ones(1),), {}).side_effects] == [True]


def test_operators_and_ufuncs_have_no_hidden_state() -> None:
    first, log = operator.itemgetter(0), np.log

    def f(x: torch.Tensor) -> Any:
        return first([log(2.0), torch.relu, len])

    assert RecordedCall(f, (torch.ones(1),), {}).side_effects == []


def test_usual_objects_are_nothing_to_tell_of() -> None:
    layer = torch.nn.TransformerEncoderLayer(4, 1, 8)
    optimizer = torch.optim.AdamW(layer.parameters())
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 3)
    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(3, 4)), generator=torch.Generator())
    others = [re.compile("a"), datetime.date(2020, 1, 1), Path("a"), torch.float32, np.dtype(int), np.float32(1), object()]

    def f(x: torch.Tensor) -> None:
        for (batch,) in data:
            layer(batch + x).sum().backward()
        optimizer.step()
        schedule.step()
        others.append(memoryview(b""))

    assert not again(f, torch.ones(4)).notes
    assert schedule.last_epoch == 1


class Hostile:
    def __getattr__(self, name: str) -> Any:
        raise KeyError(name)


class Loud(dict[str, int]):
    def copy(self) -> Any:
        raise KeyError("copy")

    values = items = keys = clear = update = copy


def test_objects_that_raise_when_looked_at() -> None:
    hostile, loud = Hostile(), Loud(a=1)

    def f(x: torch.Tensor) -> torch.Tensor:
        vars(hostile)["n"] = vars(hostile).get("n", 0) + 1
        loud["a"] = loud["a"] + 1
        return x + 1

    again(f, torch.ones(1))
    assert vars(hostile) == {"n": 1}
    assert loud["a"] == 2
    assert RecordedCall(lambda x: x, (hostile,), {}).refusal is None


def test_what_cannot_be_looked_at_does_not_fail_the_call() -> None:
    class Worse:
        @property
        def __class__(self) -> Any:
            raise KeyError("class")

    worse = Worse()
    recorded = RecordedCall(lambda x: (x, worse), (torch.ones(1),), {})
    assert recorded.refusal == "inspecting the objects that it can reach raised KeyError: 'class'"


def test_ordered_dicts_keep_their_order() -> None:
    ordered = OrderedDict(a=1, b=2, c=3)

    def f(x: torch.Tensor) -> None:
        ordered.move_to_end(next(iter(ordered)))

    again(f, torch.ones(1))
    assert list(ordered) == ["b", "c", "a"]
    assert list(reversed(ordered)) == ["a", "c", "b"]


def test_a_compiled_module_is_followed() -> None:
    norm = torch.nn.BatchNorm1d(2)
    compiled = torch.compile(norm, backend="eager")

    def f(x: torch.Tensor) -> Any:
        return compiled(x)

    again(f, torch.randn(3, 2))
    assert norm.num_batches_tracked is not None
    assert norm.num_batches_tracked.item() == 1


def test_only_changed_restores_what_calls_were_seen_to_change_and_the_end_restores_all() -> None:
    first, second, log = torch.zeros(1), torch.zeros(1), [0]

    def f(late: bool) -> None:
        first.add_(1)
        if late:
            second.add_(1)
            log.append(1)

    recorded = RecordedCall(f, (False,), {})
    with recorded.replaying() as prepare:
        prepare()
        f(late=False)
        prepare()  # looks at everything: `first` is what calls change
        f(late=True)
        prepare(only_changed=True)
        assert (first.item(), second.item(), log) == (0.0, 1.0, [0, 1])
    assert (first.item(), second.item(), log) == (0.0, 0.0, [0])


def test_the_copy_of_a_tensor_subclass_has_inner_tensors_of_its_own() -> None:
    from torch.testing._internal.two_tensor import TwoTensor

    a, b = torch.zeros(3), torch.zeros(3)
    again(lambda x: x.add_(1), TwoTensor(a, b))
    assert (a.tolist(), b.tolist()) == ([1.0] * 3, [1.0] * 3)


def test_objects_with_a_destructor_are_not_copied() -> None:
    closed = []

    class Handle:
        def __init__(self) -> None:
            self.uses = 0

        def __del__(self) -> None:
            closed.append(self)

    class Handles(list[int]):
        def __del__(self) -> None:
            closed.append(self)

    handle, handles = Handle(), Handles([1])

    def f(handle: Handle, handles: Handles) -> None:
        handle.uses += 1
        handles.append(2)

    again(f, handle, handles)
    assert not closed
    assert (handle.uses, handles) == (1, [1, 2])


def test_copies_are_inference_tensors_where_their_originals_are() -> None:
    plain = torch.ones(3)
    with torch.inference_mode():
        of_inference = torch.ones(3)
        made = Clones()((plain, of_inference))
    assert [t.is_inference() for t in made] == [False, True]
    assert [t.is_inference() for t in Clones()((plain, of_inference))] == [False, True]
    report = explain(lambda x: x * 2, backend="eager", profile=1)(of_inference)
    assert report.profile is not None
    assert [s.graph for s in report.profile.segments if s.kind == "graph"] == ["g0"]


def test_an_argument_that_was_computed_can_be_changed_in_place_by_each_call() -> None:
    weight = torch.ones(3, requires_grad=True)
    hidden = (weight * 2).expand(2, 3).t()
    copied = Clones()((hidden, hidden))
    assert copied[0] is copied[1]
    assert (copied[0].is_leaf, copied[0].requires_grad, copied[0].stride()) == (False, True, hidden.stride())
    assert torch.equal(copied[0], hidden)
    report = explain(lambda h: h.add_(1) * 2, backend="aot_eager", profile=2)(weight * 2)
    assert report.profile is not None, report.notes


def test_only_the_output_of_the_repeated_calls_is_held_back(capsys: pytest.CaptureFixture[str]) -> None:
    def f(x: int) -> None:
        print("a call")
        sys.stdout.writelines(["of it"])
        sys.stdout.buffer.write(b"bytes")
        print("a call", file=sys.stderr)

    def other() -> None:
        print("another thread", flush=True)
        print("another thread", file=sys.stderr)

    recorded = RecordedCall(f, (1,), {})
    with recorded.replaying() as prepare:
        args, kwargs = prepare()
        f(*args, **kwargs)
        assert not sys.stdout.isatty()
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    told = capsys.readouterr()
    assert (told.out, told.err) == ("another thread\n", "another thread\n")


@functools.lru_cache
def table(size: int) -> torch.Tensor:
    return torch.zeros(size)


class Key:
    """What weak dictionaries hold."""


@torch.library.custom_op("dynascope_tests::counted", mutates_args=())
def counted(x: torch.Tensor) -> torch.Tensor:
    COUNTED.append(1)
    return x.clone()


COUNTED: list[int] = []


def test_what_caches_weak_references_hooks_and_operators_in_python_lead_to_is_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DYNASCOPE_TESTS", "0")
    table.cache_clear()
    COUNTED.clear()
    key, hooked, fired = Key(), torch.ones(1, requires_grad=True), list[int]()
    by_key, one, weak = weakref.WeakKeyDictionary({key: [0]}), weakref.WeakSet([key]), weakref.ref(key)
    kept = [Key()]
    hooked.register_hook(lambda g: fired.append(1))

    def f(x: torch.Tensor) -> None:
        table(3).add_(1)
        os.environ["DYNASCOPE_TESTS"] = f"{int(os.environ['DYNASCOPE_TESTS']) + 1}"
        by_key[key].append(1)
        one.add(kept[0])
        vars(weak())["n"] = vars(weak()).get("n", 0) + 1
        hooked.register_hook(lambda g: None)
        (hooked * 2).sum().backward()
        counted(x)

    recorded = again(f, torch.ones(1))
    assert recorded.side_effects == recorded.notes == []
    assert table(3).tolist() == [1.0] * 3
    assert os.environ["DYNASCOPE_TESTS"] == "1"
    assert (by_key[key], len(one), vars(key)) == ([0, 1], 2, {"n": 1})
    assert (fired, len(hooked._backward_hooks or ()), COUNTED) == ([1], 2, [1])


def test_what_others_see_too_is_reported_before_the_call() -> None:
    local, memory, lines, done = threading.local(), io.StringIO(), queue.Queue[int](), threading.Event()
    local.n = 0

    def f(x: torch.Tensor) -> None:
        local.n += 1
        memory.write("x")
        lines.put(1)
        done.set()

    recorded = again(f, torch.ones(1))
    assert len(recorded.side_effects) == 1
    for words in ("_thread._local", "a file (StringIO)", "a queue.Queue", "a threading.Event"):
        assert words in recorded.side_effects[0]


def test_what_is_seen_to_have_changed_for_good_is_reported_afterwards() -> None:
    read, written = contextvars.ContextVar("read", default=0), contextvars.ContextVar("written", default=0)
    cache = torch.zeros(2, 2)
    weight = torch.ones(2, requires_grad=True)

    def f(x: torch.Tensor) -> None:
        written.set(written.get() + read.get() + 1)
        cache[0] = weight * 2

    recorded = again(f, torch.ones(1))
    assert recorded.side_effects == []
    assert sorted(recorded.notes) == [
        "the autograd history of a tensor of shape (2, 2), which the call changes in place, is not restored",
        "the context variable written keeps what repeated calls have set",
    ]
    assert cache.tolist() == [[2, 2], [0, 0]]


def test_a_history_that_only_the_replays_make_is_taken_away() -> None:
    cache, weight, turns = torch.zeros(2), torch.ones(2, requires_grad=True), [0]

    def f(x: torch.Tensor) -> None:
        turns[0] += 1
        if turns[0] > 1:
            cache.copy_(weight * 2)

    recorded = again(f, torch.ones(1))
    assert recorded.notes == []
    assert (cache.is_leaf, cache.requires_grad, cache.tolist(), cache._version) == (True, False, [0, 0], 0)


def test_files_loggers_and_queues_are_reported_before_the_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, silent, lines = logging.getLogger("dynascope.tests"), logging.getLogger("dynascope.silent"), queue.Queue[int]()
    monkeypatch.setattr(logging.getLogger(), "handlers", [logging.NullHandler()])
    assert RecordedCall(lambda x: silent.info("x"), (torch.ones(1),), {}).side_effects == []
    monkeypatch.setattr(logging.getLogger(), "handlers", [logging.StreamHandler()])
    with open(tmp_path / "out.txt", "w") as file:
        for function, words in (
            (lambda x: file.write("x"), "a file ("),
            (lambda x: log.info("x"), "a logger (dynascope.tests)"),
            (lambda x: logging.info("x"), "a logger (root)"),
            (lambda x: lines.put(x), "a queue.Queue"),
        ):
            assert [words in sentence for sentence in RecordedCall(function, (torch.ones(1),), {}).side_effects] == [True]


def test_operators_that_are_reached_through_torch_ops_are_reported() -> None:
    library = torch.library.Library("dynascope_foreign", "DEF")
    library.define("same(Tensor x) -> Tensor")
    library.impl("same", lambda x: x.clone(), "CompositeExplicitAutograd")

    def f(x: torch.Tensor) -> Any:
        return torch.ops.dynascope_foreign.same(x)

    f(torch.ones(1))
    assert ["torch.ops.dynascope_foreign" in note for note in RecordedCall(f, (torch.ones(1),), {}).side_effects] == [True]
    library._destroy()


def test_what_a_cache_keeps_is_reported() -> None:
    @functools.lru_cache(1)
    def doubled(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    recorded = again(lambda x: doubled(x), torch.ones(1))
    assert recorded.notes == ["the cache of doubled keeps what repeated calls have put into it"]


def test_a_backward_of_what_the_cell_has_left_still_works() -> None:
    weight, state, losses = torch.ones(2, requires_grad=True), torch.zeros(2), list[torch.Tensor]()

    def f(x: torch.Tensor) -> None:
        state.copy_(x)
        losses[:] = [(state * weight).sum()]

    again(f, torch.ones(2))
    assert state._version == 1
    losses[0].backward()  # autograd has saved `state` in version 1
    assert weight.grad is not None
    assert weight.grad.tolist() == [1.0, 1.0]


def test_the_gradient_of_a_leaf_that_requires_one_only_during_the_call_is_restored() -> None:
    """As the discriminator of a GAN is frozen between its steps."""
    weight, grad = torch.ones(2), torch.full((2,), 5.0)
    weight.grad = grad

    def f(x: torch.Tensor) -> None:
        weight.requires_grad_(True)
        (x * weight).sum().backward()
        weight.requires_grad_(False)

    again(f, torch.ones(2))
    assert weight.grad is grad
    assert grad.tolist() == [6, 6]


def test_a_negative_zero_is_restored() -> None:
    array = np.zeros(2)
    again(lambda x: x + float(np.multiply(array, -1, out=array)[0]), torch.ones(2))
    assert np.signbit(array).all()


def test_gradients_of_leaves_behind_what_was_computed_before() -> None:
    leaf = torch.ones(2, requires_grad=True)
    middle = leaf * 2
    computed = middle * middle
    middle.retain_grad()

    def f(x: torch.Tensor) -> None:
        assert middle.requires_grad
        (computed * x).sum().backward(retain_graph=True)

    again(f, torch.ones(2))
    assert leaf.grad is not None
    assert leaf.grad.tolist() == [8.0, 8.0]
    assert middle.grad is not None
    assert middle.grad.tolist() == [4.0, 4.0]


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
        again(f, torch.ones(1))
        assert (Path.cwd(), len(sys.path), torch.get_num_threads()) == (tmp_path / "a", known + 1, threads + 1)
        assert not torch.is_grad_enabled()
    finally:
        torch.set_num_threads(threads)
        torch.set_grad_enabled(True)


def test_a_lock_that_is_given_back_is_nothing_to_tell_of_and_one_that_is_kept_ends_it() -> None:
    locks: list[Any] = [threading.Lock(), threading.RLock(), threading.Semaphore(2)]

    def harmless(x: torch.Tensor) -> None:
        for lock in locks:
            with lock:
                pass

    recorded = again(harmless, torch.ones(1))
    assert recorded.side_effects == recorded.notes == []
    for lock in locks:
        recorded = RecordedCall(lambda x, lock=lock: lock.acquire(), (torch.ones(1),), {})
        assert recorded.refusal is None
        recorded.function(None)
        assert "could wait for it forever" in (recorded.refusal or "")
        lock.release()
        assert recorded.refusal is None


def test_a_file_is_reported_and_one_that_the_call_closes_ends_it(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("abcdef")
    with open(tmp_path / "in.txt") as text:

        def f(x: torch.Tensor) -> None:
            text.read(1)

        assert ["a file (" in sentence for sentence in again(f, torch.ones(1)).side_effects] == [True]
        recorded = RecordedCall(lambda x: text.close(), (torch.ones(1),), {})
        assert recorded.refusal is None
        recorded.function(None)
        assert "that is closed now" in (recorded.refusal or "")
        assert RecordedCall(lambda x: x, (text,), {}).refusal == "one of its arguments is a file"


class Labelled(np.ndarray[Any, Any]):
    """An array with an attribute."""

    counts: list[int]


def test_what_an_arrays_attributes_hold_is_restored() -> None:
    labelled = np.zeros(3).view(Labelled)
    labelled.counts = []

    def f(x: torch.Tensor) -> torch.Tensor:
        labelled.counts.append(1)
        return x + 1

    again(f, torch.ones(1))
    assert labelled.counts == [1]


def test_arrays_in_files_are_restored_and_those_only_read_are_not_copied(tmp_path: Path) -> None:
    written = np.memmap(tmp_path / "data.bin", np.float32, "w+", shape=(4,))
    only_read = np.memmap(tmp_path / "data.bin", np.float32, "r")

    def f(x: torch.Tensor, data: Any) -> torch.Tensor:
        written[0] += 1
        return x + float(data[0])

    recorded = again(f, torch.ones(1), only_read[1:])
    assert recorded.side_effects == recorded.notes == []
    assert written[0] == 1
    assert size_of(only_read) == 0 < size_of(written)


def test_a_copy_of_a_tensor_has_its_gradient() -> None:
    weight = torch.ones(3, requires_grad=True)
    (weight * 2).sum().backward()
    (copied, again) = Clones()((weight, weight.grad))
    assert torch.equal(copied.grad, weight.grad)
    assert copied.grad is again
    assert again is not weight.grad

    def step(w: torch.Tensor) -> torch.Tensor:
        return w.detach() - 0.1 * w.grad if w.grad is not None else w * 1

    report = explain(step, backend="eager", profile=1, check=True)(weight)
    assert report.check is not None
    assert report.check.agrees
    assert not any("raised" in note or "guard" in note for note in report.notes)


class Pair(tuple):
    def __new__(cls, a: Any, b: Any) -> Pair:
        return super().__new__(cls, (a, b))


def test_copies_of_tuples_are_of_their_class_and_have_their_attributes() -> None:
    pair = Pair(torch.ones(2), 1)
    pair.scale = 3  # type: ignore[attr-defined]
    copied = Clones()(pair)
    assert (type(copied), copied.scale, copied[1]) == (Pair, 3, 1)
    assert copied[0] is not pair[0]
    largest = torch.ones(2, 2).max(0)
    copied = Clones()(largest)
    assert type(copied) is type(largest)
    assert copied.values is not largest.values
