"""Graph breaks: why each one is there, what became of it, and what to do about it.

Promises: advice uses only what the report knows (the compiler's hints, the outcome, the flag in force).
"""

from __future__ import annotations

import re
from collections.abc import Container, Hashable
from functools import partial
from typing import TypedDict

from typing_extensions import NotRequired

from dynascope.compiler.report import Break, Frame, Report, StackEntry, Trial, label, listed, plural
from dynascope.compiler.report.measurements import THE_BREAK
from dynascope.compiler.report.overview import eager_in_torch, is_asked_for, is_by_design, package, setting_in
from dynascope.widgets.detail import Detail, code_part, facts, list_part, prose, tab
from dynascope.widgets.features.fixes import considered, fix_parts, is_only_moved, is_refused
from dynascope.widgets.features.places import Places
from dynascope.widgets.features.regions import allowed_by, flag_words, forbidden_by, is_error_anyway
from dynascope.widgets.features.run_time import cost_facts, cost_words
from dynascope.widgets.terminal import Terminal
from dynascope.widgets.words import capped, compiler_text, grouped, indent_of, printable, shorten

#: beginnings of the compiler's hints that fit any break: these are shown last
GENERAL = (
    "This graph break is fundamental", "This graph break may have been caused by an earlier", "Please report",
    "It may be possible to write Dynamo", "If it is a Python builtin, please file an issue", "If it is a third-party C/C++",
    "This graph break may be difficult to debug", "This is likely to be a Dynamo bug", "Report an issue to PyTorch",
)  # fmt: skip
#: setting that the compiler's hints name -> what to do where it does not help
_INSTEAD = {
    "capture_scalar_outputs": "Keep the value in a tensor, or read it outside of the compiled code",
    "capture_dynamic_output_shape_ops": "Keep the shape fixed, for example with a mask, or move it out of the compiled code",
}
#: the outcome of a break in words, and in few words; the worst first
_OUTCOMES = {
    "raised": ("stopped here", "stopped here"), "skipped": ("the whole frame runs eagerly", "frame skipped"),
    "resumed": ("resumed", "resumed"), "rest": ("the rest of the frame runs eagerly", "rest runs eagerly"),
    "left": ("compiled up to here", "compiled up to here"),  # what follows may be cached, a lone `return`, or after an error
}  # fmt: skip
#: advice on a break that torch makes on purpose
TRAINING = "Compile the forward pass and the loss; leave zero_grad, backward, the optimizer's step and what follows it outside."
BY_DESIGN = (
    "This break is by design. In a training loop, compile the forward pass and the loss; zero_grad, backward and the "
    "optimizer's step may stay outside."
)
#: how advice on a skipped frame begins
MOVES = "To have other code compiled, move the"
_FALSE = "AssertionError: the assertion is false"
#: the beginning of a hint that a run answers: the code around the break ran eagerly, with this error or without
_MAY_FAIL = "Your code may result in an error when running in eager"
_UNKNOWN_NAME = "failed to find name in frame builtins"


class BreakRow(TypedDict):
    """One break in the list of breaks; `outcome_text`: its outcome in words."""

    id: str
    place: str
    code: str
    outcome: str
    outcome_text: str
    type: str
    hits: int
    allowed: bool
    target: str
    cost: NotRequired[str]


class StackRow(TypedDict):
    """One frame of the user's stack at a break."""

    place: str
    function: str
    source: str
    file: str
    line: int


def sorted_breaks(report: Report) -> list[Break]:
    """The breaks by outcome (raised, skipped, resumed), then by cost, the greatest first; allowed breaks come last."""
    costs = {c.break_: c.seconds or 0.0 for c in report.profile.breaks} if report.profile else {}
    return sorted(report.breaks, key=lambda b: (bool(b.allowed), [*_OUTCOMES].index(b.outcome), -costs.get(b.id, 0.0)))


def break_rows(places: Places) -> list[BreakRow]:
    """The rows of the list of breaks."""
    rows: list[BreakRow] = []
    for b in sorted_breaks(places.report):
        rows.append({
            "id": b.id, "place": places.at(b.file, b.line, b.cell), "code": shorten(places.code(b), 120),
            "outcome": b.outcome, "outcome_text": outcome_words(places, b, brief=True),
            "type": shorten((b.type or b.reason or "").replace("`", ""), 160), "hits": len(places.report.seen_from(b)),
            "allowed": bool(b.allowed), "target": break_target(b),
        })  # fmt: skip
        if b.id in places.costs:
            rows[-1]["cost"] = cost_words(places.costs[b.id])
    return rows


