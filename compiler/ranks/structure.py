"""Reduces the report of one rank to hashes of its steps, so that equal ranks are found without reading all reports.

Ranks with equal hashes compiled the same code.  The hashes are made from functions, operations, shapes, breaks, skips,
collectives and what failed guards check.  They leave out times, ids, folders, addresses, device numbers, sizes behind symbols,
and the values that guards compare.  `Normal` replaces these in texts: devices, process groups without a name and symbols are
numbered in the order of their first use, so that rank 3, which uses `cuda:3` throughout, equals rank 0, which uses `cuda:0`; a
rank that uses two devices equals neither.

The collectives of a graph are read from the graph's printed code, in order: from AOTAutograd's graphs, which have shapes and
the backward, or if the forward graph has no collectives, from Dynamo's graph.  The order in Inductor's code may differ.

The file that a rank writes has one line with the rank and its hashes, and one line with its Report.

A file is replaced as a whole, so a reader sees either the old or the new one, and a rank that is killed leaves the last one
that it wrote.  If two ranks are equal, the Report of only one of them is read.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from dynascope.compiler.ranks.report import Collective, Rank
from dynascope.compiler.report import Break, Frame, Graph, Node, Part, Recompile, Report, ReportData, first_line, printed_sizes
from dynascope.compiler.report.data import load

#: operations of torch.ops._c10d_functional that start no collective
_HELPERS = frozenset({"wait_tensor", "_wrap_tensor_autograd", "_wait_tensor"})
_CALL = re.compile(r"(?P<module>_?(?:c10d_functional(?:_autograd)?))\.(?P<kind>\w+?)(?:\.default|\.out)?\((?P<args>[^\n]*)")
_STRINGS = re.compile(r"['\"]([\w:.-]+)['\"]")
_TYPE = re.compile(r"(?P<name>\w+): *['\"](?P<dtype>\w+)\[(?P<shape>[^\]]*)\]")


#: process groups: torch's name -> (the name that the program gave it, the ranks)
GroupNames = dict[str, tuple[str | None, list[int] | None]]


def collectives(graph: Graph, names: GroupNames | None = None) -> list[Collective]:
    """The collectives of one graph, forward then backward."""
    found = []
    forward = graph.aot_forward or ""
    for text in (forward if "c10d_functional" in forward else graph.code, graph.aot_backward or ""):
        for line in text.splitlines() if "c10d_functional" in text else ():
            if not line.lstrip().startswith("#") and (collective := called(line)) is not None:
                collective.group_name, collective.ranks = (names or {}).get(collective.group or "", (None, None))
                collective.backward = text is graph.aot_backward
                found.append(collective)
    return found


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
        shape=printed_sizes(typed["shape"]) if typed else None,
    )


def describe(collective: Collective) -> str:
    """A collective in one line: `all_reduce(sum) over mesh_tp of f32[8, 3]`."""
    reduction = f"({collective.reduction})" if collective.reduction else ""
    group = collective.group_name or ("all ranks" if collective.group == "0" else f"group {collective.group}")
    over = f" over {group}" if collective.group else ""
    shape = f" of {collective.dtype}[{', '.join(map(str, collective.shape))}]" if collective.shape is not None else ""
    return f"{collective.kind}{reduction}{over}{shape}"


#: torch's name of the default process group
WORLD = "0"
_PATH = re.compile(r"(?:[A-Za-z]:)?(?:[\\/][\w.+@~<>-]+)+[\\/](?P<name>[\w.+@<>-]+)")
_VOLATILE = re.compile(
    r"0x[0-9a-fA-F]+"  # an address
    r"|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"  # a UUID
    r"|\b\d{9,}\b"  # an id(), a time
    r"|\b(?P<word>pid|PID|process|thread|rank|port)(?P<sign>[ =:]+)\d+"
)
_DEVICE = re.compile(r"\b(?P<kind>cuda|xpu|hpu|npu|mtia|privateuseone|cpu):(?P<index>\d+)\b|index=(?P<alone>\d+)\b")
_SYMBOL = re.compile(r"\b(?P<kind>[suf]|zuf|z)(?P<number>\d+)\b")
_COLLECTIVE = re.compile(r"_c10d_functional|distributed")
_QUOTED = re.compile(r"(?P<quote>['\"])(?P<name>[\w:.-]+)(?P=quote)(?=\s*\))")
_INTEGER = re.compile(r"(?<![\w.'\"#])-?\d+(?![\w.'\"#])")


class Normal:
    """Normalizes the texts of one rank, which must come in order.

    A process group gets the name that the program gave it, if that is unique: unlike torch's name, it is the same on all ranks.
    """

    def __init__(self, names: GroupNames | None = None) -> None:
        named = {name: called for name, (called, _) in (names or {}).items() if called and not called.startswith("undefined")}
        self._groups = {name: called for name, called in named.items() if list(named.values()).count(called) == 1}
        self._devices: dict[str, str] = {}
        self._symbols: dict[str, str] = {}

    def text(self, text: str) -> str:
        """The text without folders; addresses, ids and the like (`_VOLATILE`) and device numbers are replaced."""
        text = _PATH.sub(lambda m: m["name"], text) if "/" in text or "\\" in text else text
        text = _VOLATILE.sub(lambda m: f"{m['word']}{m['sign']}#" if m["word"] else "#", text)
        return _DEVICE.sub(self._device, text) if ":" in text or "index=" in text else text

    def code(self, code: str) -> str:
        """The code of a node of an FX graph: like `text`, with symbols and names of process groups replaced, too."""
        code = _SYMBOL.sub(self._symbol, self.text(code))
        if _COLLECTIVE.search(code):
            code = _QUOTED.sub(lambda m: f"'{self.group(m['name'])}'", code)
        return code

    def size(self, size: int | str) -> int | str:
        """A size in a shape, with symbols replaced if it is an expression."""
        return size if isinstance(size, int) else _SYMBOL.sub(self._symbol, size)

    def group(self, name: str) -> str:
        """A process group's name: the one that the program gave it; else "world" (the default group), "group 1", ..."""
        if name == WORLD:
            return self._groups.get(name, "world")
        if name not in self._groups:
            self._groups[name] = f"group {sum(v.startswith('group ') for v in self._groups.values()) + 1}"
        return self._groups[name]

    def device(self, device: str | None) -> str | None:
        return None if device is None else _DEVICE.sub(self._device, device)

    def _device(self, match: re.Match[str]) -> str:
        kind, index = match["kind"], match["index"] or match["alone"]
        if kind == "cpu":
            return "cpu"
        # `index=3` is from `device(type='cuda', index=3)`, another way to write "cuda:3"
        number = self._devices.setdefault(index, f"#{len(self._devices)}")
        return f"{kind}:{number}" if kind else f"index={number}"

    def _symbol(self, match: re.Match[str]) -> str:
        kind = match["kind"]
        return self._symbols.setdefault(match[0], f"{kind}#{sum(name.startswith(kind) for name in self._symbols)}")


