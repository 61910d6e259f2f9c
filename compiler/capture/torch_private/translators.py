"""Reads Dynamo's own objects (instructions, instruction translators, exceptions) into plain data.

Private parts that some versions of torch lack are read by name and with a default, so a missing part is unknown, not an error.

The nodes of a live FX graph are copied: the same ones as `builder.graphs` reads from the graph's printed text.  Reading the
text is most of what a report of a large model costs.  No tensor, module or fake tensor is kept.
"""

from __future__ import annotations

import enum
import functools
import linecache
import re
import sys
import traceback
from collections.abc import Callable
from itertools import dropwhile, islice
from types import FrameType, MethodType, TracebackType
from typing import Any

from dynascope.compiler.builder.events import Error, Location, Position, Region, TracedCall
from dynascope.compiler.builder.graphs import set_type
from dynascope.compiler.capture.torch_private.config import nested_graph_breaks
from dynascope.compiler.capture.torch_private.marks import undecorated
from dynascope.compiler.report import Node


def positions(instruction: Any) -> Position:
    """The source position of a Dynamo instruction."""
    at = getattr(instruction, "positions", None)
    if at is None:
        return Position(getattr(instruction, "starts_line", None))
    return Position(at.lineno, at.col_offset, at.end_lineno, at.end_col_offset)


def location(translator: Any) -> Location:
    """The place of the instruction that a translator is tracing."""
    code, at = translator.f_code, positions(translator.current_instruction)
    return Location(code.co_filename, at.line or 0, code.co_name, *at[1:])


def tested(translator: Any) -> Location | None:
    """The place of the condition, if a translator is tracing a jump.

    That of the jump may be the whole statement, or, in Python 3.11, `n > 0` for the second jump of `n > 0 and x.any()`.
    """
    code, now = translator.f_code, translator.current_instruction
    if "JUMP" not in now.opname:
        return None
    at = positions(translator.instructions[translator.instructions.index(now) - 1])
    return Location(code.co_filename, at.line, code.co_name, *at[1:]) if at.line else None


def chain(translator: Any) -> list[Any]:
    """A translator and the translators of its callers, innermost first; the last one translates the frame itself."""
    translators = [translator]
    while (parent := getattr(translators[-1], "parent", None)) is not None:
        translators.append(parent)
    return translators


def regions_of(translator: Any) -> list[Region]:
    """The `with error_on_graph_break(...)` blocks around a translator's current instruction, outermost first."""
    regions = []
    lines = {block.stack_index: positions(block.inst).line for block in getattr(translator, "block_stack", ())}
    stack = getattr(translator, "stack", [])
    for index, value in enumerate(stack):
        # an entered `with` puts a WithExitFunctionVariable with its `ctx` on the stack; getattr would realize a lazy variable
        context: Any = getattr(value, "__dict__", {}).get("ctx")
        if hasattr(context, "is_realized"):
            context = context.unwrap() if context.is_realized() else None
        if type(context).__name__ == "ErrorOnGraphBreakVariable":
            # the block begins one place above the context, or two in Python 3.14, which puts a NULL in between
            has_null = [type(above).__name__ for above in stack[index + 1 : index + 2]] == ["NullVariable"]
            line = lines.get(index + 1, lines.get(index + 2) if has_null else None)
            regions.append(Region(context.target_values[0], translator.f_code.co_filename, line))
    return regions


def in_try(translator: Any) -> bool:
    """Whether the current instruction is in a `try`, or in a `with` inside a `try`, so that Dynamo cannot resume after it.

    Only the frame's own code counts, unless graph breaks may be nested: otherwise, Dynamo resumes after the call in that code.
    """
    if getattr(translator, "parent", None) is not None and not nested_graph_breaks():
        return False
    blocks = getattr(translator, "block_stack", ())
    handler = getattr(translator.current_instruction, "exn_tab_entry", None)  # Python 3.11 and newer
    if handler is not None:
        return not blocks or handler.target is not blocks[-1].target
    return any(block.with_context is None for block in blocks)


