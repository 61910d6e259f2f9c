"""Advice on a graph break, and the text to paste into an issue.

Promises: advice uses only what the report knows (the compiler's hints, the outcome, the flag in force); the text of an issue
has versions, settings, place, code and the compiler's reason, and leaves out the folders of the files that the compiler
quotes.
"""

from __future__ import annotations

import re

from dynascope.compiler.report import Break, Frame, Report
from dynascope.compiler.report.causes import is_by_design, setting_in
from dynascope.widgets.labels.fixes import considered, is_refused
from dynascope.widgets.labels.words import Places, printable, shorten

#: beginnings of the compiler's hints that fit any break: these are shown last
_GENERAL = (
    "This graph break is fundamental", "This graph break may have been caused by an earlier", "Please report",
    "It may be possible to write Dynamo", "This graph break may be difficult to debug", "This is likely to be a Dynamo bug",
)  # fmt: skip
#: setting that the compiler's hints name -> what to do where it does not help
_INSTEAD = {
    "capture_scalar_outputs": "Keep the value in a tensor, or read it outside of the compiled code",
    "capture_dynamic_output_shape_ops": "Keep the shape fixed, for example with a mask, or move it out of the compiled code",
}
#: the outcome of a break in words, and in few words
_OUTCOMES = {
    "resumed": ("resumed", "resumed"), "skipped": ("the whole frame runs eagerly", "frame skipped"),
    "rest": ("the rest of the frame runs eagerly", "rest runs eagerly"), "raised": ("stopped here", "stopped here"),
}  # fmt: skip
_EMPTY = re.compile(r" at 0x[0-9a-fA-F]{6,}|(?<=[.!?]) Message: None\b| \((?:reason: None|has_kwargs False)\)")
#: the folders of an absolute path in backquotes, as in torch's explanation for a skipped function
_FOLDERS = re.compile(r"(?<=`)(?:[A-Za-z]:)?[\\/][^`\n]*[\\/](?=[^`\n]+`)")
#: advice on a break that torch makes on purpose
TRAINING = "Compile the forward pass and the loss, and leave zero_grad, backward and the optimizer's step outside."
BY_DESIGN = f"This break is by design and costs nothing to leave. {TRAINING}"
_FALSE = "AssertionError: the assertion is false"
#: words that carry no meaning in the compiler's titles
_PLAIN = {
    "a", "an", "by", "call", "calling", "failed", "for", "from", "in", "of", "on", "the", "to", "trace", "tracing",
    "unsupported", "with",
}  # fmt: skip


def advice(report: Report, b: Break) -> list[str]:
    """What the user can do about a break, the most promising first; what was tried and refused is told as such."""
    by_design, is_false = is_by_design(b), b.error.startswith(_FALSE)
    hints = [_unless_refused(report, b, compiler_text(h, 1000)) for h in b.hints if h.strip() and not (by_design or is_false)]
    steps = [h for h in hints if not h.startswith(_GENERAL)]
    if is_false:
        steps.append("The assertion fails in eager code, too: change what is passed, or the assertion.")
    elif b.error.endswith("must be bool, not SymBool"):
        steps.insert(0, "Decide it while tracing, `True if ... else False`: sizes for which it differs are then compiled anew.")
    elif by_design:
        steps.append(BY_DESIGN if b.outcome == "resumed" else TRAINING)
    if b.outcome == "skipped" and not b.allowed:
        steps.append(f"Other code of the function runs eagerly because of this break.{_how_to_capture_the_rest(b)}")
    if b.outcome == "raised":
        if b.fullgraph:
            steps.append("fullgraph allows no graph break at all: fix it, or compile without fullgraph.")
        elif b.error_on_graph_break:
            steps.append("error_on_graph_break is on here: fix it, or allow this place in a region.")
        else:  # the flags are unknown, as in an imported log
            steps.append("Graph breaks are errors here: fix it, or allow this place in a region (fullgraph=True allows none).")
    elif b.allowed:
        steps.insert(0, "Nothing to do: it is in a region that allows graph breaks, so it counts as expected.")
    else:
        steps.append("Meant to be here? Allow it in a region: it then counts as expected, also under error_on_graph_break.")
    if len(b.hits) > 1:
        steps.append(f"It is one place, reached by {len(b.hits)} frames: one fix removes it from all of them.")
    steps += sorted((h for h in hints if h.startswith(_GENERAL)), key=lambda h: h.startswith("Please report"))
    return list(dict.fromkeys(steps))


