"""The causes behind the breaks and recompiles of a large report, in words: what happens, what to do, what it costs.

Promises: a setting is presented as the compiler's advice, or with what a trial showed, never as a certain fix; a cost is either
measured or a number of hits.
"""

from __future__ import annotations

from dynascope.compiler.report import Break, Fix, Frame, Recompile, Report, plural, time_text
from dynascope.compiler.report.call_tree import package
from dynascope.compiler.report.causes import Cause
from dynascope.widgets.labels.advice import advice, cause_of, compiler_text, instead_of, was_refused
from dynascope.widgets.labels.fixes import considered, fixed_counts, fixed_words, is_refused
from dynascope.widgets.labels.recompiles import recompile_words
from dynascope.widgets.labels.words import Places, shorten

#: setting that the compiler's hints name -> what the breaks with such a hint have in common
_SETTINGS = {
    "capture_scalar_outputs": "a tensor's value is read in Python (`.item()`, `int()`, `tolist()`)",
    "capture_dynamic_output_shape_ops": "a result's shape depends on data (`nonzero`, `where`, `nms`)",
    "trace_autograd_ops": "`backward()` in the compiled code",
    "allow_rnn": "an RNN, GRU or LSTM",
}
#: torch's type of a break -> what happens, what to do, and what to do if `--fix` has tried that in vain
_TYPES = {
    "Data-dependent branching": (
        "an `if` or `while` depends on a tensor's value",
        "use `torch.where` or `torch.cond`, or move the check out of the compiled code",
        "move the check out of the compiled code",
    ),
    "Attempted to call function marked as skipped": (
        "a call into code that Dynamo does not trace",
        "move the call out of the compiled code, or wrap it with `torch.library.custom_op`",
        "move the call out of the compiled code",
    ),
    "Uninitialized nn.Module": (
        "a module is made in the compiled code",
        "make the module outside of the compiled code, before it runs",
    ),
}
#: the kind of a guard that failed -> what changed, what to do, and what to do if `--fix` has tried that in vain
_GUARDS = {
    "size": (
        "another size",
        "each size gets a version of its own; where sizes vary between calls, try `dynamic=True` or `mark_dynamic`",
        "each size gets a version of its own; give it few sizes, for example by padding",
    ),
    "value": (
        "another number or flag",
        "each value gets a version of its own; pass it as a tensor, or keep it the same between calls",
        "each value gets a version of its own; keep it the same between calls",
    ),
    "rank": ("another number of dimensions", "give it the same number of dimensions in each call"),
    "dtype": ("another dtype", "give it the same dtype in each call"),
    "stride": ("another memory layout", "give it the same layout in each call, for example with `.contiguous()`"),
    "type": ("another type or module", "pass the same class in each call: each class gets a version of its own"),
    "global state": ("a global setting of torch changed", "keep grad mode, autocast and the like the same around calls"),
    "expression": ("sizes are related in another way", "keep the sizes in the same relation in each call"),
    "range": (
        "a size outside the range that was compiled for",
        "mark the size with `torch._dynamo.mark_dynamic(x, dim, min=..., max=...)`",
    ),
}
_HINT = "the compiler's hint"
_TRACED_AGAIN = "tried: gone after a first call"
_LIMIT = "Dynamo recompile limit exceeded"


