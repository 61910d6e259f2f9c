"""Recompiles: why compiled code could not be used again, which line made the guard that failed, and in which call it failed."""

from __future__ import annotations

import re

from dynascope.compiler.builder import guard_parser
from dynascope.compiler.builder.compile_records import CompileRecord
from dynascope.compiler.builder.guards.compiled_version import SIZE, Version
from dynascope.compiler.builder.guards.places import Place, Places, callers
from dynascope.compiler.report import FailedGuard, Frame, Recompile
from dynascope.compiler.source.lines import CellResolver

_STACK = re.compile(r'^ *File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>\S+)', re.M)
_LIMIT = re.compile(r'"(?P<name>(?:accumulated_)?recompile_limit)": (?P<value>\d+)')
#: of torch 2.9, and of later releases
_REFUSED = re.compile(
    r"(?P<old>(?:accumulated_)?recompile_limit) reached"
    r"|exceeding the (?P<name>\w+) cache size limit \(currently set to (?P<value>\d+)\)"
)


class Recompiles:
    """Makes the recompiles of a report; versions are added in the order in which they were compiled."""

    def __init__(self, cell_of: CellResolver) -> None:
        self.cell_of = cell_of
        #: by world (see `CompileRecord`) and compile id
        self._versions: dict[tuple[tuple[int | None, int], str | None], Version] = {}

    def add(self, record: CompileRecord, version: Version) -> None:
        self._versions[record.world, record.compile_id] = version

    def recompile(self, record: CompileRecord, frame: Frame, new: Version, before: Frame | None) -> Recompile:
        """The recompile that led to a frame; if the compiler refused it, the frame runs eagerly."""
        metrics = record.metrics
        began = record.started or record.unfinished
        refusal = None if began else _REFUSED.search(str(metrics.get("fail_reason")))
        refused_by = None if began else refusal["name"] or refusal["old"] if refusal else "recompile_limit"
        limits = {m["name"]: int(m["value"]) for m in _LIMIT.finditer(str(metrics.get("dynamo_config")))}
        texts = guard_parser.recompile_texts(record.recompile_text or "")
        entries_before = metrics.get("cache_size") if refused_by is None else len(texts)
        return Recompile(
            frame=frame.id, of=before.id if before else None, reasons=[guard_parser.without_stack(t) for t in texts],
            failed_guards=self.failed(record, texts, new),
            stack=callers(record.callers, self.cell_of), call=record.call,
            entries=None if entries_before is None else entries_before + (frame.status == "compiled"),
            limit=int(refusal["value"]) if refusal and refusal["value"] else limits.get(refused_by or "recompile_limit"),
            refused_by=refused_by,
        )  # fmt: skip

    def failed(self, record: CompileRecord, texts: list[str], new: Version) -> list[FailedGuard]:
        """The failed guards, with values and source lines from the versions that they belong to and from the new one."""
        guards = [guard_parser.failed_guard(guard_parser.without_stack(text)) for text in texts]
        #: sizes in the failing call, as the failed tensor checks print them
        sizes = {f"{g.source}.size()[{g.dimension}]": g.now for g in guards if g.kind == "size"}
        for guard, text in zip(guards, texts, strict=True):
            version = guard_parser.COMPILE.match(text)
            guard.compile_id = version["id"] if version else None
            old = self._versions.get((record.world, guard.compile_id), Version())
            printed_condition, _ = guard_parser.split_comment(guard_parser.COMPILE.sub("", guard_parser.without_stack(text)))
            condition = guard_parser.user_expression(printed_condition)
            about = str(guard.source)
            if guard.kind == "type":
                guard.before, guard.now = old.tree.types.get(about), new.tree.types.get(about)
            elif guard.kind == "length":
                guard.actual = new.length(about)
            elif guard.kind == "expression":
                values = {m[0]: new.value(m[0]) or sizes.get(m[0]) for m in SIZE.finditer(condition)}
                guard.actual = ", ".join(f"{name} is {value}" for name, value in values.items() if value) or None
            elif guard.kind in ("value", "range", "minimum"):
                guard.actual = new.value(about) or sizes.get(about)
            place, printed = old.place(guard, condition) or Place(), self.printed(text)
            if len(printed.stack) > len(place.stack):
                place = printed if place.origin == "unknown" else place._replace(stack=printed.stack)
            if place.at is None and guard.kind == "size":
                place = new.first_use(guard)
            guard.at, guard.stack, guard.origin, guard.asked_by = place.at, place.calls, place.origin, place.asked_by
        return guards

    def printed(self, text: str) -> Place:
        """The place that torch prints with a reason: the whole stack after it, or the innermost line beside it."""
        places = Places(self.cell_of)
        stack = tuple(places.entry(m["file"], int(m["line"]), m["function"]) for m in _STACK.finditer(text))
        if stack:
            return Place(stack, "code")
        beside = places.printed(guard_parser.split_comment(text)[1])
        return beside[0] if len(beside) == 1 else Place()