def break_target(b: Break) -> str:
    """The `target` in a request for a region at a break: `In[3]:12` in a cell, else `forward:12`, function and line."""
    return f"In[{b.cell}]:{b.line}" if b.cell is not None else f"{printable(b.function, 1000)}:{b.line}"


# -- why, and what to do ----------------------------------------------------------------------------


def why(b: Break, places: Places) -> list[str]:
    """Sentences on why the break is there, in the compiler's words."""
    told = [compiler_text(places.with_cell_names(text), 5000) for text in reasons(b)] or ["The compiler gave no reason."]
    return told + [printable(text, 2000) for text in undecided_words(b)]


def reasons(b: Break) -> list[str]:
    """The error that caused a graph break, then the compiler's title, reason and explanation, without repetitions."""
    if b.error.startswith(_FALSE):  # what the compiler says of conditions on data is wrong here
        return [b.error]
    texts = [t.strip() for t in dict.fromkeys((b.type or "", b.reason, b.explanation)) if t and t.strip()]
    kept = [t for i, t in enumerate(texts) if not any(_says(other, t) for other in texts[i + 1 :])]
    kept = [t for i, t in enumerate(kept) if not any(t in other for other in kept[:i])]
    if package(b.file) == "torch":
        kept = [t.replace("User-inserted graph break.", "torch's own code asks for it.") for t in kept]
    return [b.error, *kept] if b.error else kept


def _says(text: str, title: str) -> bool:
    """Whether `text` contains `title`, or most of the words of `title`."""
    words, said = (set(re.findall(r"[^\W_]{3,}", t.lower())) - {"call", "failed", "trace"} for t in (title, text))
    return title in text or (len(words) > 1 and len(words & said) >= 0.7 * len(words))


def undecided_words(b: Break) -> list[str]:
    """Sentences on the fact that tracing needed and could not decide, and on the `torch._check` that states it."""
    if b.undecided is None:
        return []
    expression, checks, is_condition = b.undecided.expression, b.undecided.checks, b.undecided.needed == "condition"
    needed = f"whether `{expression}` holds" if is_condition else f"the value of `{expression}`"
    words = [f"Tracing needed to know {needed}, and no `torch._check` before this line decides it."]
    if checks:
        words.append("The compiler suggests, before this line: " + " or ".join(f"`{c}`" for c in checks) + ".")
    return words


