"""Reads and cleans up what torch keeps in the process: known code objects, compiled code, resume functions, sizes, a patch of
FX, and tables of strings and process groups.
"""

from __future__ import annotations

import contextlib
import math
import re
import sys
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping
from types import CodeType, FunctionType
from typing import Any, NamedTuple, cast

from dynascope.compiler.capture.torch_private import if_present, loaded
from dynascope.compiler.source.origin import in_torch


def known_codes() -> list[CodeType]:
    """The code objects for which Dynamo may hold compiled code or skip marks, but those of torch that it never traces.

    Of torch's, these are for example an optimizer's `step`, which compiled code calls after a graph break, and the wrapper that
    all functions decorated with `error_on_graph_break` share.
    """
    with if_present("codes Dynamo knows"):
        seen, ignores = loaded("torch._dynamo.convert_frame").input_codes.seen, loaded("torch._dynamo.trace_rules").check
        # with nested graph breaks, functions that were only inlined have resume functions, too, but are not in `input_codes`
        resumed = loaded("torch._dynamo.resume_execution").ContinueExecutionCache.cache.refs.values()
        codes = [reference() for reference in [*seen, *resumed]]
        return [c for c in codes if c is not None and not (in_torch(c.co_filename) and ignores(c) and not compiled_versions(c))]
    return []


def is_known(code: CodeType) -> bool:
    """Whether Dynamo has seen this code object before."""
    convert_frame = sys.modules.get("torch._dynamo.convert_frame")
    return convert_frame is not None and code in convert_frame.input_codes


class Version(NamedTuple):
    """A compiled version of a code object, with the ids of what it calls."""

    compile_id: str
    #: the functions of its graphs, without Dynamo's wrappers around them
    graphs: list[int]
    #: the code objects of its resume functions, among others
    resumes: list[int]


def compiled_versions(code: CodeType) -> list[Version]:
    """Every version that Dynamo holds for a code object; the one that ran last comes first."""
    with if_present("compiled versions"):
        return [_version(str(entry.compile_id), entry.code) for entry in _entries(code)]
    return []


def _entries(code: CodeType) -> Any:
    """What Dynamo holds for a code object; raises an exception if this torch does not say it."""
    return loaded("torch._dynamo.eval_frame")._debug_get_cache_entry_list(code)


def recompile_limit() -> float:
    """How many versions of a code object Dynamo holds at most; infinity if that is unknown."""
    with if_present("the recompile limit"):
        return int(loaded("torch._dynamo.config").recompile_limit)
    return math.inf


def held_graphs() -> set[int] | None:
    """The ids of all graphs that Dynamo holds, as functions that are not traced; None if one is gone or cannot be read."""
    with if_present("compiled versions"):
        held = [entry.code for code in known_codes() for entry in _entries(code)]
        return None if None in held else {graph for compiled in held for graph in _version("", compiled).graphs}
    return None


def graph_scopes() -> list[dict[str, Any]]:
    """The namespaces in which compiled code looks up its graphs, each once."""
    with if_present("compiled versions"):
        names = loaded("torch._dynamo.utils").CleanupManager.instance.values.values()
        return list({id(n.scope): n.scope for of_code in list(names) for n in of_code}.values())
    return []


def _version(compile_id: str, compiled: CodeType | None) -> Version:
    if compiled is None:  # what its guards checked is gone
        return Version(compile_id, [], [])
    names = loaded("torch._dynamo.utils").CleanupManager.instance.get(compiled, ())
    wrappers = [n.scope.get(n.name) for n in names if n.name.startswith("__compiled_fn_")]
    # the wrapper around a module is a module
    graphs = [id(getattr(getattr(w, "forward", w), "_torchdynamo_orig_callable", w)) for w in wrappers]
    resumes = [f for n in names if n.name.startswith("__resume_at_") and isinstance(f := n.scope.get(n.name), FunctionType)]
    # the code of a resume function with free variables is in the closure of its factory, or a constant
    in_factories = [cell.cell_contents for f in resumes for cell in f.__closure__ or ()]
    return Version(compile_id, graphs, [id(o) for o in (*(f.__code__ for f in resumes), *in_factories, *compiled.co_consts)])