def _how_to_capture_the_rest(b: Break) -> str:
    """How code around a break that skips a frame can be captured, as one more sentence; "" if nothing is known to help."""
    block = next((h.block for h in b.hits if h.block is not None), None)
    if block is not None:
        keyword = re.findall("[a-z]+", block.source.removeprefix("async "))[0]
        at = f"the `{keyword}` in {block.function} (line {block.line})"
        return f" Move the line, or the call that leads to it, out of {at}, or that `{keyword}` into a function of its own."
    if b.type == "Observed exception":  # it passes through every function
        return ""
    return (
        " Move the line, with any loop, `with` or `try` around it, into a function of its own: then the rest can be captured."
    )


def _unless_refused(report: Report, b: Break, hint: str) -> str:
    """The hint; what to do instead if it names a setting that was tried for the break and refused."""
    setting = setting_in([hint])
    if setting is None or not is_refused(considered(report, [b.id], setting)):
        return hint
    return f"{instead_of(setting)}: {was_refused(setting)}."


def instead_of(setting: str) -> str:
    """What to do about a break where a setting that the compiler's hints name does not help."""
    return _INSTEAD.get(setting, "Move it out of the compiled code")


def was_refused(setting: str) -> str:
    return f"`torch._dynamo.config.{setting} = True` was tried and refused"


def reasons(b: Break) -> list[str]:
    """The error that caused a graph break, then the compiler's title, reason and explanation, without repetitions."""
    if b.error.startswith(_FALSE):  # what the compiler says of conditions on data is wrong here
        return [b.error]
    texts = [t.strip() for t in dict.fromkeys((b.type or "", b.reason, b.explanation)) if t and t.strip()]
    kept = [t for i, t in enumerate(texts) if not any(_says(other, t) for other in texts[i + 1 :])]
    kept = [t for i, t in enumerate(kept) if not any(t in other for other in kept[:i])]
    return [b.error, *kept] if b.error else kept


def _says(text: str, title: str) -> bool:
    """Whether `text` contains `title`, or most of the words of `title`."""
    words = set(_words(title)) - _PLAIN
    return title in text or (len(words) > 1 and len(words & set(_words(text))) >= 0.7 * len(words))


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.lower())


def cause_of(report: Report, frame: Frame) -> Break | None:
    """The break that made Dynamo skip this frame or fail in it.

    The `break_` of a resume function is the break after which it continues; a break that stopped the resume function has a hit
    in it.
    """
    if frame.kind != "resume":
        return next((b for b in report.breaks if b.id == frame.break_), None)
    ran_into = [b for b in report.breaks for h in b.hits if h.frame == frame.id and h.outcome != "resumed"]
    return next(iter(ran_into), None)


def eager_because_of(report: Report, b: Break) -> list[Frame]:
    """The frames that run eagerly as a whole because of a break."""
    if b.outcome != "skipped":
        return []
    hit_frames = {h.frame for h in b.hits}
    candidates = (f for f in report.frames if f.status == "skipped" and (f.id in hit_frames or f.break_ == b.id))
    return [f for f in candidates if cause_of(report, f) is b]


def only_rest_is_eager(report: Report, b: Break) -> bool:
    """Whether a break skips only the rest of its frames: the code before it is compiled, the code after it runs eagerly."""
    if b.outcome != "skipped":
        return False
    hit_frames = {h.frame for h in b.hits if h.outcome == "skipped"}
    states = [f.status for f in report.frames if f.id in hit_frames]
    return bool(states) and all(status == "compiled" for status in states)