def advice(report: Report, b: Break) -> list[str]:
    """What the user can do about a break, the most promising first; what was tried and refused is told as such."""
    is_false, is_unknown = b.error.startswith(_FALSE), b.type == _UNKNOWN_NAME  # which the compiler takes for a bug of its own
    is_sparse = re.search("sparse tensor|strided nested", b.type.lower()) is not None  # torch advises what does not help
    by_design = is_by_design(b, report.breaks)
    told = not (by_design or is_false or is_unknown or is_sparse)
    ran = bool(report.hooks) and b.outcome != "raised"  # in a live run
    caller, owner = own_caller(b) if b.error else None, package(b.file)
    fails = ran and raised_at(report, b)
    in_trace = ran and b.type.endswith("when making fake tensor call")
    untrue = ["For the common pattern `if", "Use `torch.cond`"] * (b.decides != "")
    untrue += ["If Dynamo is attempting to trace a return statement"] * ("return" not in b.source) + [_MAY_FAIL] * ran
    untrue += ["Note: Python `or`/`and`"] * (re.search(r"\b(?:or|and)\b", b.source) is None)
    is_made = b.type == "Uninitialized nn.Module" and "__init__(" in b.source  # and not in a module that lacks that line
    untrue += ["Ensure your nn.Module instance"] * is_made
    # for other values; not what `requires_grad_()` is for; with it, `backward()` outside of compiled code may fail
    untrue += ["Ensure the input tensor to `tolist()`", "Call .detach() before returning", "Enable compiled autograd"]
    said = (h for h in b.hints if h.strip() and told and not h.startswith((*untrue,)))
    hints = [_as_tried(report, b, compiler_text(h, 1000)) for h in said]
    steps = [h for h in hints if not h.startswith(GENERAL)]
    if owner is not None and told and not b.error:  # code that the user cannot change
        fit = [h for h in steps if setting_in([h]) or (owner != "torch" and not h.endswith("in your code."))]
        if fit != steps or owner == "torch":
            fit.append(f"The line is in {owner}'s own code: move the call that leads to it out of the compiled code.")
        steps = fit
    what = "line" if caller is None and owner is None else "call that leads here"
    correct = "correct it, or, if it raises none without torch.compile, move it out of the compiled code."
    known = (
        (is_false, "If it is meant to hold, change what is passed, or the assertion."),
        (is_unknown, "The name is not there when the compiled code is called: if it should be, define or import it before."),
        (b.decides == "raise", "Check it outside of the compiled code, or use `torch._assert_async` (it raises RuntimeError)."),
        (fails, f"The {what.replace('call', 'line')} raised an error outside of graphs: {correct}"),
        ("no fake impl registered" in b.error, "Say which shape and type the operator returns, with its `register_fake`."),
        (in_trace, f"The {what} raised an error when it was traced: {correct}"),
        (b.decides == "break", "Compile what the loop calls, and leave the loop outside; or, for a fixed number of turns, keep "
            "a mask of what is done."),
        ("does not know how to trace the builtin" in b.explanation, "Call it outside of the compiled code."),
        (is_made, "Make the module outside of the compiled code, which may call it."),
        ("tolist() with non-integer" in b.type, f"{_INSTEAD['capture_scalar_outputs']}."),
        (is_sparse, "No graph can have such a tensor: move what uses it out of the compiled code, or make it dense."),
        (by_design, BY_DESIGN if b.outcome == "resumed" else TRAINING),
    )  # fmt: skip
    steps = [words for is_so, words in known if is_so][:1] + steps
    is_raise, is_observed = b.source.lstrip().startswith("raise "), b.type == "Observed exception"
    # every function around an error would meet it, too
    helps = is_raise or is_observed or not (b.error or is_sparse or is_beside(b, eager_because_of(report, b)))
    if b.outcome == "skipped" and helps and not (b.allowed or is_unknown or fails):
        files = {f.id: f.file for f in report.frames}
        is_own = any((files.get(h.frame), h.line) == (b.file, b.line) for h in b.hits if h.outcome == "skipped")
        moved = "line" if is_own else "call that leads here"
        only = "." if is_raise else "; if only tracing raises it, move the line out."  # Dynamo may lack what eager code has
        moves = f"{MOVES} {moved}, with any loop, `with` or `try` around it, into a function of its own."
        is_first = is_asked_for(b) and "skip_frame" not in b.type  # the break may be meant, but not this
        # if it is not observed, making the exception is the break
        raises = f"Raise it outside of the compiled code{', or catch it inside' * is_observed}{only}"
        if (only_raises := is_raise or is_observed) or not b.function.startswith("<"):  # a comprehension has no other line
            steps.insert(0 if is_first else len(steps), raises if only_raises else moves)
    is_forbidden = b.outcome == "raised" and not (b.error or is_error_anyway(b))  # nor does an error end with the flags
    if is_forbidden and b.fullgraph:
        steps.append("fullgraph allows no graph break at all: fix it, or compile without fullgraph.")
    elif is_forbidden and b.error_on_graph_break is not False:  # the flags may be unknown, as in an imported log
        flag = "error_on_graph_break is on" if b.error_on_graph_break else "Graph breaks are errors"
        steps.append(f"{flag} here: fix it, or allow this place in a region (fullgraph=True allows none).")
    elif b.allowed and b.outcome != "raised":
        steps.insert(0, "Nothing to do: it is in a region that allows graph breaks, so it counts as expected.")
    elif b.outcome != "raised" and not steps:
        steps.append(f"{instead_of('')}.")
    steps += sorted((h for h in hints if h.startswith(GENERAL)), key=lambda h: h.startswith("Please report"))
    chosen = [fix for fix in report.fixes or () if fix.chosen and b.id in (*fix.removes, *fix.moves)]
    words = {"verified": "A verified fix", "conditional": "A fix that holds under a condition"}
    does = ["moves" if b.id in fix.moves or is_only_moved(fix) else "removes" for fix in chosen]
    ways = [f"{words[f.verdict]} {how} it: {compiler_text(f.title, 200)}." for f, how in zip(chosen, does, strict=True)]
    return list(dict.fromkeys([*ways, *steps]))


