"""Blocks of code that were compiled several times: graphs that are equal, and sequences of operations that repeat in a graph.

Operations are equal if they are the same calls, with the same constants, of the same line, and give the same dtype and shape;
the names of values are not compared.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise

from dynascope.compiler.report import Frame, Graph, Node, RepeatedBlock
from dynascope.compiler.source.lines import CellResolver, function_at
from dynascope.compiler.source.origin import in_torch

#: a block has at least this many operations, and occurs at least this often
_OPS, _TIMES = 3, 3
#: in one graph, at most this many distances between equal operations are tried as lengths of a block
_LENGTHS = 8
#: a name that is not an attribute
_NAME = re.compile(r"(?<![.\w])[A-Za-z_]\w*")

Run = tuple[int, int, int]


def repeated_blocks(graphs: list[Graph], frames: list[Frame], cell_of: CellResolver) -> list[RepeatedBlock]:
    """The blocks that were compiled several times, the largest first."""
    blocks: list[RepeatedBlock] = []
    shown = {f.id for f in frames if f.status != "ignored"}
    same: dict[tuple[object, ...], list[Graph]] = {}
    for graph in graphs:
        nodes = _operations(graph)
        runs = repeats([_token(n) for n in nodes])
        for start, length, count in runs:
            turns = [nodes[at : at + length] for at in range(start, start + length * count, length)]
            blocks.append(_block(turns, [graph], length * count / len(nodes), cell_of))
        if len(nodes) >= _OPS and graph.frame in shown:
            same.setdefault(tuple(_token(n) for n in nodes), []).append(graph)
    for equal in same.values():
        if len(equal) >= _TIMES:
            blocks.append(_block([_operations(g) for g in equal], equal, 1.0, cell_of))
    return sorted(blocks, key=lambda b: -b.count * b.ops)


def _operations(graph: Graph) -> list[Node]:
    """The nodes of a graph that compute something, in order."""
    return [n for n in graph.nodes if n.op.startswith("call_")]


def repeats(tokens: list[object]) -> list[Run]:
    """The parts of a sequence that repeat immediately, as (start, length of the part, times); the runs do not overlap."""
    latest: dict[object, int] = {}
    distances: Counter[int] = Counter()
    for at, token in enumerate(tokens):
        if token in latest:
            distances[at - latest[token]] += 1
        latest[token] = at
    found: list[Run] = []
    for length in sorted(length for length, _ in distances.most_common(_LENGTHS) if length >= _OPS):
        equal = 0
        for at in range(len(tokens) - length + 1):
            if at + length < len(tokens) and tokens[at] == tokens[at + length]:
                equal += 1
                continue
            if equal // length + 1 >= _TIMES:
                found.append((at - equal, length, equal // length + 1))
            equal = 0
    chosen: list[Run] = []
    for run in sorted(found, key=lambda run: (-run[1] * run[2], run[1])):
        if all(run[0] + run[1] * run[2] <= start or start + length * times <= run[0] for start, length, times in chosen):
            chosen.append(run)
    return sorted(chosen)


def _token(node: Node) -> object:
    """What is compared of an operation; its code is without the names of values."""
    values = {node.name, *node.inputs}
    code = _NAME.sub(lambda m: "_" if m[0] in values else m[0], node.code)
    return node.op, node.target, node.file, node.line, node.dtype, tuple(node.shape or ()), code


def _block(turns: list[list[Node]], graphs: list[Graph], share: float, cell_of: CellResolver) -> RepeatedBlock:
    places = dict.fromkeys((n.file, n.line) for n in turns[0] if n.file is not None and not in_torch(n.file))
    functions = dict.fromkeys(f[0] for file, line in places if (f := function_at(file or "", line or 0)) is not None)
    file, line = next(iter(places), (None, None))
    modules = [_common(turn) for turn in turns]
    known = [m for m in modules if m is not None]
    return RepeatedBlock(
        count=len(turns), ops=len(turns[0]), share=round(share, 4), graphs=[g.id for g in graphs],
        modules=known if len(set(known)) == len(turns) else [], functions=list(functions)[:5], file=file, line=line,
        cell=cell_of(file) if file is not None else None,
    )  # fmt: skip


def _common(nodes: list[Node]) -> str | None:
    """The innermost module that all of the nodes ran in; None if that is unknown, or there is none."""
    paths = [(n.module or "").split(".") for n in nodes]
    length = min(map(len, paths))
    shared = next((i for i in range(length) if any(p[i] != q[i] for p, q in pairwise(paths))), length)
    return ".".join(paths[0][:shared]) or None
