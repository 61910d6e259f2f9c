"""Where the time of the compiles went: phases, and blocks of code that were compiled several times.

The beginnings and ends of phases are paired, nested as they ran, and added up by name and frame.  If an event is damaged, only
its own phase is lost.  A live recording knows the thread of each phase; a log does not.

Repeated blocks are graphs that are equal, and numbered modules (`layers.0`, `layers.1`) whose operations in a graph are equal;
logs do not name modules.  Operations are equal if they are the same calls, with the same constants, of the same line, and give
the same dtype and shape; the names of values are not compared.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from dynascope.compiler.builder.compile_records import CompileRecord, CompileRecords
from dynascope.compiler.report import CompilePhase, CompileTime, Frame, Graph, Node, PhaseKind, RepeatedBlock
from dynascope.compiler.source.lines import CellResolver, function_at
from dynascope.compiler.source.origin import in_torch

#: ends of the names of autotuning phases; the rest of such a name is the operation's name
_AUTOTUNING = ("_template_autotuning", "_template_precompiling")
#: (kind, beginnings of the names of its phases); a phase whose name fits none has the kind of the phase around it, or "other"
_KINDS: list[tuple[PhaseKind, tuple[str, ...]]] = [
    ("dynamo", (
        "dynamo", "entire_frame_compile", "compile_attempt_", "bytecode_", "insert_deferred_runtime_asserts", "pgo.",
        "fullgraph_capture", "invoke_subgraph_", "TranslationValidator",
    )),
    ("guards", ("build_guards", "guard_collective", "precompile_build_guards", "precompile_load_guards")),
    ("backend", ("backend_compile",)),
    ("aot", ("create_aot_dispatcher_function", "aot_", "min_cut_rematerialization_partition", "entire_backward_compile")),
    ("passes", ("pass.", "_recursive_pre_grad_passes", "_recursive_joint_graph_passes", "_recursive_post_grad_passes", "fx.")),
    ("codegen", (
        "code_gen", "GraphLowering.codegen", "GraphLowering.compile_to_", "Scheduler.", "PythonWrapperCodegen", "CppWrapper",
        "generate_kernel_code_from_nodes", "AotCodeCompiler",
    )),
    ("lowering", ("compile_fx", "inductor_compile", "fx_codegen_", "GraphLowering.run", "additional_fake_tensor_prop")),
    ("compiler", ("compile_file", "PyCodeCache.", "async_compile", "reload_kernel_in_parent", "aoti_")),
    ("autotuning", ("CachingAutotuner.", "StaticAutotunerFuture", "benchmark_")),
    ("cache", ("inductor_codecache_", "CacheBase.", "FxGraphCache", "AOTAutogradCache", "TritonBundler", "GraphPickler")),
]  # fmt: skip


@dataclass(slots=True)
class _Span:
    """A phase from its beginning to its end; times in seconds since the epoch."""

    name: str
    function: str | None
    start: float
    order: int
    thread: int | None
    end: float = 0.0
    record: CompileRecord | None = None

    @property
    def seconds(self) -> float:
        return self.end - self.start


def compile_time(records: CompileRecords, frames: dict[int, str], unread: Counter[str]) -> CompileTime | None:
    """The compile time of a recording; None if torch recorded no times.

    `frames`: `CompileRecord.order` -> id of the frame; `unread` counts damaged events.
    """
    spans, unfinished = _pair(records, unread)
    if not spans and not unfinished:
        return None
    phases: dict[tuple[str, PhaseKind, str], CompilePhase] = {}
    outermost: list[_Span] = []
    spans.sort(key=lambda s: (s.thread or 0, s.start, -s.end, s.order))
    for _, of_thread in groupby(spans, key=lambda s: s.thread):
        around: list[tuple[_Span, CompilePhase]] = []  # those that contain the next one, the innermost last
        for span in of_thread:
            while around and around[-1][0].end < span.end:
                around.pop()
            kind = _kind(span.name) or (around[-1][1].kind if around else "other")
            frame = frames.get(span.record.order) if span.record is not None else None
            new = CompilePhase(name=span.name, kind=kind, function=span.function, frame=frame)
            phase = phases.setdefault((span.name, kind, frame or ""), new)
            phase.count += 1
            phase.self_seconds += span.seconds
            if around:
                around[-1][1].self_seconds -= span.seconds
            else:
                outermost.append(span)
            if all(outer.name != span.name for _, outer in around):
                phase.seconds += span.seconds
            around.append((span, phase))
    for phase in phases.values():
        phase.seconds, phase.self_seconds = round(phase.seconds, 6), max(0.0, round(phase.self_seconds, 6))
    elapsed, end = 0.0, -math.inf
    for span in sorted(outermost, key=lambda s: s.start):  # those of several threads overlap
        elapsed += max(0.0, span.end - max(span.start, end))
        end = max(end, span.end)
    return CompileTime(
        seconds=round(sum(s.seconds for s in outermost), 6),
        elapsed=round(elapsed, 6),
        phases=[phases[key] for key in sorted(phases)],
        unfinished=[s.name for s in unfinished],
    )


def _pair(records: CompileRecords, unread: Counter[str]) -> tuple[list[_Span], list[_Span]]:
    """The phases with a beginning and an end, and those that have not ended."""
    stacks: dict[Any, list[_Span]] = {}
    spans: list[_Span] = []
    for order, (event, record) in enumerate(records.timed):
        stack = stacks.setdefault((event.thread, event.compile_id), [])
        if event.begins:
            stack.append(_Span(event.name, event.function, event.at, order, event.thread))
            continue
        at = next((i for i in reversed(range(len(stack))) if stack[i].name == event.name), None)
        if at is None:
            unread["chromium_event: end of a phase without its beginning"] += 1
            continue
        span, *lost = stack[at:]
        del stack[at:]
        unread.update(["chromium_event: beginning of a phase without its end"] * len(lost))
        span.end, span.record = event.at, record
        if span.end < span.start:
            unread["chromium_event: phase that ends before it begins"] += 1
        else:
            spans.append(span)
    return spans, [span for stack in stacks.values() for span in stack]


def _kind(name: str) -> PhaseKind | None:
    if name.endswith(_AUTOTUNING):
        return "autotuning"
    return next((kind for kind, beginnings in _KINDS if name.startswith(beginnings)), None)


#: a block has at least this many operations, and occurs at least this often
_OPS, _TIMES = 3, 3
#: a name that is not an attribute
_NAME = re.compile(r"(?<![.\w])[A-Za-z_]\w*")

#: the outermost number in the path of a module, such as that of `layers.3.linear`
_LAYER = re.compile(r"^(?:.*?\.)?\d+(?=\.|$)")


def repeated_blocks(graphs: list[Graph], frames: list[Frame], cell_of: CellResolver) -> list[RepeatedBlock]:
    """The blocks that were compiled several times, the largest first."""
    blocks: list[RepeatedBlock] = []
    shown = {f.id for f in frames if f.status != "ignored"}
    same: dict[tuple[object, ...], list[Graph]] = {}
    for graph in graphs:
        nodes = _operations(graph)
        alike: dict[tuple[object, ...], list[tuple[str, list[Node]]]] = {}
        turns_of = groupby(nodes, lambda node: "".join(_LAYER.findall(node.module or "")))  # one path, or none
        for path, turn in [(path, [*run]) for path, run in turns_of if path]:
            alike.setdefault((path.rpartition(".")[0], *map(_token, turn)), []).append((path, turn))
        for found in alike.values():
            paths, turns = list(dict.fromkeys(path for path, _ in found)), [turn for _, turn in found]
            if len(turns) >= _TIMES and len(turns[0]) >= _OPS:
                blocks.append(_block(turns, [graph], paths, cell_of))
        if len(nodes) >= _OPS and graph.frame in shown:
            same.setdefault(tuple(map(_token, nodes)), []).append(graph)
    blocks += [_block([_operations(g) for g in equal], equal, [], cell_of) for equal in same.values() if len(equal) >= _TIMES]
    return sorted(blocks, key=lambda b: -b.count * b.ops)


def _operations(graph: Graph) -> list[Node]:
    """The nodes of a graph that compute something, in order."""
    return [n for n in graph.nodes if n.op.startswith("call_")]


def _token(node: Node) -> object:
    """What is compared of an operation; its code is without the names of values."""
    values = {node.name, *node.inputs}
    code = _NAME.sub(lambda m: "_" if m[0] in values else m[0], node.code)
    return node.op, node.target, node.file, node.line, node.dtype, tuple(node.shape or ()), code


def _block(turns: list[list[Node]], graphs: list[Graph], modules: list[str], cell_of: CellResolver) -> RepeatedBlock:
    share = sum(map(len, turns)) / sum(len(_operations(graph)) for graph in graphs)
    places = dict.fromkeys((n.file, n.line) for n in turns[0] if n.file is not None and not in_torch(n.file))
    functions = dict.fromkeys(f[0] for file, line in places if (f := function_at(file or "", line or 0)) is not None)
    file, line = next(iter(places), (None, None))
    return RepeatedBlock(
        count=len(turns), ops=len(turns[0]), share=round(share, 4), graphs=[g.id for g in graphs], modules=modules,
        functions=list(functions)[:5], file=file, line=line, cell=cell_of(file) if file is not None else None,
    )  # fmt: skip