def _as_tried(report: Report, b: Break, hint: str) -> str:
    """The hint; if it names a setting, with what trying it showed, or what to do instead if that was in vain."""
    if "ignore_logg" in hint:
        return f"{hint} (compiled code then logs nothing there)"
    if is_asked_for(b) and b.outcome != "raised" and hint.startswith("Remove "):
        return f"The program asks for it: {hint.replace('Remove', 'remove', 1).removesuffix('.')} if it is not meant."
    if (setting := setting_in([hint])) is None:
        return hint
    helps, shown = outcome(report, setting, [b.id])
    return f"{instead_of(setting)}: {shown}." if helps is False else f"{hint} ({shown})"


def instead_of(setting: str) -> str:
    """What to do about a break where a setting that the compiler's hints name does not help."""
    return _INSTEAD.get(setting, "Move it out of the compiled code")


def outcome(report: Report, setting: str, ids: Container[str | None]) -> tuple[bool | None, str]:
    """Whether a setting that the compiler's hints name helps, and what trying it showed; (None, why) if nobody has tried it.

    `ids`: of the breaks and recompiled frames for which it is hinted at.
    """
    fixes, name = considered(report, ids, setting), f"torch._dynamo.config.{setting}"
    chosen = next((fix for fix in [*fixes, *(report.fixes or ())] if fix.chosen and name in fix.settings), None)
    absent = [fix for fix in considered(report, ids) if fix.verdict == "untried" and not (fix.edits or fix.settings)]
    unseen = f", as {absent[0].reason}" if absent else ""
    stays = f"`{setting} = True` was tried, and not seen to remove the graph break{_first_place(report, ids)}{unseen}"
    if chosen is not None:
        return (True, f"tried: {chosen.verdict}") if chosen in fixes else (False, stays)
    # a setting is in force for all; but that another break stays or moves says nothing of this one
    every = considered(report, [b.id for b in report.breaks], setting)
    others = [fix for fix in every if THE_BREAK not in fix.reason]
    tried = [fix for fix in fixes if fix.verdict != "untried"] or others
    # of several settings, what was refused may be another one beside it
    if is_refused(tried := [fix for fix in tried if len(fix.settings) == 1]):
        refused = next(fix for fix in sorted(tried, key=lambda fix: not fix.reason) if fix.verdict == "refused")
        why = f": {compiler_text(refused.reason, 400)}".rstrip(".: ")  # which speaks of the place for which it was tried
        return False, f"`{name} = True` was tried{_first_place(report, [refused.break_])} and refused{why}"
    trials = report.trials or []
    trial = next((t for t in trials if [*t.settings][-1:] == [name]), None)
    if trial is None:
        reason = next((fix.reason for fix in fixes if fix.reason and fix.verdict == "untried"), "")
        return None, "the compiler's hint, not tried" + (f": {reason.removeprefix('not verified: ')}" if reason else "")
    best = helpful(report, trials[: trials.index(trial)])[-1]
    if trial.harm is None:
        if not any(id in ids for id in trial.removes):
            return False, stays
        became = f"{'becomes' if best.breaks == 1 else 'become'} {plural(trial.breaks or 0, 'graph break')}"
        became += f" at another place, graphs {best.graphs} → {trial.graphs}," if trial.breaks == best.breaks else ""
        return True, f"tried: {best.breaks} {became} when the calls are repeated"
    top = " on top" if best.settings else ""
    return False, f"`{setting} = True` was tried{top}, and is not advised: {compiler_text(trial.harm, 400)}"


def _first_place(report: Report, ids: Container[str | None]) -> str:
    """` at f.py:3`, for the first break with one of these ids; "" if there is none."""
    return next((f" at {label(b.file, b.cell)}:{b.line}" for b in report.breaks if b.id in ids), "")


def helpful(report: Report, trials: list[Trial] | None) -> list[Trial]:
    """The first trial, in which nothing was changed, and those of which each was better than all before it.

    A setting that the search for fixes, which compares more, has refused is not advised.
    """
    refused = [set(fix.settings) for fix in report.fixes or () if fix.verdict == "refused" and fix.settings and not fix.edits]
    return [t for t in trials or () if t.harm is None and not any(names <= set(t.settings) for names in refused)]


