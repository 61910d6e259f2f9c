"""Finds functions that ran from code compiled before the recording.

Dynamo does not report cache hits, so a recording notes which compiled functions were called.  At its end, `cache_hits` looks up
the code that Dynamo holds for those that the recording did not see compiled.  This code shows how many graphs and which resume
functions there are, but not the reasons for graph breaks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType
from typing import Any

from dynascope.compiler.builder.events.schema import CacheHit
from dynascope.compiler.capture.torch_private import caches
from dynascope.compiler.capture.torch_private.hook_installer import code_info


def cache_hits(entered: dict[int, tuple[CodeType, dict[str, Any]]], compiled: Iterable[int | None]) -> Iterator[CacheHit]:
    """Events for the code objects that ran without being compiled in this recording, and for their resume functions.

    There is one event for each compiled version, or a single one if Dynamo knows the code but holds no compiled version of it.

    `entered`: uid -> (code, globals) of the compiled functions that were called; `compiled`: uids of the code that was compiled
    in this recording.
    """
    seen = set(compiled)
    for uid, (code, namespace) in entered.items():
        if uid not in seen:
            yield from _tree(code, namespace, seen, None)


def _tree(code: CodeType, namespace: dict[str, Any], seen: set[int | None], continues: int | None) -> Iterator[CacheHit]:
    if id(code) in seen:
        return
    seen.add(id(code))
    versions = caches.compiled_versions(code)
    if not versions:
        if caches.is_known(code):
            yield CacheHit(code_info(code), continues)
        return
    for compile_id, version in versions:
        graphs = sum(name.startswith("__compiled_fn_") for name in version.co_names)
        yield CacheHit(code_info(code), continues, graphs, compile_id=compile_id)
    for _, version in versions:
        for name in version.co_names:
            resume = namespace.get(name) if name.startswith("__resume_at_") else None
            if isinstance(resume, FunctionType):
                yield from _tree(resume.__code__, namespace, seen, id(code))
