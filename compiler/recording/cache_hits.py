"""What ran from code that was compiled before the recording.

Dynamo tells nothing of a cache hit, so a recording notes which compiled functions were called, and at its
end looks at the compiled code that Dynamo holds for those that it saw no compile of: how many graphs and
which resume functions are known, reasons are not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType
from typing import Any

from dynascope.compiler.torch_private import internals
from dynascope.compiler.torch_private.hooks import code_info

_GRAPH = re.compile(r"^__compiled_fn_")
_RESUME = re.compile(r"^__resume_at_")


def cached_events(entered: dict[int, tuple[CodeType, dict[str, Any]]], compiled: Iterable[int]) -> Iterator[dict[str, Any]]:
    """One "cached" event for each compiled code object behind the entries that saw no compile.

    `entered`: code objects that were called compiled, with their globals, by uid; `compiled`: uids that the
    recording saw a compile of.
    """
    seen = set(compiled)
    for uid, (code, namespace) in entered.items():
        if uid not in seen:
            yield from _tree(code, namespace, seen, None)


def _tree(code: CodeType, namespace: dict[str, Any], seen: set[int], continues: int | None) -> Iterator[dict[str, Any]]:
    if id(code) in seen:
        return
    seen.add(id(code))
    entries = internals.compiled_versions(code)
    if not entries:
        if internals.is_known(code):
            yield _event(code, None, continues, [])
        return
    for compile_id, version in entries:
        yield _event(code, compile_id, continues, [n for n in version.co_names if _GRAPH.match(n)])
    for _, version in entries:
        for name in version.co_names:
            resume = namespace.get(name) if _RESUME.match(name) else None
            if isinstance(resume, FunctionType):
                yield from _tree(resume.__code__, namespace, seen, id(code))


def _event(code: CodeType, compile_id: str | None, continues: int | None, graphs: list[str]) -> dict[str, Any]:
    return {
        "kind": "cached", "code": code_info(code), "cid": None, "compile_id": compile_id, "continues": continues,
        "graphs": graphs,
    }  # fmt: skip
