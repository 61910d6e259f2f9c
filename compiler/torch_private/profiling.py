"""Marks calls and captured graphs in the profiler, times guards, and finds the switches that leave out guards."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any

from dynascope.compiler.patching import patched
from dynascope.compiler.torch_private import caches
from dynascope.compiler.torch_private.availability import guarded


def profiler_mark(name: str) -> contextlib.AbstractContextManager[Any]:
    """A context manager that names a block in the profiler, if possible without the overhead of `record_function`."""
    import torch

    fast = getattr(getattr(torch._C, "_profiler", None), "_RecordFunctionFast", None)
    return fast(name) if fast is not None else torch.profiler.record_function(name)


@contextlib.contextmanager
def marked_graphs(namespaces: Iterable[dict[str, Any]], mark: str) -> Iterator[bool]:
    """Make each captured graph appear in the profiler as `mark` and its name, for any backend, for the duration.

    Compiled code looks up its graphs as globals `__compiled_fn_...`, so those in these namespaces are replaced by wrappers.
    Yields whether there are any.
    """
    import torch
    import torch._dynamo.eval_frame as eval_frame

    def marked(name: str, graph: Any) -> Any:
        def run(*args: Any, **kwargs: Any) -> Any:
            with profiler_mark(f"{mark} {name}"):
                return graph(*args, **kwargs)

        skip = getattr(eval_frame, "skip_code", None)
        if skip is None:
            return torch.compiler.disable(run)
        skip(run.__code__)  # otherwise Dynamo would compile `run`, because compiled code calls it
        return run

    with contextlib.ExitStack() as patches:
        found = False
        for namespace in {id(n): n for n in namespaces}.values():
            graphs = {n: graph for n, graph in namespace.items() if isinstance(n, str) and n.startswith("__compiled_fn_")}
            patches.enter_context(patched(namespace, {name: marked(name, graph) for name, graph in graphs.items()}))
            found = found or bool(graphs)
        yield found


def profiler_is_on() -> bool:
    """Whether a profiler is already running, in any thread; starting a second one would stop it."""
    with guarded("the profiler's state"):
        from torch.autograd import _profiler_enabled, profiler  # type: ignore[attr-defined]

        return bool(_profiler_enabled() or profiler._is_profiler_enabled)
    return False


# -- guards ---------------------------------------------------------------------------------------------


@dataclass
class Evaluation:
    """The guards of a compiled frame that is being entered, which is when torch can evaluate them."""

    compile_id: str
    #: (torch's name of a guarded object, torch's name of the object that holds it, number of guards), outermost first
    guards: list[tuple[str, str | None, int]]
    #: returns the seconds of one evaluation of the guards on these objects (None: of all guards), or None if they cannot be
    #: evaluated; an object counts only if the objects that hold it are given, too
    seconds: Callable[[set[str] | None], float | None]


@contextlib.contextmanager
def evaluations(use: Callable[[Evaluation], None]) -> Iterator[None]:
    """During the block, call `use` once for each version compiled before the block, when this thread first enters the version.

    The guards can be evaluated only while a frame is entered: they check its locals and torch's state (grad mode, autocast).
    Python's profile function observes the entry; if the program has set one itself, nothing is called.
    """
    import torch._dynamo.eval_frame as eval_frame

    private: Any = eval_frame
    entries: dict[int, Any] = {}
    with guarded("timing guards"):
        set_callback, skip = private.set_eval_frame, private.skip_code
        found = [e for code in caches.known_codes() for e in private._debug_get_cache_entry_list(code)]
        entries = {id(entry.code): entry for entry in found if hasattr(entry.guard_manager, "clone_with_chosen_sources")}

    def entered(frame: FrameType, event: str, arg: Any) -> None:
        entry = entries.pop(id(frame.f_code), None) if event == "call" else None
        if entry is not None:
            callback = set_callback(None)  # otherwise Dynamo would compile the functions called here
            try:
                with guarded("timing guards"):
                    _evaluate(entry, dict(frame.f_locals), use)
            finally:
                set_callback(callback)

    if sys.getprofile() is not None or not entries:
        yield
        return
    skip(entered.__code__)
    sys.setprofile(entered)
    try:
        yield
    finally:
        sys.setprofile(None)


def _evaluate(entry: Any, values: dict[str, Any], use: Callable[[Evaluation], None]) -> None:
    wrapper = entry.guard_manager
    root = wrapper.root
    if not root.check(values):
        return

    def seconds(sources: set[str] | None) -> float | None:
        # without the root's source, the copy would have no root, and evaluating it would crash
        part = root if sources is None else wrapper.clone_with_chosen_sources({*sources, root.get_source()})
        return _least(part.check, values) if part is not None and part.check(values) else None

    try:
        use(Evaluation(str(entry.compile_id), list(_managers(root, None)), seconds))
    finally:
        # guards on aliasing keep the objects that they have seen until all guards are evaluated again
        root.check(values)


def _least(check: Callable[[Any], bool], values: dict[str, Any]) -> float:
    """Seconds of one evaluation, from the fastest of a few rounds."""
    rounds = []
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(20):
            check(values)
        rounds.append((time.perf_counter() - start) / 20)
    return min(rounds)


def _managers(manager: Any, parent: str | None) -> Iterator[tuple[str, str | None, int]]:
    source = manager.get_source()
    yield source, parent, len(manager.get_leaf_guards())
    if hasattr(manager, "get_key_value_managers"):
        children = [m for pair in manager.get_key_value_managers().values() for m in pair if m is not None]
    else:
        children = manager.get_child_managers()
    for child in children:
        yield from _managers(child, source)


#: switches that are functions in torch.compiler, for the option `guard_filter_fn`
_FILTERS: tuple[str, ...] = (
    "skip_guard_on_inbuilt_nn_modules_unsafe", "skip_guard_on_all_nn_modules_unsafe", "skip_guard_on_globals_unsafe",
)  # fmt: skip
#: switches that are settings of torch._dynamo.config
_SETTINGS: tuple[str, ...] = ("use_recursive_dict_tags_for_guards", "install_free_tensors")


def guard_switches() -> list[str]:
    """The documented switches that leave out guards, except those that this torch lacks and settings that are already on."""
    import inspect

    import torch
    import torch._dynamo.config as config

    names: list[str] = [n for n in _FILTERS if hasattr(torch.compiler, n)]
    names += [n for n in _SETTINGS if getattr(config, n, None) is False]
    if "skip_guard_eval_unsafe" in inspect.signature(torch.compiler.set_stance).parameters:
        names.append("skip_guard_eval_unsafe")
    return names


def guard_switch(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """What turns a switch on: (options of torch.compile, values of torch._dynamo.config).

    Both are empty for `skip_guard_eval_unsafe`, which is an argument of `torch.compiler.set_stance`.
    """
    import torch

    options = {"guard_filter_fn": getattr(torch.compiler, name)} if name in _FILTERS else {}
    return options, {name: True} if name in _SETTINGS else {}