def basename(file: str) -> str:
    """The last part of a path of any operating system."""
    return re.split(r"[\\/]", file)[-1]


class StepHash(msgspec.Struct, array_like=True):
    """The hashes of one step of a rank."""

    #: what Dynamo compiled; `loose`: the same without the integers in the code of the graph, which `constants` has in order
    exact: str
    loose: str
    constants: list[int]
    #: the collectives in the forward and in the backward; "": there are none, or the backward was not compiled
    forward: str = ""
    backward: str = ""


def begins(steps: list[StepHash], other: list[StepHash]) -> bool:
    """Whether `other` begins with these steps, so that this can be a rank like `other` that was stopped early."""
    return len(steps) <= len(other) and all(
        mine.exact == theirs.exact and mine.forward in ("", theirs.forward) and mine.backward in ("", theirs.backward)
        for mine, theirs in zip(steps, other, strict=False)
    )


@dataclass
class Step:
    """One compile of a rank, and the parts of the report that belong to it."""

    frame: Frame
    graph: Graph | None
    #: the break that ended the step, with a graph or without, or because of which the frame was skipped or failed
    broken: Break | None
    recompile: Recompile | None


def steps_of(report: ReportData, *, finished: bool = True) -> list[Step]:
    """The steps of a report: its frames in order, thread by thread, without those that are ignored.

    `finished`: whether the rank ran to its end.  If not, unfinished compiles at the end are left out: the rank was stopped in
    them.
    """
    graphs, breaks = {g.id: g for g in report.graphs}, {hit.frame: b for b in reversed(report.breaks) for hit in b.hits}
    recompiles = {r.frame: r for r in report.recompiles}
    threads: dict[int | None, int] = {}
    frames = [f for f in report.frames if f.status != "ignored"]
    frames.sort(key=lambda f: threads.setdefault(f.thread if f.foreign else None, len(threads)))
    while frames and not finished and frames[-1].status == "unfinished":
        frames.pop()
    return [
        Step(frame=f, graph=graphs.get(f.graph or ""), broken=breaks.get(f.id), recompile=recompiles.get(f.id)) for f in frames
    ]