def ended_by_error(report: Report, b: Break) -> str | None:
    """The type of the user's own error that ended the call at a break, before the function was resumed; None: no error did."""
    error = report.error
    if error is None or error.origin != "user" or error.caught or b.outcome != "resumed":
        return None
    passed = {(call.file, call.line) for call in error.calls}
    files = {f.id: f.file for f in report.frames}
    ended = any(not h.resumes and (files.get(h.frame), h.line) in passed for h in b.hits)
    return error.type if ended else None


def outcome_words(report: Report, b: Break, *, brief: bool = False) -> str:
    """The worst outcome among the hits of a break, or the error that ended the call there; `brief`: as in `frame skipped`."""
    error = ended_by_error(report, b)
    if error is not None:
        error = shorten(error, 60)
        return f"ended by {error}" if brief else f"not resumed: {error} ended the call here"
    whole, short = _OUTCOMES["rest" if only_rest_is_eager(report, b) else b.outcome]
    return short if brief else whole


def compiler_text(text: str, limit: int) -> str:
    """A text of the compiler without empty phrases, and without addresses of objects, which differ from run to run."""
    return printable(_EMPTY.sub("", text[: 2 * limit + 1000]), limit)


def error_message(report: Report) -> str:
    """The line of a report's error that says most, without its type unless that is another one."""
    assert report.error is not None
    cause = next((b.error for b in report.breaks if b.id == report.error.break_ and report.error.origin == "compiler"), "")
    lines = [line.strip() for line in report.error.message.splitlines() if line.strip()]
    first = " ".join(lines[: 1 + lines[0].endswith(":")]) if lines else ""  # `backend='...' raised:` says nothing yet
    return cause or first


def set_by(region: str) -> str:
    """What set a flag: `region In[3]:4`, or an option as it was written, `--region g=allow`."""
    return region if region.startswith("--") else f"region {region}"


def flag_words(b: Break, region: str) -> str:
    """The flag at a break and what set it: `False (default)`, `True (region In[3]:4)`, `unknown`.

    `region`: the name of the region, as `bands.region_name` returns it.
    """
    who = {"default": "default", "run": "this run"}.get(b.region.kind, set_by(region) if region else "")
    value = "unknown" if b.error_on_graph_break is None else str(b.error_on_graph_break)
    return f"{value} ({who})" if who else value


def issue_text(report: Report, b: Break, places: Places) -> str:
    """The text of an issue about a break, as Markdown."""
    versions = ", ".join(f"{name} {value}" for name, value in report.versions.items() if value)
    lines = places.lines(b.file)
    around = [f"{'>' if n == b.line else ' '} {n:4} {lines[n]}" for n in range(b.line - 3, b.line + 3) if n in lines]
    text = [f"**Graph break: {b.type or b.reason.splitlines()[0] if b.type or b.reason else 'unknown type'}**", ""]
    function = places.function(b.function, b.file, b.line)
    text += [f"at `{places.of_break(b)}` in `{function}`; outcome: {b.outcome}, hits: {len(b.hits)}"]
    if around or b.source:
        text += ["", "```python", *(around or [b.source]), "```"]
    for words in dict.fromkeys((b.reason or b.explanation, b.explanation or b.reason)):
        text += ["", _FOLDERS.sub("", places.with_cell_names(words))]
    if b.gb_ids:
        text += ["", "Ids: " + ", ".join(b.gb_ids)]
    settings = {
        k: v for k, v in report.settings.items() if k in ("fullgraph", "error_on_graph_break", "backend", "mode", "dynamic")
    }
    text += ["", "Settings: " + ", ".join(f"{k}={v}" for k, v in settings.items() if v is not None)]
    text += ["", f"Versions: {versions}"] if versions else []
    return printable("\n".join(text), 20_000)