class CauseWords:
    """The words of one cause."""

    def __init__(self, report: Report, places: Places, cause: Cause) -> None:
        self.report, self.places, self.cause = report, places, cause
        known = {b.id: b for b in report.breaks}
        self.breaks: list[Break] = [known[id] for id in cause.breaks]
        frames = {f.id: f for f in report.frames}
        self.frames: list[Frame] = [frames[id] for id in cause.frames if id in frames]
        self.recompiles: list[Recompile] = [r for r in report.recompiles if r.frame in cause.frames and r.refused_by is None]

    def count(self) -> str:
        """How much the cause explains: `8 graph breaks`, `19 recompiles`."""
        return plural(len(self.breaks), "graph break") if self.breaks else plural(len(self.frames), "recompile")

    def title(self) -> str:
        """What happens at each place of the cause."""
        if self.cause.kind == "recompile":
            known = _GUARDS.get(self.cause.guard or "")
            return known[0] + self.example() if known else (recompile_words(self.recompiles[0]) or ["a guard failed"])[0]
        if self.cause.first_call:
            return "only in the first call"
        if self.cause.by_design:
            return "torch's own breaks, for training"
        if self.cause.consequence:
            return "may follow from an earlier break"
        if len({b.error for b in self.breaks}) == 1 and self.breaks[0].error:
            return compiler_text(self.breaks[0].error, 200)
        known_type = _TYPES.get(self.cause.type)
        return _SETTINGS.get(self.cause.setting or "") or (known_type[0] if known_type else compiler_text(self.cause.type, 200))

    def example(self) -> str:
        """For recompiles, what the first failed guard expected and what it got: `, such as boxes: 308, then 0`."""
        guard = self.recompiles[0].failed_guards[0] if self.recompiles and self.recompiles[0].failed_guards else None
        if guard is None or not guard.source:
            return ""
        values = f": {guard.before}, then {guard.now}" if guard.before and guard.now else ""
        return f", such as {compiler_text(guard.source, 60)}{compiler_text(values, 60)}"

    def fix(self) -> str:
        """What to do about the cause."""
        setting = self.cause.setting
        if setting is not None and self.is_refused():
            return f"{lower_first(instead_of(setting))} ({was_refused(setting)})"
        if setting is not None:
            return f"set `torch._dynamo.config.{setting} = True` ({self.tried() or _HINT})"
        titles = list(dict.fromkeys(fix.title for fix in self.considered() if fix.chosen))
        if titles:
            return f"{'; '.join(map(lower_first, titles[:2]))} (tried: proved)"
        if self.cause.kind == "recompile":
            return self.untried(_GUARDS.get(self.cause.guard or "", ("", "keep what the guard checks the same in each call")))
        if self.cause.first_call:
            return f"call it once in eager mode before it is compiled ({_TRACED_AGAIN})"
        if self.cause.by_design:
            return advice(self.report, self.breaks[0])[0]
        if self.cause.consequence:
            return "fix the others first: the compiler says that they may be the cause"
        if self.cause.type in _TYPES and not self.breaks[0].error:
            return self.untried(_TYPES[self.cause.type])
        step = next((step for step in advice(self.report, self.breaks[0]) if not step.startswith("Other code of")), "")
        return shorten(step, 200)

    def untried(self, known: tuple[str, ...]) -> str:
        """What to do, without what was tried in vain: `known` has the words for both."""
        return f"{known[-1]} (other changes were tried and refused)" if self.is_refused() else known[1]

    def considered(self) -> list[Fix]:
        """The changes considered for the cause; if it has a setting, those with this setting."""
        return considered(self.report, [*self.cause.breaks, *self.cause.frames], self.cause.setting)

    def is_refused(self) -> bool:
        """Whether changes for the cause were tried, or the setting if it has one, and none is proved."""
        return is_refused(self.considered())

    def tried(self) -> str:
        """What trying the setting showed, `tried: 8 graph breaks become 3`, or `not tried`; empty if no fix has it."""
        tried = self.considered()
        proved = [f for f in tried if f.verdict == "proved" and None not in (f.breaks_before, f.breaks_after)]
        if proved and proved[0].breaks_before == proved[0].breaks_after:
            return "tried: proved, with other changes"
        if proved:
            before = proved[0].breaks_before or 0
            return f"tried: {plural(before, 'graph break')} {'becomes' if before == 1 else 'become'} {proved[0].breaks_after}"
        reasons = [fix.reason if fix.reason.startswith("not ") else f"not tried: {fix.reason}" for fix in tried if fix.reason]
        return reasons[0] if reasons else "not tried" if tried else ""

    def cost(self) -> str:
        """What the cause costs: `1.2 ms a call · 34 eager ops`, `27 hits`; "" if no more is known than the count."""
        if self.cause.seconds:
            ops = f" · {plural(self.cause.eager_ops, 'eager op')}" if self.cause.eager_ops else ""
            return f"{time_text(self.cause.seconds)} a call{ops}"
        return f"{self.cause.split} hits" if self.cause.split > len(self.breaks) else ""

    def eager(self) -> list[str]:
        """The functions that run eagerly because of this cause; for recompiles, those that were compiled too often."""
        if self.cause.kind == "recompile":
            again = {(f.file, f.name) for f in self.frames}
            limit = [f for f in self.report.frames if f.status == "skipped" and (f.reason or "").startswith(_LIMIT)]
            frames = [f for f in limit if (f.file, f.name) in again]
        else:
            ids = {b.id for b in self.breaks}
            skipped = [(f, cause_of(self.report, f)) for f in self.report.frames if f.status == "skipped"]
            frames = [f for f, why in skipped if why is not None and why.id in ids]
        return list(dict.fromkeys(self.places.name(f).removeprefix("resume in ") for f in frames))


