"""Marks calls and captured graphs in the profiler."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

from dynascope.compiler.capture.torch_private.availability import guarded
from dynascope.compiler.patching import patched


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
