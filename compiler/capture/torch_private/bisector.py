"""Drives torch's own `CompilerBisector`, which finds the part of the compiler that makes a test fail.

Its state is in a folder of our own, which is removed: a search that the user has begun goes on undisturbed.
"""

from __future__ import annotations

import importlib
import operator
import os
import tempfile
import traceback
from collections.abc import Callable
from typing import Any

from dynascope.compiler.capture.torch_private import if_present
from dynascope.compiler.patching import patched

#: checks what fake tensors say about each operation: it computes nothing else
_LEFT_OUT = ("aot_eager_decomp_partition_crossref",)


def bisect(is_right: Callable[[], bool], backend: str) -> tuple[str, str, int | None, str] | None:
    """The backend, its part, the number of that part's application, from 0, and torch's text on it, that make a test fail.

    `is_right`: compiles with `torch.compile`, which the search gives another backend and other settings each time, and returns
    whether the result is right.  `backend`: the last backend to try.  None if the test never fails or torch lacks the bisector.
    """
    with if_present("the compiler's bisector"):
        if any(name.startswith("TORCH_BISECT_") for name in os.environ):
            return None
        module = importlib.import_module("torch._inductor.compiler_bisector")
        names, bisector = [name for name in module.BACKENDS if name not in _LEFT_OUT], module.CompilerBisector
        if backend not in names:
            return None
        backends = {name: module.BACKENDS[name] for name in names[: names.index(backend) + 1]}
        with (
            tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,  # the bisector removes it, too
            patched(module, {"BACKENDS": backends}),
            patched(bisector, {"bisection_enabled": bisector.bisection_enabled, "in_process_cache": folder}),
        ):
            try:
                found = bisector.do_bisect(is_right)
            except BaseException as error:
                traceback.clear_frames(error.__traceback__)  # its clean-up is the end of a local object; it must not come later
                raise
        if found is not None:
            return found.backend, found.subsystem or "", found.bisect_number, found.debug_info or ""
    return None


def inductor_setting(name: str) -> Any:
    """The value of a setting in torch._inductor.config, such as "cpp.threads"; None if this torch lacks it."""
    try:
        return operator.attrgetter(name)(importlib.import_module("torch._inductor.config"))
    except AttributeError:
        return None


def inductor_config(**values: Any) -> Any:
    """A context manager that sets these values in torch._inductor.config, and restores them exactly."""
    return importlib.import_module("torch._inductor.config").patch(**values)
