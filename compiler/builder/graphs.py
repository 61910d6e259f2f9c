"""A captured graph and what became of it: in DDP's optimizer, AOTAutograd, the backend, their caches, and CUDA graphs.

Autograd hands all gradients of one graph to DDP at once, when the graph's backward ends.  So DDP's optimizer splits a graph at
the limits of DDP's buckets of gradients: it goes through the graph backwards, and begins another part when the parameters of a
part have as many bytes as a bucket takes.  The gradients of a bucket are then reduced while the backward of earlier parts still
runs.

The forward of DDP, and the hooks with which FSDP gathers parameters, are not meant to be compiled: Dynamo breaks there, so that
the module inside becomes a graph of its own.  If nothing else was in the frame, such a break cuts no graph.

Logs have only the Python text that torch prints for an FX graph; for a live run, `torch_private.translators` copies the same
nodes from the graph.  `parse_graph` returns the statements of a text with their arguments, from which `lab.graph_run` builds an
FX graph; `read_graph` returns the report's nodes.
"""

from __future__ import annotations

import ast
import functools
import itertools
import re
from collections import Counter
from collections.abc import Container
from dataclasses import dataclass, field

from dynascope.compiler.builder.compile_records import CompileRecord
from dynascope.compiler.parsing import errors_as, syntax_tree
from dynascope.compiler.report import Break, Graph, Node, Report, label, plural, printed_sizes
from dynascope.compiler.source.lines import CellResolver
from dynascope.compiler.source.origin import in_torch

_COMMENT = re.compile(r"^\s*# File: (?P<file>.*):(?P<line>\d+) in [^,]*(?:, code: .*)?$")
_NO_STACK = re.compile(r"^\s*# No stacktrace found")
_TYPE = re.compile(r"^(?P<dtype>[a-z]+[0-9a-z]*)\[(?P<shape>[^\]]*)\](?:\[(?P<stride>[^\]]*)\])?(?P<device>[a-z]*(?::\d+)?)?$")
#: a tensor of a subclass; for a DTensor, torch also prints the placement on each dimension of the mesh, as in `S(0), R`
_SUBCLASS = re.compile(
    r"^(?P<name>\w+)\((?P<tensor>[a-z]\w*\[[^\]]*\](?:\[[^\]]*\])?[a-z]*(?::\d+)?)(?:, (?P<placements>.*))?\)$"
)

_OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv", ast.FloorDiv: "floordiv", ast.Mod: "mod",
    ast.Pow: "pow", ast.MatMult: "matmul", ast.LShift: "lshift", ast.RShift: "rshift", ast.BitAnd: "and_", ast.BitOr: "or_",
    ast.BitXor: "xor", ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge",
    ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "invert", ast.Not: "not_", ast.Is: "is_", ast.IsNot: "is_not",
}  # fmt: skip

_DTYPES = {
    "f16": "float16", "f32": "float32", "f64": "float64", "bf16": "bfloat16", "i8": "int8", "i16": "int16", "i32": "int32",
    "i64": "int64", "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64", "b8": "bool", "c32": "complex32",
    "c64": "complex64", "c128": "complex128", "f8e5m2": "float8_e5m2", "f8e4m3fn": "float8_e4m3fn",
    "f8e5m2fnuz": "float8_e5m2fnuz", "f8e4m3fnuz": "float8_e4m3fnuz",
}  # fmt: skip


@dataclass
class Statement:
    """One node of the graph, and the arguments of its call as expressions."""

    node: Node
    args: list[ast.expr] = field(default_factory=list)
    kwargs: dict[str, ast.expr] = field(default_factory=dict)


def read_graph(text: str) -> list[Node]:
    """The nodes of the outermost `forward` in order; raises ValueError if the text is not an FX graph."""
    return [s.node for s in parse_graph(text).statements]