def hashes(report: ReportData, names: GroupNames, *, finished: bool = True) -> list[StepHash]:
    """The hashes of one rank's report."""
    normal, made = Normal(names), []
    for step in steps_of(report, finished=finished):
        facts, constants = step_facts(step, normal), list[int]()
        exact = hash_of(facts)
        facts["ops"] = [[*op[:-1], without_integers(op[-1], constants)] for op in facts["ops"]]
        found = collectives(step.graph) if step.graph else []
        stages = ([collective_facts(c, normal) for c in found if c.backward == backward] for backward in (False, True))
        made.append(StepHash(exact, hash_of(facts), constants, *(hash_of(stage) if stage else "" for stage in stages)))
    return made


def step_facts(step: Step, normal: Normal) -> dict[str, Any]:
    """The facts of one step that go into its hash."""
    frame, graph = step.frame, step.graph
    return {
        "function": function_facts(frame),
        "status": frame.status,
        "recompile": recompile_facts(step.recompile),
        "break": break_facts(step.broken),
        "reason": normal.text((frame.reason or "").partition("\n")[0]) if frame.status in ("skipped", "failed") else "",
        "end": graph.end if graph else None,
        "splits": len(graph.splits) if graph else 0,
        "ops": [[*op_facts(node, normal).values()] for node in graph.nodes] if graph else [],
    }


def function_facts(frame: Frame) -> list[Any]:
    return [basename(frame.file), frame.line, frame.name, frame.kind]


def op_facts(node: Node, normal: Normal) -> dict[str, Any]:
    """The facts of an operation; its code comes last."""
    return {
        "op": node.op, "dtype": node.dtype, "shape": sizes(node.shape, normal), "stride": sizes(node.stride, normal),
        "device": normal.device(node.device), "subclass": node.subclass, "code": normal.code(node.code),
    }  # fmt: skip


def break_facts(broken: Break | None) -> list[Any] | None:
    """The place, type and outcome of a break."""
    if broken is None:
        return None
    return [basename(broken.file), broken.line, broken.column, broken.type, broken.gb_ids, broken.outcome]


def recompile_facts(recompile: Recompile | None) -> list[list[Any]] | None:
    """What the failed guards check; the values differ between ranks and are left out."""
    return None if recompile is None else [[g.kind, g.source, g.dimension] for g in recompile.failed_guards]


def collective_facts(collective: Collective, normal: Normal) -> list[Any]:
    """The facts of a collective that must be equal on all ranks of its process group."""
    group = normal.group(collective.group) if collective.group else None
    return [collective.kind, collective.reduction, group, collective.dtype, sizes(collective.shape, normal)]


