"""How the frames of a report are linked: which frame called which, and which resume function continues which frame.

A live run knows from which code object a resume function was made; a trace file has only names and lines.  Both have the stack
at the start of a compile, whose entries are names of functions and lines.  If a function has several frames, the caller is the
one whose break is at the entry's line.
"""

from __future__ import annotations

from dynascope.compiler.builder.breaks import BreakTable
from dynascope.compiler.builder.compile_records import CompileRecord
from dynascope.compiler.builder.events.schema import Location, ResumeMade
from dynascope.compiler.report import Frame, Resume
from dynascope.compiler.source.code import is_resume, user_name
from dynascope.compiler.source.lines import character_column
from dynascope.compiler.source.origin import in_torch

#: (`CompileRecord.reset_period`, name of a function, its file)
_Function = tuple[tuple[int | None, int], str, str]


class Links:
    """Links each frame to its caller and to the frame that it continues; both were compiled before it."""

    def __init__(self, records: list[CompileRecord], breaks: BreakTable) -> None:
        self.breaks = breaks
        #: processes whose stacks lack the innermost callers
        self._cut = cut_stacks(records)
        #: frames by the compiler's name of the function, which is the name in a stack
        self._named: dict[_Function, list[Frame]] = {}
        #: frames by the user's name of the function, and the line of the break after which it resumes
        self._left: dict[tuple[_Function, int | None], list[Frame]] = {}
        #: a function that was called at a break -> the frame with the break, and the line of the break
        self._called: dict[_Function, tuple[Frame, int]] = {}
        #: uid of a resume function's code -> the frames for which Dynamo made the function, with the events
        self._made: dict[int | None, list[tuple[Frame, ResumeMade]]] = {}

    def link(self, record: CompileRecord, frame: Frame) -> ResumeMade | None:
        """Set the frame's caller and, for a resume function, the frame that it continues.

        Returns the `ResumeMade` event of a resume function; None for any other frame, or if the event is not recorded.
        """
        self._call(record, frame)
        if frame.kind != "resume":
            return None
        name = user_name(frame.code_name)
        # branches that join share one resume function: each of its frames continues the frame that called it
        makers = self._made.get(record.code.uid if record.code else None, [])
        before, made = next((m for m in reversed(makers) if m[0].id == frame.parent), makers[-1] if makers else (None, None))
        if before is not None and made is not None:
            frame.continues = before.id
            if user_name(before.code_name) == name:
                frame.name = before.name
            line = made.position.line or frame.line
            frame.resume = Resume(
                line=line,
                column=character_column(frame.file, line, made.position.column),
                locals=[n for n in made.receives if not n.startswith("__")],
                stack=made.stack,
            )
            frame.end_line = made.original.end_line
        else:
            continued = [f.id for f in self._left.get(((record.reset_period, name, frame.file), frame.line), [])]
            frame.continues = frame.parent if frame.parent in continued or not continued else continued[-1]
            frame.resume = Resume(line=frame.line)
        if record.process in self._cut:
            frame.parent, frame.called_from = frame.continues, frame.line
        if frame.continues is not None:
            frame.break_ = self.breaks.resumed(frame.continues, frame.id)
        return made

    def add(self, record: CompileRecord, frame: Frame) -> None:
        """Remember a frame for the links of later frames; its breaks must have been recorded."""
        for made in record.resumes:
            self._made.setdefault(made.resume.uid, []).append((frame, made))
        self._named.setdefault((record.reset_period, frame.code_name, frame.file), []).append(frame)
        line = self.breaks.left_at(frame.id)
        left = (record.reset_period, user_name(frame.code_name), frame.file)
        self._left.setdefault((left, line), []).append(frame)
        callee = next((e for e in self.breaks.calls_of(frame.id) if not in_torch(e.file)), None)
        if callee is not None and line is not None:
            self._called[(record.reset_period, callee.function, callee.file)] = (frame, line)

    def _call(self, record: CompileRecord, frame: Frame) -> None:
        if record.process in self._cut:
            call = self._called.pop((record.reset_period, frame.code_name, frame.file), None)
            if call is not None:
                frame.parent, frame.called_from = call[0].id, call[1]
            return
        for entry in reversed(record.stack[:-1]):
            caller = self._standing(entry, record.reset_period)
            if caller is not None and caller is not frame:
                frame.parent, frame.called_from = caller.id, entry.line
                return

    def _standing(self, entry: Location, period: tuple[int | None, int]) -> Frame | None:
        """The latest frame that fits a stack entry by name and lines, and if possible by its break; None if none fits."""
        line, candidates = entry.line, self._named.get((period, entry.function, entry.file), [])
        around = [f for f in candidates if f.line <= line <= (f.end_line or f.line)]
        if not around and len({f.line for f in candidates}) == 1:
            # a resume function in a loop goes back to lines before its own, and the end of a function is not always known
            around = [f for f in candidates if f.kind == "resume" or f.end_line is None]
        # of several versions, prefer those that are not compiled, and those whose break is at this line: compiled code calls
        # other functions only there
        standing = [f for f in around if f.status not in ("compiled", "empty") or self.breaks.left_at(f.id) == line]
        return next(reversed(standing or around), None)


def cut_stacks(records: list[CompileRecord]) -> set[int | None]:
    """The processes whose stacks lack the innermost callers, because torch left out more frames than its own.

    Resume functions show which these are: the caller of a resume function must be the frame that it continues or, with nested
    graph breaks, another compiled frame.
    """
    known = {(r.process, r.name, r.file) for r in records}
    processes = set()
    for record in records:
        if record.stack and is_resume(record.name):
            caller = record.stack[-2] if len(record.stack) > 1 else Location("", 0, "")
            same = user_name(caller.function) == user_name(record.name)
            if not same and (record.process, caller.function, caller.file) not in known:
                processes.add(record.process)
    return processes