def parse_graph(text: str | ast.ClassDef) -> ParsedGraph:
    """Parse the outermost graph of a printed text, or one of another graph's `inner` graphs.

    Raises ValueError if the text is not an FX graph.
    """
    lines: list[str] = []
    scopes: list[ast.ClassDef | ast.Module]
    if isinstance(text, ast.ClassDef):
        scopes = [text]
    else:
        with errors_as(ValueError, "not an FX graph: ", (SyntaxError, RecursionError, MemoryError)):
            module = syntax_tree(text)
        lines, scopes = text.split("\n"), [*(s for s in module.body if isinstance(s, ast.ClassDef)), module]
    for scope in scopes:
        for item in scope.body:
            if isinstance(item, ast.FunctionDef) and item.name == "forward":
                return ParsedGraph(item, _places(lines, item), [c for c in scope.body if isinstance(c, ast.ClassDef)])
    raise ValueError("not an FX graph: no forward() in it")


def _places(lines: list[str], forward: ast.FunctionDef) -> dict[int, tuple[str, int]]:
    """Map each line of the text to the user's line that the nearest comment above it names."""
    places: dict[int, tuple[str, int]] = {}
    place: tuple[str, int] | None = None
    for number, line in enumerate(lines[forward.lineno - 1 : forward.end_lineno], forward.lineno):
        if comment := _COMMENT.match(line):
            place = (comment["file"], int(comment["line"]))
        elif _NO_STACK.match(line):
            place = None
        elif place:
            places[number] = place
    return places


class ParsedGraph:
    """One printed class, read statement by statement."""

    def __init__(self, forward: ast.FunctionDef, places: dict[int, tuple[str, int]], inner: list[ast.ClassDef]) -> None:
        self.places = places
        self.statements: list[Statement] = []
        #: the nested classes, such as the branches of a `cond`
        self.inner = {c.name: c for c in inner}
        self.nodes: dict[str, Node] = {}
        for argument in [*forward.args.posonlyargs, *forward.args.args, *forward.args.kwonlyargs]:
            if argument.arg != "self":
                self.add(Statement(Node(name=argument.arg, op="placeholder", target=argument.arg)), argument.annotation)
        pending: ast.stmt | None = None
        for statement in forward.body:
            match statement:
                case ast.Return(value):
                    numbered = (f"output_{number}" for number in itertools.count(1))  # torch does not print the name
                    name = next(n for n in itertools.chain(["output"], numbered) if n not in self.nodes)
                    returned, code = self.names(value), ast.unparse(statement)
                    output = Node(name=name, op="output", target="output", inputs=returned, code=code)
                    self.add(Statement(output, [value or ast.Constant(None)]), None)
                case ast.AugAssign() | ast.Assign(targets=[ast.Subscript(), *_]):
                    pending = statement  # torch prints `y += 1` and `y[0] = 1` first, and names the node on the next line
                    continue
                case ast.AnnAssign(ast.Name(name), annotation, ast.expr() as value):
                    self.assignment(name, value, annotation, pending)
                case ast.Assign([ast.Name(name)], value):  # one target only: `a = b = None` frees names and is no node
                    self.assignment(name, value, None, pending)
            pending = None

    def assignment(self, name: str, value: ast.expr, annotation: ast.expr | None, pending: ast.stmt | None) -> None:
        if isinstance(value, ast.Constant) and value.value is None and name in self.nodes:
            return
        placeholder = self.nodes.get(value.id) if isinstance(value, ast.Name) and pending is None else None
        if placeholder is not None and placeholder.op == "placeholder":
            placeholder.name = name  # `l_x_ = L_x_`: node and argument have different names
            self.nodes[name] = placeholder
            return
        source = pending if pending is not None else value
        op, function, args, kwargs = _call(source, self.nodes)
        node = Node(name=name, op=op, target=function, inputs=self.names(source), code=ast.unparse(source))
        node.file, node.line = self.places.get(value.lineno, (None, None))
        self.add(Statement(node, args, kwargs), annotation)

    def add(self, statement: Statement, annotation: ast.expr | None) -> None:
        if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
            set_type(statement.node, annotation.value)
        self.statements.append(statement)
        self.nodes[statement.node.name] = statement.node

    def names(self, value: ast.AST | None) -> list[str]:
        """Names of the nodes that an expression reads, each once, in the order of the text."""
        read = [n for n in ast.walk(value or ast.Pass()) if isinstance(n, ast.Name) and n.id in self.nodes]
        read.sort(key=lambda n: (n.lineno, n.col_offset))
        return list(dict.fromkeys(self.nodes[n.id].name for n in read))


