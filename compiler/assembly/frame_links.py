"""How the frames of a report hang together: who called whom, and which resume function continues which frame.

A live run tells from which code object a resume function was made; a file tells names and lines.  Both print the
stack at the start of a compile, which names functions: of several frames of one function, the break tells which one
stands at that line.
"""

from __future__ import annotations

from typing import Any

from dynascope.compiler.assembly.breaks import BreakTable
from dynascope.compiler.assembly.compile_records import Draft, Event
from dynascope.compiler.report import Frame, Resume
from dynascope.compiler.source import places

#: (process, name of a function, its file)
_Function = tuple[int | None, str, str]


class Links:
    """Links each frame to those that were compiled before it."""

    def __init__(self, drafts: list[Draft], breaks: BreakTable) -> None:
        self.breaks = breaks
        #: processes whose stacks lack the innermost callers
        self._cut = cut_stacks(drafts)
        #: by name in the compiler: a stack names no more than this, and a line
        self._named: dict[_Function, list[Frame]] = {}
        #: by the user's name and the line from which they go on in a resume function
        self._left: dict[tuple[_Function, int | None], list[Frame]] = {}
        #: a function that was called from a break -> the frame that did so, and its line
        self._called: dict[_Function, tuple[Frame, int]] = {}
        #: resume function's code -> the frames that have made it
        self._made: dict[int, list[tuple[Frame, Event]]] = {}

    def link(self, draft: Draft, frame: Frame) -> Event | None:
        """Fill in who called the frame and, for a resume function, which one it continues; the event that made that."""
        self._call(draft, frame)
        if frame.kind != "resume":
            return None
        name = places.user_name(frame.code_name)
        # branches that join have one resume function: the frame that called it is the one that it continues
        makers = self._made.get(draft.code.get("uid", -1), [])
        before, made = next((m for m in reversed(makers) if m[0].id == frame.parent), makers[-1] if makers else (None, None))
        if before is not None and made is not None:
            frame.continues = before.id
            if places.user_name(before.code_name) == name:
                frame.name = before.name
            line, column = made["resume_at"][0] or frame.line, made["resume_at"][1]
            frame.resume = Resume(
                line=line,
                column=places.character_column(frame.file, line, column),
                locals=[n for n in made["receives"] if not n.startswith(("__", "___"))],
                stack=made["stack"],
            )
            frame.end_line = made["original"]["end_line"]
        else:
            told = [f.id for f in self._left.get(((draft.process, name, frame.file), frame.line), [])]
            frame.continues = frame.parent if frame.parent in told or not told else told[-1]
            frame.resume = Resume(line=frame.line)
        if draft.process in self._cut:
            frame.parent, frame.called_from = frame.continues, frame.line
        if frame.continues is not None:
            frame.break_ = self.breaks.resumed(frame.continues, frame.id)
        return made

    def add(self, draft: Draft, frame: Frame) -> None:
        """Remember a frame whose end is known."""
        for made in draft.resumes:
            self._made.setdefault(made["resume"]["uid"], []).append((frame, made))
        self._named.setdefault((draft.process, frame.code_name, frame.file), []).append(frame)
        line = self.breaks.left_at(frame.id)
        left = (draft.process, places.user_name(frame.code_name), frame.file)
        self._left.setdefault((left, line), []).append(frame)
        callee = next((e for e in self.breaks.calls_of(frame.id) if not places.in_torch(e.file)), None)
        if callee is not None and line is not None:
            self._called[(draft.process, callee.function, callee.file)] = (frame, line)

    def _call(self, draft: Draft, frame: Frame) -> None:
        if draft.process in self._cut:
            found = self._called.pop((draft.process, frame.code_name, frame.file), None)
            if found is not None:
                frame.parent, frame.called_from = found[0].id, found[1]
            return
        for entry in reversed(draft.stack[:-1]):
            caller = self._standing(entry, draft.process)
            if caller is not None and caller is not frame:
                frame.parent, frame.called_from = caller.id, entry["line"]
                return

    def _standing(self, entry: dict[str, Any], process: int | None) -> Frame | None:
        """The frame that a stack entry stands in; None where several functions of that name could be meant."""
        line, candidates = entry["line"], self._named.get((process, entry["function"], entry["file"]), [])
        around = [f for f in candidates if f.line <= line <= (f.end_line or f.line)]
        if not around and len({f.line for f in candidates}) == 1:
            # a resume function in a loop goes back to lines before it; where a function ends is not always known
            around = [f for f in candidates if f.kind == "resume" or f.end_line is None]
        # several versions of a function: compiled code calls others at its break alone, and the latest has the say
        standing = [f for f in around if f.status not in ("compiled", "empty") or self.breaks.left_at(f.id) == line]
        return next(reversed(standing or around), None)


def cut_stacks(drafts: list[Draft]) -> set[int | None]:
    """Processes whose stacks lack the innermost callers, because torch left out more frames than it has of its own.

    A resume function shows it: the very frame that it continues calls it, or with nested graph breaks another compiled one.
    """
    known = {(d.process, d.code.get("name"), d.code.get("file")) for d in drafts}
    found = set()
    for draft in drafts:
        name = str(draft.code.get("name"))
        if draft.stack and places.is_resume(name):
            caller = draft.stack[-2] if len(draft.stack) > 1 else {"function": "", "file": ""}
            same = places.user_name(caller["function"]) == places.user_name(name)
            if not same and (draft.process, caller["function"], caller["file"]) not in known:
                found.add(draft.process)
    return found