# -- what became of it ------------------------------------------------------------------------------


def eager_because_of(report: Report, b: Break) -> list[Frame]:
    """The frames that run eagerly as a whole because of a break."""
    return [f for f in report.frames if f.stopped_by == b.id and f.status == "skipped"] if b.outcome == "skipped" else []


def is_beside(b: Break, frames: list[Frame]) -> bool:
    """Whether a break is only where Dynamo gave up on frames: the compiler names another reason, and no graph break."""
    given = [f.reason or b.reason for f in frames]
    return bool(given) and not any(why.startswith(b.reason) or "graph break" in why.lower() for why in given)


def only_rest_is_eager(report: Report, b: Break) -> bool:
    """Whether a break skips only the rest of its frames: the code before it is compiled, the code after it runs eagerly."""
    hit_frames = {h.frame for h in b.hits if h.outcome == "skipped"}
    return b.outcome == "skipped" and {f.status for f in report.frames if f.id in hit_frames} == {"compiled"}


def own_caller(b: Break) -> StackEntry | None:
    """The user's own line, in another file than the break, that led to it; None if there is none, or it is not known.

    Code that was made from text, as dataclasses do, has no lines to show.
    """
    own = (e for e in reversed(b.stack) if package(e.file) is None and (e.source or not e.file.startswith("<")))
    return next((e for e in own if e.file != b.file), None)


def raised_at(report: Report, b: Break) -> bool:
    """Whether the error that ended the run passed the user's line of a break, but no graph, and no function resumed there.

    A line may have several breaks.  Functions have names here, as a lambda may be on a line of another one.
    """
    error, own = report.error, next((e for e in reversed(b.stack) if package(e.file) is None), None)
    if error is None or error.origin != "user" or error.in_graph or own is None or any(h.resumes for h in b.hits):
        return False
    passed = {(c.file, c.function.replace("<module>", "the cell's statements"), c.line) for c in error.calls}
    return (own.file, own.function, own.line) in passed


def outcome_words(places: Places, b: Break, *, brief: bool = False) -> str:
    """The worst outcome among the hits of a break; `brief`: as in `frame skipped`."""
    words = _OUTCOMES["rest" if only_rest_is_eager(places.report, b) else b.outcome]
    resumes = {id for h in b.hits for id in h.resumes}
    # a wrapper's frame, which has nothing to resume, calls the function at the break anew
    anew = [] if resumes else _frames_of(places, b.file, b.function, b.line)
    after = anew or [f for f in places.report.frames if f.id in resumes]
    if b.outcome == "resumed" and places.report.hooks and not resumes:
        words = _OUTCOMES["left"]
    if b.outcome == "resumed" and after and all(map(_has_no_tensor, after)):
        what, brief_words = _OUTCOMES["rest" if resumes else "skipped"]
        words = (f"{what}: Dynamo found no tensor passed to it", brief_words)
    if (b.outcome == "resumed" or words == _OUTCOMES["rest"]) and b.error.startswith(_FALSE):
        words = ("AssertionError is raised here", "error raised")
    return words[brief]


def _frames_of(places: Places, file: str, name: str, line: int) -> list[Frame]:
    """The frames of the function around a line; a file may have several functions of one name."""
    same = (f for f in places.report.frames if (f.file, f.code_name) == (file, name))
    return [f for f in same if f.line <= line <= places.end_of(f)]


def _has_no_tensor(frame: Frame) -> bool:
    """Whether Dynamo skips the function as no tensor is passed to it, whatever it does with those of globals and of objects."""
    return (frame.reason or "").startswith("no tensor-related")