def set_type(node: Node, text: str) -> None:
    """Give a node the type that torch prints for it: `f32[2, 3][3, 1]cpu`, or any other text as its dtype."""
    node.dtype, node.shape, node.stride, node.device, node.subclass = _read_type(text)


_Sizes = list[int | str] | None


@functools.lru_cache(1000)
def _read_type(text: str) -> tuple[str, _Sizes, _Sizes, str | None, str | None]:
    """dtype, shape, stride, device and subclass of a printed type, of which a graph has few."""
    subclass = _SUBCLASS.match(text)
    match = _TYPE.match(subclass["tensor"] if subclass else text)
    if match is None:
        return text, None, None, None, None
    dtype = _DTYPES.get(match["dtype"], match["dtype"])
    name = subclass["name"] if subclass else None
    if subclass and subclass["placements"] is not None:
        name = f"{name}({subclass['placements']})"
    shape, stride = (None if match[part] is None else printed_sizes(match[part]) for part in ("shape", "stride"))
    return dtype, shape, stride, match["device"] or None, name


_Call = tuple[str, str, list[ast.expr], dict[str, ast.expr]]


def _call(value: ast.AST, known: dict[str, Node]) -> _Call:
    """(opcode, target, args, kwargs) of a node, from the expression or statement that torch printed for the node."""
    match value:
        case ast.Call(function, args):
            root, kwargs = _root(function), {k.arg: k.value for k in value.keywords if k.arg is not None}
            if isinstance(function, ast.Attribute) and root == "self":
                return "call_module", ast.unparse(function).removeprefix("self."), args, kwargs
            if isinstance(function, ast.Attribute) and (
                root is None or (isinstance(function.value, ast.Name) and root in known)
            ):
                return "call_method", function.attr, [function.value, *args], kwargs
            return "call_function", ast.unparse(function), args, kwargs
        case ast.AugAssign(target, op, operand):
            target.ctx = ast.Load()  # the target becomes an argument, which is loaded, not stored
            return _operator("i" + _OPERATORS.get(type(op), "op").rstrip("_"), target, operand)
        case ast.Assign(targets=[ast.Subscript() as place, *_]):
            return _operator("setitem", place.value, place.slice, value.value)
        case ast.BinOp(left, op, right):
            return _operator(op, left, right)
        case ast.UnaryOp(op, operand):
            return _operator(op, operand)
        case ast.Compare(left, [op, *_], comparators):
            return _operator(op, left, *comparators)
        case ast.Subscript():
            return _operator("getitem", value.value, value.slice)
        case ast.Attribute() if _root(value) == "self":
            return "get_attr", ast.unparse(value).removeprefix("self."), [], {}
        case ast.Attribute():
            return "call_function", "getattr", [value.value, ast.Constant(value.attr)], {}
    return "call_function", type(value).__name__, [], {}


def _operator(operator: str | ast.AST, *args: ast.expr) -> _Call:
    name = operator if isinstance(operator, str) else _OPERATORS.get(type(operator), "op")
    return "call_function", f"operator.{name}", list(args), {}


def _root(value: ast.expr) -> str | None:
    """The name `a` of `a.b.c`; None: it is not such an expression."""
    while isinstance(value, ast.Attribute):
        value = value.value
    return value.id if isinstance(value, ast.Name) else None


#: from this many calls of one function in a graph on, a line is told: it may be in a loop, or in a function called often
_OFTEN = 8


