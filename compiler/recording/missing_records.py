"""Detects records that are missing from a log.

torch writes certain records for each compile, and the compile's metrics count what the other records show.  So the log itself
shows that a record was deleted, for example if a compile has no start record, if compile ids skip a number, or if the metrics
count guards that are not recorded.  The rules were tested on logs of torch 2.3 to 2.15; a kind of record that a release does
not write is not reported.

Some losses cannot be detected, such as the metrics of a backward graph that a backend other than Inductor compiled (the graph
looks pending), or the graph break of a frame that was then skipped or failed, if the error does not mention the break (the
frame looks empty).

A compile without an end is not counted here: its frame is shown as unfinished.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from dynascope.compiler.events.record_kinds import record_compile_id
from dynascope.compiler.recording.log_reader import LogRecord

_SYMBOL = re.compile(r"\bs\d+\b")
_CACHES = re.compile(r"fx_graph_cache_(?:hit|miss|bypass)$")
#: matches the text of an error if the frame was skipped because of a graph break, which torch records before the error
_SKIPS = re.compile(r"^  Explanation: [^\n]*Skipping the frame", re.M)


@dataclass(slots=True)
class _Compile:
    """What is recorded of one compile."""

    #: number of records of each kind (`_kind`); artifacts count under their own names
    kinds: Counter[str] = field(default_factory=Counter)
    metrics: dict[str, Any] | None = None
    #: symbols of sizes in the graph
    used: set[str] = field(default_factory=set)
    #: symbols whose creation is recorded
    created: set[str] = field(default_factory=set)
    #: whether the compile's error says that the frame is skipped because of a graph break, which torch records, too
    skipped: bool = False
    #: whether another compile has started in the process after this one
    over: bool = False
    #: number of graphs into which DDPOptimizer split the graph
    split_into: int = 0


class MissingRecords:
    """Finds out which records the logs of one run lack; `add` gets all records in the order in which they are read."""

    def __init__(self) -> None:
        self._missing: Counter[str] = Counter()
        #: process -> compile id -> the compile, since the latest `torch._dynamo.reset()`
        self._compiles: dict[int, dict[str, _Compile]] = {}
        #: processes whose torch records the creation of symbols
        self._with_symbols: set[int] = set()
        #: processes whose torch records the bytecode of resume functions
        self._with_bytecode: set[int] = set()
        #: processes that use AOTAutograd's cache
        self._with_aot_caches: set[int] = set()
        #: processes whose log has the version of torch: torch 2.12 or later wrote it
        self._with_version: set[int] = set()

    def add(self, record: LogRecord, process: int) -> None:
        """Register the next record of a process."""
        name, fields = record.name, record.metadata[record.name]
        if name == "artifact":
            name = fields["name"]
            if name == "torch_version":
                self._with_version.add(process)
        compile_id = record_compile_id(record.metadata)
        if compile_id is None or name == "chromium_event" or not (record.read or name == "dynamo_guards"):
            return
        compiles = self._compiles.setdefault(process, {})
        known = compiles.get(compile_id)
        if name == "dynamo_start":
            if not record.metadata.get("attempt") and known is not None and known.metrics is not None:
                self._end_run(process)  # torch._dynamo.reset(): compile ids start again
                compiles, known = self._compiles.setdefault(process, {}), None
            for other in compiles.values():
                other.over = True
        if known is None:
            known = compiles[compile_id] = _Compile()
        known.kinds[_kind(name)] += 1
        self._look(known, name, fields, record, process)

    def _look(self, known: _Compile, name: str, fields: dict[str, Any], record: LogRecord, process: int) -> None:
        known.over = known.over and name != "dynamo_start"
        if name == "compilation_metrics" and fields.get("is_forward") is not False:
            known.metrics = fields
        elif name == "create_symbol":
            known.created.add(fields["symbol"])
            self._with_symbols.add(process)
        elif name == "dynamo_output_graph":
            known.used |= set(_SYMBOL.findall(str(fields.get("sizes"))))
        elif name == "dynamo_error":
            known.skipped = _SKIPS.search(record.payload or "") is not None
        elif name.endswith("_BYTECODE"):
            self._with_bytecode.add(process)
        elif name.startswith("aotautograd_cache_"):
            self._with_aot_caches.add(process)
        elif name == "optimize_ddp_split_graph":
            known.split_into = len(set(re.findall(r"\bself\.(submod_\d+)\(", record.payload or "")))

    def problems(self) -> Counter[str]:
        """The number of compiles that lack each kind of record, and of missing compiles; call it once all records are added."""
        for process in list(self._compiles):
            self._end_run(process)
        return Counter({f"missing: {what}": count for what, count in self._missing.items() if count})

    def _end_run(self, process: int) -> None:
        compiles = self._compiles.pop(process, {})
        for compile_id, known in compiles.items():
            self._missing.update(self._lacks(compile_id, known, process))
        self._missing["compile"] += _left_out(compiles)

    def _lacks(self, compile_id: str, known: _Compile, process: int) -> list[str]:
        """The records that one compile lacks."""
        kinds, lacks = known.kinds, []
        ending = kinds["dynamo_cpp_guards_str"] or kinds["dynamo_error"]
        if known.metrics is None:
            if ending and not kinds["dynamo_start"]:  # torch.export(strict=True) has neither a start nor an ending
                lacks.append("dynamo_start")
            return [*lacks, "compilation_metrics"] if ending and known.over else lacks
        metrics = known.metrics
        refused = kinds["recompile_reasons"] and metrics.get("co_name") is None
        if not kinds["dynamo_start"] and not refused:
            lacks.append("dynamo_start")
        if not kinds["recompile_reasons"] and not compile_id.endswith("/0") and "/" in compile_id:
            lacks.append("recompile_reasons")
        if metrics.get("guard_count") is not None:
            lacks += ["guards"] * (not kinds["dynamo_cpp_guards_str"] and not kinds["dynamo_guards"])
        had_graph = bool(metrics.get("graph_op_count")) or metrics.get("backend_compile_time_s") is not None
        lacks += ["dynamo_output_graph"] * (had_graph and not kinds["dynamo_output_graph"])
        breaks = [r for r in metrics.get("restart_reasons") or () if "\n  Explanation:" in r]
        if len(breaks) > kinds["dynamo_graph_break_reason"] or (known.skipped and not kinds["dynamo_graph_break_reason"]):
            lacks.append("dynamo_graph_break_reason")
        if process in self._with_version and metrics.get("fail_type") is not None and not refused and not kinds["dynamo_error"]:
            lacks.append("dynamo_error")
        lacks += self._later_stages(known, process)
        return lacks

    def _later_stages(self, known: _Compile, process: int) -> list[str]:
        kinds, lacks = known.kinds, []
        training = kinds["aot_joint_graph"] or kinds["aot_backward_graph"]
        if (training or (kinds["aot_forward_graph"] and process in self._with_version)) and not kinds["aot_backward_graph"]:
            lacks.append("aot_backward_graph")
        if training and not kinds["aot_forward_graph"]:
            lacks.append("aot_forward_graph")
        if kinds["aot_forward_graph_fw_metadata"] > kinds["aot_forward_graph"] + kinds["aot_inference_graph"] and not training:
            lacks.append("aot_inference_graph")
        if kinds["caches"] and kinds["caches"] != kinds["inductor_output_code"]:
            lacks.append("inductor_output_code" if kinds["inductor_output_code"] < kinds["caches"] else "fx_graph_cache")
        if kinds["caches"] and process in self._with_aot_caches & self._with_version and not kinds["aot caches"]:
            lacks.append("aotautograd_cache")
        if process in self._with_symbols | self._with_version and known.used - known.created:
            lacks.append("create_symbol")
        if known.split_into > kinds["optimize_ddp_split_child"]:
            lacks.append("optimize_ddp_split_child")
        resume = str((known.metrics or {}).get("co_name")).startswith("torch_dynamo_resume_in_")
        if resume and process in self._with_bytecode | self._with_version:
            compiled = (known.metrics or {}).get("guard_count") is not None
            lacks += ["bytecode"] * (not kinds["ORIGINAL"] or (compiled and not kinds["MODIFIED"]))
        return lacks


def _kind(name: str) -> str:
    if name.endswith("_BYTECODE"):
        return name.split("_")[-2]
    if name.startswith("aotautograd_cache_"):
        return "aot caches"
    return "caches" if _CACHES.match(name) else name


def _left_out(compiles: dict[str, _Compile]) -> int:
    """How many compile ids are skipped: frames are numbered from 0, and so are the compiles of each frame."""
    frames: dict[int, set[int]] = {}
    for compile_id in compiles:  # 3/0, or !1/3/0 in compiled autograd, which shares the numbers of frames
        frame, _, number = compile_id.rpartition("/")
        frame = frame.rpartition("/")[2]
        if frame.isdigit() and number.isdigit():
            frames.setdefault(int(frame), set()).add(int(number))
    missing = max(frames, default=-1) + 1 - len(frames)
    return missing + sum(max(compiled) + 1 - len(compiled) for compiled in frames.values())