def outcome_in_full(places: Places, b: Break) -> str:
    """The worst outcome and what made it an error; or which other functions resume or run eagerly because of it."""
    words = outcome_words(places, b) + (forbidden_by(b, places) if b.outcome == "raised" else "")
    if words in (_OUTCOMES["resumed"][0], _OUTCOMES["left"][0]):
        given = {f.id for f in places.report.frames if not _has_no_tensor(f)}
        hits = [h for h in b.hits if not given.isdisjoint(h.resumes)] or b.hits  # of the others, only a `return` may be left
        hit = [(f, h.line or b.line) for h in hits if (f := places.frames.get(h.frame))]
        own = [f for f, line in hit if (f.file, line) == (b.file, b.line) and b.function in f"{f.name} {f.code_name}"]
        on = dict.fromkeys(places.function(f.name, f.file, f.line) for f, _ in hit if not own)
        words += f" in {listed([*on], 2)}" * bool(on)
        left = ((e, _frames_of(places, e.file, e.function, e.line)) for e in b.stack)
        bare = [places.function(e.function, e.file, e.line) for e, met in left if met and all(map(_has_no_tensor, met))]
        words += f"; {bare[0]} runs eagerly: Dynamo found no tensor passed to it" if bare else ""
        if (at := eager_in_torch(b, places.report)) is not None:
            words += f"; torch's own {at.function} at {places.at(at.file, at.line)} runs eagerly"
    eager = list(dict.fromkeys(places.name(f) for f in eager_because_of(places.report, b)))
    skipped = {h.frame for h in b.hits if h.outcome == "skipped"}
    partly = dict.fromkeys(places.name(f) for f in places.report.frames if f.id in skipped and f.status == "compiled")
    eager += [f"the rest of {name}" for name in partly if name not in eager]
    if eager and eager != [places.function(b.function, b.file, b.line)] and not only_rest_is_eager(places.report, b):
        names = " and ".join(eager) if len(eager) == 2 else listed(eager, 2)
        one = len(eager) == 1 and names != "the cell's statements"
        words = f"{shorten(names, 80)} {'runs' if one else 'run'} eagerly"
    return words + allowed_by(b, places)


# -- the detail -------------------------------------------------------------------------------------


def frame_words(frame: Frame, places: Places) -> str:
    """A frame by name and compile id: `f (0/1)`."""
    id = f" ({printable(frame.compile_id, 40)})" if frame.compile_id else ""
    return shorten(places.name(frame), 120) + id


def break_detail(b: Break, places: Places) -> Detail:
    """All that is known of a break."""
    place, function, cost = places.of_break(b), places.function_of(b), places.costs.get(b.id)
    hits: list[list[str]] = []
    for h in b.hits if len(b.hits) > 1 else ():
        f = places.frames.get(h.frame)
        words = [frame_words(f, places), f"at {places.at(f.file, h.line, f.cell)}"] if f else [h.frame, ""]
        hits.append([*words, h.outcome, h.frame])
    resumes = [places.frames[r] for r in dict.fromkeys(r for h in b.hits for r in h.resumes) if r in places.frames]
    stack: list[StackRow] = [{
        "place": places.at(e.file, e.line, e.cell), "function": shorten(e.function, 200),
        "source": printable(e.source.strip(), 500), "file": printable(e.file, 1000), "line": e.line,
    } for e in b.stack[:300]]  # fmt: skip
    detail: Detail = {
        "kind": "break", "title": "Graph break", "code": shorten(places.code(b), 160),
        "place": place + (f" in {shorten(function, 120)}" if function else ""), "copy": place,
        "facts": facts(
            ("outcome", outcome_in_full(places, b), ""),
            *(("continues in", frame_words(f, places), f.id) for f in resumes[:6]),
            *(("runs eagerly", frame_words(f, places), f.id) for f in eager_because_of(places.report, b)[:6]),
            ("reached from", places.at(own.file, own.line, own.cell) if (own := own_caller(b)) is not None else None, ""),
            ("error_on_graph_break", printable(flag_words(b, places), 200), ""),
            ("fullgraph", b.fullgraph, ""),
            ("traced again", {True: "it is gone", False: "it is there, too", None: ""}[b.first_call_only], ""),
            *(("ends", f"graph {n}", g.id) for n, g in places.ended[b.id][:4]),
            *(cost_facts(cost) if cost is not None else ()),
        ),
        "parts": [
            *prose("reason", "Reason", why(b, places), advice(places.report, b)),
            *fix_parts([b.id], b.file, places),
            *list_part("hits", "Frames", hits),
            *tab("stack", f"Stack ({len(b.stack)})", "stack", stack),
            *code_part("text", "Compiler's text", places.with_cell_names(b.text), "prose"),
        ],
        "file": printable(b.file, 1000), "line": b.line, "target": break_target(b),
    }  # fmt: skip
    if urls := [u for u in b.urls if u.startswith(("https://", "http://"))]:
        ids = [next((id for id in b.gb_ids if id.lower() in url.lower()), "page") for url in urls]
        detail["links"] = [[printable(id, 40), url] for id, url in zip(ids, urls, strict=True)]
    return detail