def traced_call(translator: Any) -> TracedCall:
    """The call that a translator traces, with its regions."""
    return TracedCall(translator.f_code.co_name, id(translator.f_code), regions_of(translator))


def summaries(stack: Any) -> list[Location]:
    """traceback.FrameSummary objects as locations, outermost first."""
    return [
        Location(s.filename, s.lineno or 0, s.name, getattr(s, "colno", None), None, getattr(s, "end_colno", None))
        for s in stack or ()
    ]


def callers(innermost: FrameType) -> list[Location]:
    """A Python frame and its callers, outermost first, without those inside an enclosing compile.

    The stack that torch records is no substitute: it lacks the innermost callers, because torch cuts off more frames than its
    own.
    """
    entries: list[Location] = []
    for frame, line in traceback.walk_stack(innermost):
        if frame.f_code.co_filename.endswith("convert_frame.py"):
            entries.clear()
        else:
            entries.append(Location(frame.f_code.co_filename, line or 0, frame.f_code.co_name))
    return entries[::-1]


def without_traceback(make: Any) -> Any:
    """The text of a graph break without Dynamo's traceback.

    No report has the traceback, and formatting it takes a third of a recording's time.

    `make`: torch's function that makes the text.  If it is not the known one, or the reason of the break is only in the
    traceback, the result is what `make` returns.
    """
    cells: Any = getattr(make, "__closure__", None) or ()
    if len(cells) == 1 and make.__code__.co_freevars == ("user_stack_trace",):
        text = cells[0].cell_contents
        if "Graph Break Reason: " in text:
            return text
    return make()


def _source_name(source: Any) -> str:
    """The name of a source, as guards write it; "" for what no guard can be on, such as a dictionary that the code has made."""
    try:
        name = source.name  # a method in torch 2.9, later a property
        return str(name() if callable(name) else name)
    except NotImplementedError:
        return ""


def stack_sources(translator: Any) -> list[str]:
    """The names of the sources of the values on the stack, as a resume function receives them; "" for values without one."""
    values = [v for v in getattr(translator, "stack", ()) if type(v).__name__ != "NullVariable"]
    sources = [vars(value).get("source") for value in values]  # getattr would realize a lazy variable
    return ["" if source is None else _source_name(source) for source in sources]


#: name of a record of symbolic shapes -> computes its fields, given the closure variables of the torch function that makes them
_SHAPE_FIELDS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "create_symbol": lambda v: {
        "symbol": str(v["sympy_expr"]), "val": repr(v["val"]), "vr": v["range_str"], "source": _source_name(v["source"])
    },
    "create_unbacked_symbol": lambda v: {"symbol": str(v["symbol"]), "vr": f"[{v['vr'].lower}, {v['vr'].upper}]"},
    "guard_added_fast": lambda v: {"expr": str(v["g"])},
    "symbolic_shape_specialization": lambda v: {"symbol": repr(v["a"]), "value": repr(v["tgt"]), "reason": v["msg"]},
}  # fmt: skip


def shape_record(name: str, make: Any) -> Any:
    """The metadata of a record of symbolic shapes, with only the innermost frames of the compiler's stack, which is faster.

    `make`: torch's function that makes the metadata.  If its closure is not the known one, the result is what `make` returns.
    """
    try:
        cells = [cell.cell_contents for cell in make.__closure__ or ()]
        fields = _SHAPE_FIELDS[name](dict(zip(make.__code__.co_freevars, cells, strict=True)))
        uninteresting = sys.modules["torch.fx.experimental.symbolic_shapes"].uninteresting_files()
        fields["user_stack"] = [
            {"line": s.line, "name": s.function, "filename": s.file, "column": s.column, "end_column": s.end_column}
            for s in summaries(sys.modules["torch._guards"].TracingContext.extract_stack())
        ]
    except (AttributeError, KeyError, TypeError, ValueError):
        return make()
    above = traceback.walk_stack(sys._getframe(2))  # 0: this function, 1: torch's function that makes the record
    stack = dropwhile(lambda entry: entry[0].f_code.co_filename in uninteresting, above)
    entries = [{"line": line, "name": f.f_code.co_name, "filename": f.f_code.co_filename} for f, line in islice(stack, 8)]
    return {**fields, "stack": entries[::-1]}


