"""An FX graph for the detail pane: for each node its kind, its value, its source line and the nodes that it reads.

Promises: the nodes are in the graph's order, and each reads only nodes above it; the picture (`drawing.fx_picture`) has all
of them.
"""

from __future__ import annotations

from dynascope.compiler.ranks.collectives import called, describe
from dynascope.compiler.report import Graph, Node
from dynascope.widgets.drawing.fx_picture import FxDrawing
from dynascope.widgets.labels.words import Places, operation_name, printable, shorten
from dynascope.widgets.model.graph_run import heat
from dynascope.widgets.wire import FxBody, FxNode

_DTYPES = {
    "float": "f", "bfloat": "bf", "int": "i", "uint": "u", "complex": "c", "double": "f64", "half": "f16", "long": "i64",
}  # fmt: skip
_KINDS = (
    ("matmul", ("matmul", "linear", "mm", "bmm", "addmm", "baddbmm", "conv", "einsum", "attention", "embedding")),
    ("reduce", ("sum", "mean", "max", "min", "amax", "amin", "softmax", "norm", "argmax", "prod", "std", "var",
                "cumsum", "any", "all")),
    ("shape", ("view", "reshape", "permute", "transpose", "expand", "squeeze", "unsqueeze", "cat", "stack", "split", "chunk",
               "flatten", "getitem", "slice", "t", "to", "contiguous", "clone", "select", "index", "getattr", "size")),
)  # fmt: skip


def fx_body(graph: Graph, places: Places) -> FxBody:
    """The nodes of a graph, and their layout."""
    heats = heat(graph.run)
    nodes = [_node(n, reads, places) for n, reads in zip(graph.nodes, _reads(graph.nodes), strict=True)]
    for node, row in zip(graph.nodes, nodes, strict=True):
        if node.name in heats:
            row["heat"], row["time"] = heats[node.name]
            row["full"] += f"  ·  alone, eager: {row['time']}"
    taken = {op.node: op.seconds for op in graph.run.ops} if graph.run else {}
    drawing = FxDrawing(nodes, [n.module for n in graph.nodes], [taken.get(n.name, 0.0) for n in graph.nodes])
    return {"nodes": nodes, "picture": drawing.picture()}


def _reads(nodes: list[Node]) -> list[list[int]]:
    """For each node, the indices of the nodes that it reads; a name refers to the latest earlier node with that name."""
    latest: dict[str, int] = {}
    reads: list[list[int]] = []
    for i, node in enumerate(nodes):
        reads.append([latest[name] for name in dict.fromkeys(node.inputs) if name in latest])
        latest[node.name] = i
    return reads


def value_text(node: Node) -> str:
    """A node's value as text: `f32[8, 16] cpu DTensor(Shard(0))`; empty if it is not a tensor or its type is unknown."""
    if node.dtype is None and node.shape is None:
        return ""
    dtype = _dtype(node.dtype or "")
    shape = "" if node.shape is None else "[" + ", ".join(str(s) for s in node.shape) + "]"
    device = f" {node.device}" if node.device else ""
    subclass = f" {node.subclass}" if node.subclass else ""
    return printable(dtype + shape + device + subclass, 300)


def _dtype(name: str) -> str:
    name = name.removeprefix("torch.")
    letters = name.rstrip("0123456789")
    return _DTYPES.get(letters, letters) + name[len(letters) :]


def _kind(node: Node) -> str:
    if node.op in ("placeholder", "output"):
        return {"placeholder": "input", "output": "output"}[node.op]
    if node.op == "get_attr":
        return "param"
    if node.op == "call_module":
        return "matmul"
    if "c10d_functional" in node.target:
        return "collective"  # `wait_tensor`, too
    words = set(node.target.lower().replace("torch.ops.", "").replace("_", ".").split("."))
    last = operation_name(node.target).lower().strip("_")
    for kind, names in _KINDS:
        if last in names or any(n in words for n in names if len(n) > 3):
            return kind
    return "point"


def _node(node: Node, reads: list[int], places: Places) -> FxNode:
    value, target = value_text(node), operation_name(node.target)
    collective = called(node.code) if "c10d_functional" in node.target else None
    if collective is not None:
        target = printable(describe(collective))
    full = f"{node.name} = {node.target}" + (f" : {value}" if value else "") + (f"  ({node.module})" if node.module else "")
    row: FxNode = {
        "name": shorten(node.name, 200), "op": node.op, "kind": _kind(node), "target": shorten(target, 120),
        "value": value, "reads": reads, "full": printable(full, 1000),
    }  # fmt: skip
    if node.file is not None and node.line is not None:
        row["file"], row["line"] = printable(node.file, 1000), node.line
        row["place"] = places.at(node.file, node.line)
    return row
