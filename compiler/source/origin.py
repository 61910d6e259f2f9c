"""Decides whether a file belongs to torch, dynascope, Python, a library or the user."""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import sysconfig
from typing import Literal

from dynascope.compiler.report.overview import PACKAGES, PYTHON

Origin = Literal["torch", "dynascope", "python", "library", "user"]

#: packages and modules that run notebooks, tests, threads and wrappers: their entries are left out of a user's stack
PLUMBING = frozenset({
    "ipykernel", "IPython", "traitlets", "tornado", "asyncio", "jupyter_client", "nbclient", "comm", "ipywidgets", "zmq",
    "pluggy", "_pytest", "xdist", "execnet", "concurrent", "hypothesis", "ipykernel_launcher", "runpy", "threading",
    "contextlib", "weakref", "functools",
})  # fmt: skip
#: libraries that the compiler itself calls: for symbolic sizes, and to partition graphs
_SYMBOLIC = frozenset({"sympy", "mpmath", "networkx"})
#: the compiler's files, by the beginning of their path in torch's folder
_COMPILER = ("_dynamo", "_inductor", "_functorch", "_higher_order_ops", "_compile", "utils/_contextlib")
#: matches the folder of an installed torch on any machine: a log may be from another machine
_TORCH = re.compile(PACKAGES + r"torch[/\\]")
_PACKAGE = re.compile(rf"(?:{PACKAGES}|{PYTHON})(?!(?:site|dist)-packages)(\w+)(?:[/\\]|\.py$)")


@functools.cache
def _folders(*packages: str) -> tuple[str, ...]:
    """The folders of these packages as Python finds them, each with a separator at its end."""
    specs = [importlib.util.find_spec(name) for name in packages]
    return tuple(os.path.join(folder, "") for spec in specs if spec for folder in spec.submodule_search_locations or ())


def torch_folder() -> str:
    """torch's folder with a separator at its end; "" where torch is not installed."""
    return next(iter(_folders("torch")), "")


@functools.cache
def _python_folders() -> tuple[str, ...]:
    folders = {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}
    return tuple(os.path.join(f, "") for f in folders | {os.path.realpath(f) for f in folders})


def _below_torch(file: str) -> str | None:
    """A file's path below torch's folder, on this or another machine, with `/`; None if the file is not torch's."""
    here = torch_folder()
    if here and file.startswith(here):
        return file[len(here) :].replace("\\", "/")
    elsewhere = _TORCH.search(file)
    return None if elsewhere is None else file[elsewhere.end() :].replace("\\", "/")


@functools.lru_cache(4096)
def origin(file: str) -> Origin:
    """Who the file belongs to; cells, and files in no known folder, belong to the user."""
    if _below_torch(file) is not None:
        return "torch"
    # not the root of a checkout, where the user's files may be
    if file.startswith(_folders("dynascope", "dynascope.compiler", "dynascope.widgets")):
        return "dynascope"
    if re.search(PACKAGES, file):
        return "library"
    return "python" if file.startswith(("<frozen ", *_python_folders())) else "user"


def module_of(kind: type) -> str:
    """The name of the module that defines a class; "" where the class has no such name, as some that are written in C."""
    name = getattr(kind, "__module__", "")
    return name if isinstance(name, str) else ""


def in_torch(file: str) -> bool:
    """Whether the file is part of torch, on this machine or on the one that wrote a trace."""
    return origin(file) == "torch"


@functools.lru_cache(4096)
def is_plumbing(file: str) -> bool:
    """Whether a user's stack leaves out the file's entries: those of the compiler, dynascope, `PLUMBING` and frozen modules."""
    if in_torch(file):
        return (_below_torch(file) or "").startswith(_COMPILER)
    return origin(file) == "dynascope" or file.startswith("<frozen ") or not PLUMBING.isdisjoint(_PACKAGE.findall(file))


def is_used_by_compiler(file: str) -> bool:
    """Whether the file belongs to a library that the compiler itself calls: sympy, for example, or the standard library."""
    return origin(file) == "python" or not _SYMBOLIC.isdisjoint(_PACKAGE.findall(file))


def is_weakref_callback(name: str, file: str) -> bool:
    """Whether the function is a callback of Python's weak containers, which can run at any garbage collection."""
    return name in ("remove", "_remove") and not {"weakref", "_weakrefset"}.isdisjoint(_PACKAGE.findall(file))


def is_users(file: str) -> bool:
    """Whether the file belongs to the user and is not plumbing."""
    return origin(file) == "user" and not is_plumbing(file)