def proved_words(report: Report) -> tuple[str, str]:
    """What applying the proved fixes does, as what to do first, and what then remains; two "" if there are none."""
    fixes = report.fix_set
    if fixes is None or not fixes.fixes:
        return "", ""
    more = f"{plural(fixes.graphs_before, 'graph')} → {fixes.graphs_after}"
    removes = any(count for _, count, _ in fixed_counts(report))
    gain = f"{fixed_words(report)} go away" if removes else f"more is captured ({more})"
    left = [plural(whole - count, name) for name, count, whole in fixed_counts(report) if whole > count]
    return f"apply {plural(len(fixes.fixes), 'proved change')} (`report.patch()`): {gain}.", ", ".join(left)


def lower_first(words: str) -> str:
    return words[:1].lower() + words[1:]


def first_words(words: CauseWords) -> str:
    """One sentence on what to do first; `words`: those of the first cause."""
    cause = words.cause
    fix = words.fix().removesuffix(f" ({_HINT})").removesuffix(".")
    if cause.kind == "recompile":
        return f"{fix} ({words.count()}: {words.title()})."
    if cause.setting is not None and not words.is_refused() and words.tried().startswith("tried"):
        return f"{fix}."
    part, whole = len(words.breaks), plural(len(words.report.breaks), "graph break")
    of = f"{part} of {whole}" if part < len(words.report.breaks) else f"all {whole}" if part > 1 else "the only graph break"
    if cause.first_call:
        subject = of.replace("the only", "its") + (" are" if part > 1 else " is")
        return f"{fix.removesuffix(f' ({_TRACED_AGAIN})')}: {subject} in the first call only."
    if cause.setting is not None and not words.is_refused():
        owners = {package(b.file) or "your code" for b in words.breaks}
        whose = f" ({owners.pop()})" if len(owners) == 1 else ""
        return f"{fix}: the compiler advises it for {of}{whose}."
    b = words.breaks[0]
    at = f"{words.places.at(b.file, b.line, b.cell)} in {words.places.function(b.function, b.file, b.line)}"
    more = f" and {plural(len(words.breaks) - 1, 'more place')}" if len(words.breaks) > 1 else ""
    tries = (
        ""
        if words.report.fixes is not None
        else "; `%%compile --fix` and `dynascope fix` try such changes" + (", also in a library" if package(b.file) else "")
    )
    return f"at {at} ({package(b.file) or 'your code'}){more}, {words.title()}: {fix}{tries}."


def left_words(others: list[CauseWords]) -> str:
    """The counts of the other causes: `4 graph breaks (2 of them may go away too), 19 recompiles`; empty if there are none."""
    breaks = sum(len(other.breaks) for other in others)
    follow = sum(len(other.breaks) for other in others if other.cause.consequence)
    again = sum(len(other.frames) for other in others)
    may = f" ({follow} of them may go away too)" if follow < breaks else ", which may go away too"
    rest = [plural(breaks, "graph break") + (may if follow else "")] if breaks else []
    return ", ".join(rest + ([plural(again, "recompile")] if again else []))
