"""What torch.compile leaves on the user's functions and modules, and in its own tables: private names of torch, guarded.

Reads them, and sets those that `-f`, `--keep` and `dynascope.compile` need.  What is not there in the installed torch is
named in `missing`.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from types import CodeType, FunctionType
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
    """Whether this is what `torch.compile` made of a function (`torch.compiler.disable` leaves the same mark)."""
    return hasattr(function, ORIGINAL) and not is_disabled(function)


def is_compiled_in_place(module: Any) -> bool:
    """Whether `nn.Module.compile` has set this module's compiled call."""
    return vars(module).get(_COMPILED_CALL) is not None


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


#: torch's tables know no two threads that take the same entries away
_FORGETTING = threading.Lock()


def forget_resumes(codes: Iterable[CodeType]) -> None:
    """Let go of the resume functions made for these code objects, which nobody calls any more.

    Torch's tables keep a code object and its resume functions alive through one another, for good, and with them the
    compiled graphs and the names (`__compiled_fn_...`, `__resume_at_...`) in the namespace of the user's function.  Without
    the entries these code objects die, and Dynamo's own clean-up takes the names away.
    """
    resume_execution = sys.modules.get("torch._dynamo.resume_execution")
    if resume_execution is None:
        return
    with _FORGETTING:
        try:
            _forget(resume_execution.ContinueExecutionCache, codes)
        except (KeyError, AttributeError, TypeError) as error:
            missing["forgetting resume functions"] = f"{type(error).__name__}: {error}"


def _forget(cache: Any, codes: Iterable[CodeType]) -> None:
    todo, everything = list(codes), []
    while todo:
        code = todo.pop()
        everything.append(code)
        made = cache.cache.get(code)
        if made is not None:
            cache.cache._remove_id(id(code))
            for resume in made.values():
                todo.append(resume)
                cache.generated_code_metadata._remove_id(id(resume))
    done = set(map(id, everything))
    originals = sys.modules["torch._dynamo.convert_frame"].orig_code_map  # compiled code -> what it was made from
    names = sys.modules["torch._dynamo.utils"].CleanupManager.instance  # compiled code -> names to take away
    for compiled in [key for key, original in originals.values.items() if id(original) in done]:
        originals._remove_id(compiled)
        with contextlib.suppress(KeyError):  # the user has taken the names away
            names._remove_id(compiled)
    for code in everything:
        sys.modules["torch._dynamo.eval_frame"].reset_code(code)  # its compiled code, and what that keeps alive