def symbol_sizes(graph: Any) -> dict[str, int | float]:
    """The values that the symbols among a graph's inputs had in the traced call; unknown values are left out."""
    values: dict[str, int | float] = {}
    for node in graph.nodes:
        symbol = getattr(node.meta.get("example_value"), "node", None) if node.op == "placeholder" else None
        hint = getattr(symbol, "hint", None)
        if isinstance(hint, (int, float)):
            values[str(getattr(symbol, "expr", node.name))] = hint
    return values


def describe(error: BaseException) -> Error:
    """An exception of the compiler as plain data."""
    return Error(type(error).__name__, str(error), summaries(getattr(error, "real_stack", None)))


def entered_function(function: Any) -> tuple[Any, str, Any]:
    """The origin of a compiled function: the Python function that Dynamo traces, the name to show, the user's object.

    For a module, Dynamo traces its `forward`.  torch wraps a callable without a Python frame (a module of torch's, a builtin):
    Dynamo then traces the wrapper.
    """
    owner = getattr(function, "__self__", None)
    if owner is not None and function.__name__ in ("__call__", "_call_impl", "_wrapped_call_impl", "call_wrapped"):
        forward = getattr(owner, "forward", function)  # an object that is not an nn.Module is traced by its call
        return getattr(forward, "__func__", forward), type(owner).__name__, owner
    code = getattr(function, "__code__", None)
    if code is not None and code.co_filename.endswith("external_utils.py"):
        for variable in {"fn", "func"} & set(code.co_freevars):  # names of the wrapped function in torch's wrappers
            return function, *named(undecorated(function.__closure__[code.co_freevars.index(variable)].cell_contents))
    name, inner = named(function)
    return inner, name, inner


def runs_for(frame: Any) -> tuple[str | None, int | None]:
    """The name of the class or function that a frame runs for, if several can share its code object, and the id of the object.

    None for other code.
    """
    code = frame.f_code
    if code.co_name == "forward" and (owner := frame.f_locals.get("self")) is not None:
        return type(owner).__name__, id(owner)
    if code.co_filename.endswith("external_utils.py"):
        wrapped = undecorated(frame.f_locals.get("fn", frame.f_locals.get("func")))
        if wrapped is not None:
            name, inner = named(wrapped)
            return name, id(inner)
    return None, None


def failed_operation(trace: TracebackType | None) -> str:
    """The user's stack of the operation that failed in a running graph, as torch prints it; "" if it is unknown."""
    import torch

    for frame, line in reversed(list(traceback.walk_tb(trace))):
        graph = frame.f_locals.get("self")
        if frame.f_code.co_name == "forward" and isinstance(graph, torch.fx.GraphModule):
            name = linecache.getline(frame.f_code.co_filename, line, frame.f_globals).partition(" = ")[0].strip()
            return next((node.stack_trace or "" for node in graph.graph.nodes if node.name == name), "")
    return ""


def named(function: Any) -> tuple[str, Any]:
    """The name of a callable (`f`, `Net.generate` for a bound method, the class for any other object), and its function."""
    name = str(getattr(function, "__name__", None) or type(function).__name__)
    if isinstance(function, MethodType):
        owner = function.__self__
        name = f"{(owner if isinstance(owner, type) else type(owner)).__name__}.{name}"
    return name, getattr(function, "__func__", function)


def current_compile_id() -> str | None:
    """The id of the compile that is running in this thread, as torch prints it; None if there is none, or it is unknown."""
    context = getattr(sys.modules.get("torch._guards"), "CompileContext", None)
    current = getattr(context, "current_compile_id", lambda: None)()
    return None if current is None else str(current)


_ENTRY = re.compile(r'^ *File "(.+)", line (\d+), in .+$', re.M)
_ILLEGAL = re.compile(r"\W")


