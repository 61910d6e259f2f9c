"""An FX graph for the detail: nodes by kind, values on the edges, each linked to its source line.

Promises: up to `DRAWN` nodes are drawn (our own layered layout, in the kernel); larger graphs are drawn folded, by
module or source line, and every node stands in exactly one fold; as a list nothing is left out.
"""

from __future__ import annotations

import re

from dynascope.compiler.report import Graph, Node
from dynascope.widgets import layout as lay
from dynascope.widgets.fxfold import folded_picture, fx_folds
from dynascope.widgets.graphrun import heat
from dynascope.widgets.wire import FxBody, FxNode, FxPicture
from dynascope.widgets.words import Places, cut, printable, shorten, text_width

DRAWN = 300
HEIGHT = 28.0
#: with the time of the operation below its name
TIMED = 40.0
NARROWEST, WIDEST = 60.0, 190.0

#: what comes before the own name of an input: the path of its module
_INPUT = re.compile(r"^(?:.*_(?:modules|parameters|buffers)_|[lL]_)(?=.)")
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
    """The nodes of a graph, and where they stand if they are few enough to be drawn."""
    index = {n.name: i for i, n in enumerate(graph.nodes)}
    told = heat(graph.run)
    nodes = [_node(n, index, places) for n in graph.nodes]
    for node, row in zip(graph.nodes, nodes, strict=True):
        if node.name in told:
            row["heat"], row["time"] = told[node.name]
            row["full"] += f"  ·  alone, eager: {row['time']}"
    if len(nodes) <= DRAWN:
        return {"nodes": nodes, "picture": _picture(nodes) if nodes else None}
    folds = fx_folds([n.module for n in graph.nodes], nodes)
    taken = {str(op["node"]): float(op["seconds"]) for op in graph.run.ops} if graph.run else {}
    picture = folded_picture(folds, nodes, [taken.get(n.name, 0.0) for n in graph.nodes])
    return {"nodes": nodes, "picture": picture, "folds": folds}


def value_text(node: Node) -> str:
    """`f32[8, 16] cpu`; empty where the node is no tensor or it is not known."""
    if node.dtype is None and node.shape is None:
        return ""
    dtype = _dtype(node.dtype or "")
    shape = "" if node.shape is None else "[" + ", ".join(str(s) for s in node.shape) + "]"
    device = f" {node.device}" if node.device else ""
    return printable(dtype + shape + device, 300)


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
    words = set(node.target.lower().replace("torch.ops.", "").replace("_", ".").split("."))
    last = _short_target(node.target).lower().strip("_")
    for kind, names in _KINDS:
        if last in names or any(n in words for n in names if len(n) > 3):
            return kind
    return "point"


def _short_target(target: str) -> str:
    """`softmax` for `torch.nn.functional.softmax`, `mm` for `torch.ops.aten.mm.default`."""
    for junk in ("<built-in function ", "<built-in method ", "<function "):
        if target.startswith(junk):
            target = target[len(junk) :].split(" ")[0].rstrip(">")
    parts = [p for p in target.split(".") if p]
    if len(parts) > 1 and parts[-1] in ("default", "Tensor", "Scalar", "int", "dim", "self"):
        parts.pop()
    return printable(parts[-1] if parts else target)


def _node(node: Node, index: dict[str, int], places: Places) -> FxNode:
    value = value_text(node)
    full = f"{node.name} = {node.target}" + (f" : {value}" if value else "") + (f"  ({node.module})" if node.module else "")
    row: FxNode = {
        "name": shorten(node.name, 200), "op": node.op, "kind": _kind(node), "target": shorten(_short_target(node.target), 120),
        "value": value, "reads": [index[i] for i in dict.fromkeys(node.inputs) if i in index], "full": printable(full, 1000),
    }  # fmt: skip
    if node.file is not None and node.line is not None:
        row["file"], row["line"] = printable(node.file, 1000), node.line
        row["place"] = places.at(node.file, node.line)
    return row


def _picture(nodes: list[FxNode]) -> FxPicture:
    """Positions; the value that an edge carries is written right below the box that it comes from."""
    read = {source for node in nodes for source in node["reads"]}
    devices = {node["value"].rpartition("] ")[2] for node in nodes if "] " in node["value"]}
    same = f" {devices.pop()}" if len(devices) == 1 else ""
    titles, values, boxes = [], [], []
    for i, node in enumerate(nodes):
        text = node["target"]
        if node["kind"] in ("input", "param"):
            text = _INPUT.sub("", node["name"]).strip("_") or node["name"]
        titles.append(cut("return" if node["kind"] == "output" else text, WIDEST - 24, 12))
        value = node["value"].removesuffix(same) if same else node["value"]
        values.append(cut(value, WIDEST - 10, 10, mono=True) if value and i in read else "")
        time = node.get("time", "")
        wide = max(
            text_width(titles[i], 12) + 24, text_width(values[i], 10, mono=True) + 10, text_width(time, 10, mono=True) + 16
        )
        boxes.append(lay.Box(f"n{i}", min(WIDEST, max(NARROWEST, wide)), TIMED if time else HEIGHT))
    edges = [lay.Edge(f"n{source}", f"n{i}") for i, node in enumerate(nodes) for source in node["reads"]]
    placed = lay.layout(boxes, edges, engine="layered", compact=True)
    rects = [placed.boxes[f"n{i}"] for i in range(len(nodes))]
    labels: list[list[object]] = [
        [round(r.x + r.width / 2, 1), round(r.y + r.height + 12, 1), value]
        for r, value in zip(rects, values, strict=True)
        if value
    ]
    return {
        "width": placed.width, "height": placed.height, "boxes": [[r.x, r.y, r.width, r.height] for r in rects],
        "titles": titles, "edges": [[[x, y] for x, y in route] for route in placed.edges], "labels": labels,
    }  # fmt: skip
