"""Chooses the frames to draw if there are too many, and folds the others.

Promises: failed, skipped and unfinished frames are chosen first, then recompiles, then all others but resume functions, then
resume functions, the empty ones last; every frame that is not drawn is counted in exactly one fold, and every fold has a
readable name.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from dynascope.compiler.report import Frame, plural
from dynascope.widgets.words import printable

#: at most this many folds hold the frames, or the resumes, of a single function; all other frames share one fold
NAMES = 10


@dataclass
class Folded:
    """Frames drawn as one box."""

    id: str
    name: str
    resumes: bool
    frames: list[Frame] = field(default_factory=list)

    def title(self) -> str:
        """`12 more resumes of f`."""
        return plural(len(self.frames), "more resume" if self.resumes else "more frame") + f" of {self.name}"


def fold(visible: list[Frame], keep: int) -> tuple[list[Frame], dict[str, Folded]]:
    """The `keep` frames to draw, in order, and the fold of each other frame, by the frame's id."""
    chosen = {f.id for f in sorted(visible, key=_weight)[:keep]}
    names = Counter(_key(f) for f in visible if f.id not in chosen)
    common = {key for key, _ in names.most_common(NAMES)}
    folds: dict[tuple[str, bool], Folded] = {}
    of: dict[str, Folded] = {}
    for frame in visible:
        if frame.id in chosen:
            continue
        key = _key(frame) if _key(frame) in common else ("other functions", False)
        if key not in folds:
            folds[key] = Folded(f"fold{len(folds)}", printable(key[0], 200), key[1])
        folds[key].frames.append(frame)
        of[frame.id] = folds[key]
    return [f for f in visible if f.id in chosen], of


def _key(frame: Frame) -> tuple[str, bool]:
    """Key of a frame's fold: frames of one function are folded together, separately from its resume functions."""
    return frame.name or frame.code_name, frame.kind == "resume"


def _weight(frame: Frame) -> int:
    if frame.status in ("failed", "skipped", "unfinished"):
        return 0
    if frame.recompile_of:
        return 1
    return 2 if frame.kind != "resume" else 4 if frame.status == "empty" else 3