def sizes(values: Iterable[int | str] | None, normal: Normal) -> list[int | str] | None:
    return None if values is None else [normal.size(v) for v in values]


def hash_of(facts: Any) -> str:
    """A short hash of JSON-ready data."""
    return blake2b(json.dumps(facts, separators=(",", ":")).encode(), digest_size=8).hexdigest()


def without_integers(code: str, constants: list[int]) -> str:
    """The code with each integer replaced by `#`; the integers are appended to `constants`."""

    def note(match: re.Match[str]) -> str:
        constants.append(int(match[0]))
        return "#"

    return _INTEGER.sub(note, code)


SUFFIX = ".rank"
VERSION = 2
_Made = TypeVar("_Made")


class RankRecord(Part, kw_only=True, dict=True):
    """What one rank wrote.  Its hashes are read at once, its Report on demand."""

    #: version of the file
    dynascope_rank: int = VERSION
    rank: Rank
    steps: list[StepHash]
    names: GroupNames = {}
    versions: dict[str, str | None] = {}
    settings: dict[str, Any] = {}
    #: None: not recorded, as in a log
    environment: dict[str, str] | None = None
    world_size: int | None = None
    #: identifies the job: equal for all its ranks; None: not known
    job: str | None = None

    def reading(self, report: Callable[[], Report]) -> RankRecord:
        """Set the function that reads the Report; it raises ValueError or OSError if the Report is damaged."""
        self.report = report
        return self


def record_of(rank: Rank, report: Report, *, names: GroupNames | None = None, **known: Any) -> RankRecord:
    """The record of a rank with this report; also sets the fields of `rank` that the report determines.

    `known`: other fields of the record.
    """
    finished = rank.status == "finished"
    rank.seconds = [step.frame.compile_seconds for step in steps_of(report, finished=finished)]
    rank.compile_seconds = report.summary.compile_seconds
    rank.unread = dict(report.unread)
    if not finished:
        rank.compiling = next((f.name for f in reversed(report.frames) if f.status == "unfinished"), None)
    if report.error is not None and rank.error is None and not report.error.caught:
        rank.error = f"{report.error.type}: {first_line(report.error.message)}"
    found = hashes(report, names or {}, finished=finished)
    record = RankRecord(rank=rank, steps=found, names=names or {}, **{"versions": report.versions, **known})
    return record.reading(lambda: report)


def write(folder: Path, record: RankRecord, report: bytes) -> Path:
    """Write the file of a rank, such as `3-host-4711.rank`, which replaces the one written before, and return its path.

    Its name is unique for each process, even if jobs share a folder.  `report`: the record's Report, encoded.  Raises OSError
    if the file cannot be written.
    """
    rank = record.rank
    host = "".join(c if c.isalnum() or c in ".-" else "_" for c in rank.host or "host")
    path = folder / f"{rank.rank}-{host}-{rank.pid}{SUFFIX}"
    new = path.with_name(f".{path.name}.{threading.get_ident()}")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with new.open("wb") as file:
            file.write(encoded(msgspec.to_builtins(record)) + report)
        os.replace(new, path)
    finally:
        new.unlink(missing_ok=True)
    return path


def encoded(data: dict[str, Any]) -> bytes:
    """Data as one line of the file."""
    return json.dumps(data, separators=(",", ":")).encode() + b"\n"


def read(path: Path) -> RankRecord:
    """The record in the file of a rank; its Report is read on demand.  Raises ValueError if its line is damaged."""
    record = _line(path, 0, lambda data: load(RankRecord, data, "file of a rank", "dynascope_rank", VERSION))
    return record.reading(lambda: _line(path, 1, Report.from_dict))


def _line(path: Path, number: int, made: Callable[[Any], _Made]) -> _Made:
    with path.open("rb") as file:
        line = [file.readline() for _ in range(number + 1)][-1]
    try:
        return made(msgspec.json.decode(line))
    except (ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise ValueError(f"{path.name}: {first_line(str(error))}") from None