def add_stages(record: CompileRecord, graph: Graph) -> None:
    """Fill in the graph's later stages; a backward that is not compiled yet is pending."""
    aot = {name: "\n\n".join(texts) for name, texts in record.aot_graphs.items()}  # several texts if the graph was split
    graph.aot_forward = aot.get("aot_forward_graph") or aot.get("aot_inference_graph")
    graph.aot_backward = aot.get("aot_backward_graph")
    graph.splits = record.splits
    graph.backend_code = "\n\n".join(record.output_codes) or None
    graph.caches = {stage: ", ".join(answers) for stage, answers in record.caches.items()}
    graph.from_cache = "hit" in graph.caches.values() if graph.caches else None
    if graph.aot_backward is not None:
        forwards = len(record.aot_graphs.get("aot_forward_graph", ()))  # each part of a split graph has code of its own
        compiled = bool(record.backward_metrics) or len(record.output_codes) > max(1, forwards)
        graph.backward = "compiled" if compiled else "pending"
        if graph.from_cache and graph.backward != "pending":
            graph.backward = "from cache"


def stage_notes(record: CompileRecord) -> list[str]:
    """Sentences about a split by DDP's optimizer, and about CUDA graphs that were skipped."""
    sentences = []
    if record.splits:
        count = f"DDP's optimizer split this graph into {len(record.splits)}, one for each bucket of gradients"
        sentences.append(f"{count}; bucket_cap_mb says how much goes into a bucket")
    for metrics, which in ((record.metrics, ""), (record.backward_metrics, " of the backward")):
        reason = str(metrics.get("cudagraph_skip_reason") or "").split("Found from", 1)[0]
        words = re.sub(r"^(?:skipping cudagraphs due to )+", "", reason.strip()).rstrip(" .")
        if words:
            sentences.append(f"CUDA graphs{which} were skipped: {words}")
    return sentences


#: wrapper of a module -> the files of its code; for DDP's break in contextlib, what the explanation, in the lines below the
#: file, says: the function of DDP that contextlib calls there, and that Dynamo skips
_WRAPPERS = {
    "DistributedDataParallel": re.compile(
        r"\A.*[\\/]torch[\\/]nn[\\/]parallel[\\/]distributed\.py\n|`DistributedDataParallel\._inside_ddp_forward`"
    ),
    "FSDP": re.compile(r"\A.*[\\/]torch[\\/]distributed[\\/]fsdp[\\/]"),
}


def take_wrapper_breaks(report: Report, breaks: list[Break], ignored: Container[str]) -> list[Break]:
    """Move the graph breaks that DDP and FSDP make by design to `wrapper_breaks`, with a note; returns the others.

    `ignored`: ids of frames that are not the user's and have no graph.  A break in any other frame cuts a graph of the user's.
    """
    for wrapper, code in _WRAPPERS.items():
        inside = (b for b in breaks if code.search(f"{b.file}\n{b.explanation}"))
        own = [b for b in inside if all(hit.frame in ignored for hit in b.hits)]
        if own:
            report.wrapper_breaks += own
            places = ", ".join(f"{label(b.file, b.cell)}:{b.line}" for b in own)
            report.notes.append(
                f"{wrapper}'s own code has {plural(len(own), 'graph break')} ({places}): by design, it runs eagerly around "
                "the module and cuts none of the module's graphs"
            )
    return [b for b in breaks if b not in report.wrapper_breaks]


def unrolled(nodes: list[Node], cell_of: CellResolver) -> list[str]:
    """One sentence for each line outside torch with many calls of one function in a graph."""
    times = Counter((n.file, n.line, n.target) for n in nodes if n.file and n.line and n.op.startswith("call_"))
    most: dict[tuple[str, int], int] = {}
    for (file, line, _), count in times.items():
        if file and line and count >= _OFTEN and not in_torch(file):
            most[(file, line)] = max(count, most.get((file, line), 0))
    return [
        f"{label(file, cell_of(file))}:{line} has {count} calls of a function in this graph; loops are unrolled, calls inlined"
        for (file, line), count in most.items()
    ]