def compile_counts() -> Mapping[Any, int]:
    """How many times Dynamo has started to compile each frame since its last reset, by the frame's id; it changes."""
    with if_present("counting compiles"):
        return cast(Mapping[Any, int], loaded("torch._dynamo.convert_frame").FRAME_COMPILE_COUNTER)
    return {}


def compiles() -> int:
    """How many times Dynamo has started to compile a frame since its last reset, in all threads."""
    return sum(compile_counts().values())


def latest_compiles(count: int) -> list[tuple[str, str, str]]:
    """(compile id, the compiler's name of the function, why earlier code did not do: "" if unknown) of the latest compiles.

    Those to which the compiler has given no name are left out.
    """
    with if_present("torch's metrics of compiles"):
        metrics = list(loaded("torch._dynamo.utils").get_compilation_metrics())
        latest = [m for m in metrics[max(len(metrics) - count, 0) :] if m.co_name]
        return [(str(m.compile_id), str(m.co_name), str(getattr(m, "recompile_reason", None) or "")) for m in latest]
    return []


def generation() -> object:
    """An object that stays the same until the next `torch._dynamo.reset()`, when compile ids restart.

    It is Dynamo's table of sizes; None until Dynamo has made the table.
    """
    return getattr(sys.modules.get("torch._dynamo.pgo"), "_CODE_STATE", None)


def interned_strings() -> dict[int, str]:
    """The structured trace's strings by number; torch logs each string only once per process, perhaps before the recording."""
    table = getattr(sys.modules.get("torch._logging.structured"), "INTERN_TABLE", None) or {}
    return {number: text for text, number in table.items()}


@contextlib.contextmanager
def only_known_codes() -> Iterator[None]:
    """After the block, make Dynamo forget the compiled code of functions that it did not know before it, and all sizes."""
    before = {id(code): code for code in known_codes()}
    try:
        with forgotten_shapes():
            yield
    finally:
        new = [code for code in known_codes() if id(code) not in before]
        forget_resumes(new)
        with if_present("codes Dynamo knows"):
            known, ids = loaded("torch._dynamo.convert_frame").input_codes, {id(code) for code in new}
            known.seen[:] = [reference for reference in known.seen if id(reference()) not in ids]
            known.seen_ids -= ids


@contextlib.contextmanager
def fx_restored() -> Iterator[None]:
    """After the block, undo Dynamo's patch of FX if a compile that was interrupted in the block has left it in place.

    While Dynamo compiles a frame, it patches FX so that frames of new GraphModules are skipped.  An interrupt in the few lines
    before or after the compile leaves the patch in place, and no GraphModule that is made later is compiled as a frame.
    """
    before = _fx_is_patched()
    try:
        yield
    finally:
        if not before and _fx_is_patched():
            with if_present("FX after an interrupt"):
                convert_frame = loaded("torch._dynamo.convert_frame")
                if convert_frame.compile_lock.acquire(blocking=False):  # otherwise another thread compiles a frame now
                    try:
                        loaded("torch.fx.graph_module")._forward_from_src = convert_frame.original_forward_from_src
                    finally:
                        convert_frame.compile_lock.release()


def _fx_is_patched() -> bool:
    with if_present("FX after an interrupt"):
        skips = loaded("torch._dynamo.convert_frame").fx_forward_from_src_skip_result
        return bool(loaded("torch.fx.graph_module")._forward_from_src is skips)
    return False


# -- sizes ---------------------------------------------------------------------------------------------


@contextlib.contextmanager
def forgotten_shapes(gone: Collection[CodeType] | None = None) -> Iterator[None]:
    """Make Dynamo forget which sizes are dynamic, for the duration; then restore them, unless it was reset.

    Dynamo keys the sizes by file, line and name of the code: without this, a cell that runs again with other sizes would be
    traced with dynamic sizes because of its earlier runs.  Sizes of torch's code are forgotten, too: a call of an `nn.Linear`
    is one of a wrapper of torch.  Afterwards Dynamo knows the sizes of the block, too, except for code that is `gone`; None:
    all code is.
    """
    saved, table = _take_sizes(), generation()
    try:
        yield
    finally:
        # `_take_sizes` removes the sizes that the block recorded; after a reset in the block, the saved ones stay dropped, too
        if saved is not None and (new := _take_sizes()) is not None and generation() is table:
            places = {(code.co_filename, code.co_firstlineno, code.co_name) for code in gone or ()}
            stays = [k for k in new if gone is not None and (k.filename, k.firstlineno, k.name) not in places]
            saved |= {key: new[key] for key in stays}
            loaded("torch._dynamo.pgo").get_code_state().update(saved)


