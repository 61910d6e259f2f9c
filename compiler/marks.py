"""What torch.compile leaves on the user's functions and modules: private names of torch, guarded.

Reads them, and sets those that `-f`, `--keep` and `dynascope.compile` need.  What is not there in the installed torch is
named in `missing`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any

#: what does not fit the installed torch, by name; shown in `report.hooks`
missing: dict[str, str] = {}

#: where a compiled function keeps what it was made from
ORIGINAL = "_torchdynamo_orig_callable"
_COMPILED_CALL = "_compiled_call_impl"


def original_in(attributes: Mapping[str, Any]) -> Any:
    """What the object with these attributes was compiled from; None where it was not."""
    return attributes.get(ORIGINAL)


def is_compiled(function: Any) -> bool:
    """Whether this is what `torch.compile` made of a function."""
    return hasattr(function, ORIGINAL)


def is_disabled(function: Any) -> bool:
    """Whether `torch.compiler.disable` keeps this function out of the compiler."""
    return bool(getattr(function, "_torchdynamo_disable", False))


def undecorated(function: Any) -> Any:
    """The function under the `error_on_graph_break` decorator; nobody else's wrapper is looked through."""
    while type(function) is FunctionType and function.__globals__.get("__name__") == "torch._dynamo.external_utils":
        names = function.__code__.co_freevars
        if "func" not in names or function.__closure__ is None:
            break
        function = function.__closure__[names.index("func")].cell_contents
    return function


def compiled_call(module: Any) -> Callable[[Any], None]:
    """What sets a module's compiled call, as `nn.Module.compile` does; given None, the one it has now comes back."""
    own: dict[str, Any] = module.__dict__
    had, before = _COMPILED_CALL in own, own.get(_COMPILED_CALL)
    if not hasattr(type(module), _COMPILED_CALL):
        missing["compiled modules"] = f"no {_COMPILED_CALL}: a module named by -f runs as it is"

    def put(call: Any) -> None:
        if call is not None or had:
            own[_COMPILED_CALL] = before if call is None else call
        else:
            own.pop(_COMPILED_CALL, None)

    return put


def set_flag_of(compiled: Any, flag: bool) -> bool:
    """Set error_on_graph_break on a compiled module itself; False where it has no place for it."""
    context = getattr(compiled, "dynamo_ctx", None)
    if context is None or not hasattr(context, "error_on_graph_break"):
        return False
    context.error_on_graph_break = flag
    return True


def mark_of(module: Any) -> Callable[[], None]:
    """What takes away the mark that torch.compile leaves on a module, if it was not there before."""
    name = "_is_torch_compile"
    own = getattr(module, "__dict__", {})
    if name in own:
        return lambda: None
    return lambda: own.pop(name, None)
