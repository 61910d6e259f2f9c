"""Reads the collectives of a graph from the graph's printed code, in order.

`collectives` reads AOTAutograd's graphs, which have shapes and the backward; if the forward graph has no collectives, it reads
Dynamo's graph instead.  `schedule` reads Inductor's code, in which the order may differ from the graph's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from dynascope.compiler.ranks.report import Collective
from dynascope.compiler.report import Graph

#: operations of torch.ops._c10d_functional that start no collective
_HELPERS = frozenset({"wait_tensor", "_wrap_tensor_autograd", "_wait_tensor"})
_CALL = re.compile(r"(?P<module>_?(?:c10d_functional(?:_autograd)?))\.(?P<kind>\w+?)(?:\.default|\.out)?\((?P<args>[^\n]*)")
_STRINGS = re.compile(r"['\"]([\w:.-]+)['\"]")
_TYPE = re.compile(r"(?P<name>\w+): *['\"](?P<dtype>\w+)\[(?P<shape>[^\]]*)\]")
_ASSIGNED = re.compile(r"^\s*(?P<name>\w+)")


def collectives(graph: Graph, names: dict[str, tuple[str | None, list[int] | None]] | None = None) -> list[Collective]:
    """The collectives of one graph, forward then backward.

    `names`: the process groups, as torch's name -> (the program's name, the ranks).
    """
    forward = graph.aot_forward if graph.aot_forward and "c10d_functional" in graph.aot_forward else None
    found = list(_read(forward if forward is not None else graph.code, names or {}, backward=False))
    return found + list(_read(graph.aot_backward or "", names or {}, backward=True))


def schedule(code: str | None) -> list[str]:
    """Kinds of the collectives in the order of Inductor's code, as Inductor's own collective schedule lists them."""
    if not code or "_c10d_functional" not in code:
        return []
    kinds = []
    for line in code.splitlines():
        if "_c10d_functional." not in line or line.lstrip().startswith("#"):
            continue
        kinds += scheduled(match["kind"] for match in _CALL.finditer(line))
    return kinds


def scheduled(names: Iterable[str]) -> list[str]:
    """Kinds of the collectives in a list of operations, such as a collective schedule that Inductor recorded."""
    parts = [name.split("_c10d_functional.")[-1].split(".")[0] for name in names]
    return [kind.rstrip("_") for kind in parts if kind not in _HELPERS]


def _read(text: str, names: dict[str, tuple[str | None, list[int] | None]], *, backward: bool) -> Iterator[Collective]:
    if "c10d_functional" not in text:
        return
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    waits = _waits(lines)
    for line in lines:
        found = called(line)
        if found is not None:
            result = _ASSIGNED.match(line)
            found.group_name, found.ranks = names.get(found.group or "", (None, None))
            found.waited, found.backward = waits.get(result["name"]) if result else None, backward
            yield found


def called(line: str) -> Collective | None:
    """The collective that a printed line of a graph starts; None if it starts none."""
    match = _CALL.search(line)
    if match is None or match["kind"] in _HELPERS:
        return None
    typed = _TYPE.search(line[: match.start()])
    strings = _STRINGS.findall(match["args"].partition(";")[0])
    return Collective(
        kind=match["kind"].rstrip("_"),
        reduction=strings[0] if len(strings) > 1 else None,
        group=strings[-1] if strings else None,
        dtype=typed["dtype"] if typed else None,
        shape=_sizes(typed["shape"]) if typed else None,
    )


def _waits(lines: list[str]) -> dict[str, int]:
    """Name of a collective's result -> number of the line that waits for it."""
    waits: dict[str, int] = {}
    for number, line in enumerate(lines):
        match = re.search(r"wait_tensor(?:\.default)?\((\w+)\)", line)
        if match:
            waits.setdefault(match[1], number)
    return waits


def _sizes(text: str) -> list[int | str]:
    parts = [p.strip() for p in text.split(",") if p.strip()]
    return [int(p) if p.lstrip("-").isdigit() else p for p in parts]


def describe(collective: Collective) -> str:
    """A collective in one line: `all_reduce(sum) over mesh_tp of f32[8, 3]`."""
    reduction = f"({collective.reduction})" if collective.reduction else ""
    group = collective.group_name or ("all ranks" if collective.group == "0" else f"group {collective.group}")
    over = f" over {group}" if collective.group else ""
    shape = f" of {collective.dtype}[{', '.join(map(str, collective.shape))}]" if collective.shape is not None else ""
    return f"{collective.kind}{reduction}{over}{shape}"