def graph_nodes(graph: Any) -> list[Node]:
    """The nodes of a graph, in order; raises an exception if this torch has other parts of FX than expected."""
    import torch
    from torch.fx.node import _get_qualified_name

    fx: Any = torch.fx.graph
    operators = {**fx.magic_methods, **fx.inplace_methods}

    @functools.cache
    def function_name(function: Any) -> str:
        name = _get_qualified_name(function)
        return name if fx._is_from_torch(function) and function is not torch.device else _ILLEGAL.sub("_", name)

    def written(value: Any) -> str:
        """An argument as FX prints it."""
        if isinstance(value, torch.fx.Node):
            return value.name
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return f"{function_name(type(value))}({', '.join(map(repr, value))})"
        if isinstance(value, tuple):
            return f"({', '.join(map(written, value))}{',' if len(value) == 1 else ''})"
        if isinstance(value, list):
            return f"[{', '.join(map(written, value))}]"
        if isinstance(value, slice):
            return f"slice({written(value.start)}, {written(value.stop)}, {written(value.step)})"
        if isinstance(value, (torch._ops.OpOverload, torch._ops.HigherOrderOperator)):
            return function_name(value)
        return f"{type(value).__name__}.{value.name}" if isinstance(value, enum.Enum) else repr(value)

    def call(args: Any, kwargs: Any) -> str:
        return f"({', '.join([*map(written, args), *(f'{k}={written(v)}' for k, v in kwargs.items())])})"

    def type_text(value: Any) -> str | None:
        """The type of a value as FX prints it; None for values without one."""
        if isinstance(value, torch.Tensor):
            if value.layout in (torch.sparse_csc, torch.sparse_csr):
                return None
            sizes = "".join(f"[{', '.join(map(str, part))}]" for part in (value.shape, value.stride()))
            core = f"{fx.dtype_abbrs[value.dtype]}{sizes}{value.device}"
            if type(value) is torch.Tensor or isinstance(value, torch._subclasses.FakeTensor):
                return core
            placements = ""
            if type(value).__name__ == "DTensor":
                spec: Any = value._spec  # type: ignore[attr-defined]
                placements = f", {spec.format_shard_order_str(spec.placements, spec.shard_order)}"
            return f"{type(value).__name__}({core}{placements})"
        return f"Sym({value!r})" if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)) else None

    @functools.cache
    def place(trace: str | None) -> tuple[str | None, int | None]:
        """The innermost entry of a stack, as FX prints it above the node."""
        entries = _ENTRY.findall(trace or "")
        return (entries[-1][0], int(entries[-1][1])) if entries else (None, None)

    def copied(node: Any) -> Node:
        stack, op, target, args = node.meta.get("nn_module_stack"), node.op, node.target, node.args
        made = Node(name=node.name, op=op, target=str(target), module=str(list(stack.values())[-1][0]) if stack else None)
        if op == "output":
            made.code = f"return {written(args[0])}"
        elif (text := type_text(node.meta.get("val", node.meta.get("example_value")))) is not None:
            set_type(made, text)
        if op == "placeholder":
            return made
        made.inputs = [n.name for n in node.all_input_nodes]
        if op != "output":
            made.file, made.line = place(node.stack_trace)
        name = getattr(target, "__name__", "")
        if op == "get_attr":
            made.code = f"self.{target}"
        elif op == "call_module":
            made.code = f"self.{target}{call(args, node.kwargs)}"
        elif op == "call_method":
            made.code = f"{written(args[0])}.{target}{call(args[1:], node.kwargs)}"
        elif op == "call_function" and getattr(target, "__module__", "") == "_operator" and name in operators:
            values = [*map(written, args)]
            if name in ("getitem", "setitem") and isinstance(args[1], tuple) and args[1]:
                values[1] = values[1][1:-1]  # as Python writes it: x[1, 2]
            made.target, made.code = f"operator.{name}", operators[name].format(*values)
        elif target is getattr and len(args) == 2 and isinstance(args[1], str) and args[1].isidentifier():
            made.target, made.code = "getattr", f"{written(args[0])}.{args[1]}"
        elif op == "call_function":
            made.target = function_name(target)
            made.code = f"{made.target}{call(args, node.kwargs)}"
        return made

    return [copied(node) for node in graph.nodes]