def _take_sizes() -> dict[Any, Any] | None:
    """Remove the sizes from Dynamo's table, and return them; None if the table cannot be read."""
    with if_present("automatic dynamic shapes"):
        state = loaded("torch._dynamo.pgo").get_code_state()
        return None if state is None else {key: state.pop(key) for key in list(state)}
    return None


# -- resume functions ----------------------------------------------------------------------------------

#: two threads must not remove the same entries of torch's tables
_FORGETTING = threading.Lock()


def forget_resumes(codes: Iterable[CodeType]) -> list[CodeType]:
    """Remove these code objects, which will not be called again, and their resume functions from torch's tables; returns all.

    In the tables, a code object and its resume functions keep each other alive forever, and with them the compiled graphs and
    the names (`__compiled_fn_...`, `__resume_at_...`) in the namespace of the user's function.  Removing the entries frees the
    code objects and their compiled code, and removes the names.
    """
    with _FORGETTING, if_present("forgetting resume functions"):
        cache = loaded("torch._dynamo.resume_execution").ContinueExecutionCache
        everything = _with_resumes(codes)
        for code in everything:
            cache.cache._remove_id(id(code))
            cache.generated_code_metadata._remove_id(id(code))
        done = set(map(id, everything))
        originals = loaded("torch._dynamo.convert_frame").orig_code_map  # compiled code -> original code
        names = loaded("torch._dynamo.utils").CleanupManager.instance  # compiled code -> names to remove
        for compiled in [key for key, original in originals.values.items() if id(original) in done]:
            originals._remove_id(compiled)
            with contextlib.suppress(KeyError):  # there are no names, or the user has removed them
                names._remove_id(compiled)
        for code in everything:
            loaded("torch._dynamo.eval_frame").reset_code(code)  # frees its compiled code
        return everything
    return []


def _with_resumes(codes: Iterable[CodeType]) -> list[CodeType]:
    """These code objects, then their resume functions."""
    everything = list(codes)
    with if_present("resume functions"):
        made = loaded("torch._dynamo.resume_execution").ContinueExecutionCache.cache
        known = set(map(id, everything))
        for code in everything:  # its resume functions come later in the list; in a loop, one can lead to itself
            new = [resume for resume in (made.get(code) or {}).values() if id(resume) not in known]
            known |= set(map(id, new))
            everything += new
    return everything


def codes_in_guards(codes: Iterable[CodeType]) -> set[int]:
    """The ids of the code objects that other functions must have for the code compiled for these to be used."""
    with if_present("guards on code objects"):
        parts = [part for c in _with_resumes(codes) for entry in _entries(c) for part in entry.guard_manager.code_parts]
        return set(map(int, re.findall(r"\.__code__, (\d+)\)", "\n".join(parts))))
    return set()


def process_groups() -> dict[str, tuple[str | None, list[int] | None]]:
    """torch's name of each process group -> (its description, its ranks in the job); empty if torch lists no groups.

    A description or ranks that are unknown are None.
    """
    world: Any = getattr(sys.modules.get("torch.distributed.distributed_c10d"), "_world", None)
    try:
        named, ranks = dict(world.pg_names), world.pg_group_ranks
        return {str(name): (_description(group), sorted(ranks.get(group) or {}) or None) for group, name in named.items()}
    except (AttributeError, RuntimeError, TypeError):
        return {}


def _description(group: Any) -> str | None:
    """The description of a process group: the program's name for it ("mesh_tp"), or "default_pg"; None if it has none."""
    text = getattr(group, "group_desc", None)
    return None if text in (None, "", "undefined") else str(text)