# -- text -------------------------------------------------------------------------------------------


def break_lines(places: Places, terminal: Terminal, most: int) -> list[str]:
    """The first breaks in full, of three or more that are alike only one; the places of the others."""

    def words(b: Break) -> Hashable:
        told = (*reasons(b), *advice(places.report, b), *undecided_words(b))
        return told, outcome_in_full(places, b), b.first_call_only

    out: list[str] = []
    alike = grouped((words(b), b) for b in sorted_breaks(places.report)).values()
    groups = [group for same in alike for group in ([same] if len(same) > 2 else [[b] for b in same])]
    for first, *others in groups[:most]:
        out += terminal.part("A graph break", partial(_one, first, places, terminal))
        if others:
            out += [f"    {plural(len(others), 'more graph break')} like this:", *_listed(others, places, terminal)]
    if rest := [b for group in groups[most:] for b in group]:
        out += ["", terminal.paint(f"{plural(len(rest), 'more graph break')}:", "bold"), *_listed(rest, places, terminal)]
    return out


def _listed(breaks: list[Break], places: Places, terminal: Terminal) -> list[str]:
    """The places and lines of the first 20 of these breaks, and the number of the others."""
    rows = [(places.of_break(b), shorten(b.source.strip(), terminal.width - 30)) for b in breaks]
    return capped([f"      {place}  {source}" for place, source in rows], 20)


def _one(b: Break, places: Places, terminal: Terminal) -> list[str]:
    """One break: its place and outcome, its line, why it is there, and the first advice."""
    place = places.of_break(b)
    own = places.report.own_hits(b)
    hits = f", seen from {seen} frames" if (seen := len(places.report.seen_from(b))) > 1 else ""
    hits += ", gone when the calls are traced again" if b.first_call_only else ""
    hits += "" if own or not b.hits else ", only with --inputs"
    colour = "soft" if b.allowed else "red" if b.outcome == "raised" else "yellow"
    function = f" in {shorten(places.function_of(b), 60)}" if b.function else ""
    out = ["", terminal.paint("✂ graph break", colour, "bold") + f" at {terminal.paint(place, 'bold')}{function}"]
    ending = f"({outcome_in_full(places, b)}{hits})"
    if len(f"✂ graph break at {place}{function} {ending}") <= terminal.width:
        out[1] += " " + terminal.paint(ending, "soft")
    else:
        out += terminal.wrap(ending, "    ", 2, "soft")
    out += _source(b, places, terminal, colour)
    if (caller := own_caller(b)) is not None:
        at = f"reached from {places.at(caller.file, caller.line, caller.cell)}"
        out.append(f"    {at} {terminal.paint(shorten(caller.source.strip(), terminal.width - len(at) - 5), 'soft')}")
    told = [compiler_text(text, 2000).strip() for text in reasons(b)]
    out += terminal.wrap(" ".join(text if text.endswith((".", ":", "!")) else f"{text}." for text in told), "    ")
    for words in undecided_words(b):
        out += terminal.wrap(printable(words.replace("`", ""), 2000), "    ")
    # the last sentence often says what to set
    return out + terminal.labelled("    → ", next(iter(advice(places.report, b)), ""), 8, "green")


def _source(b: Break, places: Places, terminal: Terminal, colour: str) -> list[str]:
    """The line of the break, with a caret line under its columns."""
    raw, start, end, _ = places.span(b)
    text = printable(raw, 4000).expandtabs(1).rstrip()
    if not text.strip():
        return []
    gutter, indent = f"{b.line:>7} │ ", indent_of(text)
    room, shown = terminal.width - len(gutter), text[indent:]
    shown = shown if len(shown) <= room else shown[: room - 1] + "…"
    start = min(max(0, start - indent), room - 1)
    end = min(max(1, end - indent, start + 1), room)
    carets = " " * start + terminal.paint("^" * max(1, end - start), colour)
    return [terminal.paint(gutter, "soft") + shown, terminal.paint(" " * 7 + " │ ", "soft") + carets]
