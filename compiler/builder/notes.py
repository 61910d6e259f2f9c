"""Adds what needs the whole report: notes, the settings in force, and the error that ended the block.

`annotate` calls the other functions in order.  Notes about what a run measured are added later, by `Run` in
`driver`.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator

from dynascope.compiler.builder import dynamo_texts
from dynascope.compiler.builder.events import Location, RecordingFacts
from dynascope.compiler.report import Failure, FlagOrigin, Report, label, message_of
from dynascope.compiler.source import lines
from dynascope.compiler.source.code import user_name
from dynascope.compiler.source.origin import in_torch, is_plumbing, is_users, module_of, origin

#: matches the line of Inductor's code that names the nodes of the graph that the next lines compute
_SOURCE_NODES = re.compile(r"# Topologically Sorted Source Nodes: \[([^\]]*)\]")
#: names of the errors that operations raise when they run, and of their bases; other errors are found in tracing
_RAISED_BY_GRAPHS = (
    "BaseException", "Exception", "RuntimeError", "LinAlgError", "IndexError", "AssertionError", "OutOfMemoryError",
    "AcceleratorError",
)  # fmt: skip
_NO_TRY = (
    "does not catch errors of its operations in a graph: compiled code runs a graph without it. If it has to catch such "
    "errors, keep the whole `try` out of the graph; for torch.compile, in a function under torch.compiler.disable."
)
_SHARED_GRAPH = (
    "if eager code does not raise this: two calls of backward() need different graphs, because the first frees all that its "
    "graph saved. Compile each model instead of what calls them, or compile anew and pass retain_graph=True to the first."
)


def annotate(report: Report, facts: RecordingFacts) -> None:
    """Complete a Report that so far holds only what the events say."""
    report.versions, report.hooks = facts.versions, facts.hooks
    roots = [f.name for f in report.frames if f.parent is None and f.continues is None and f.status != "ignored"]
    report.compiled = list(dict.fromkeys(facts.compiled or roots))
    report.notes += [*facts.notes, *_remarks(report, facts.old_functions)]
    if facts.settings is not None:
        report.settings = facts.settings.to_dict()
        flag = facts.settings.error_on_graph_break
        for broken in report.breaks:  # where no region was traced, the run's own setting holds, or torch's default
            if broken.region.kind == "unknown" and broken.error_on_graph_break == (flag or False):
                broken.region = FlagOrigin(kind="default" if flag is None else "run")
    if facts.error is not None:
        annotate_error(report, facts.error, facts.cell_of, dynamo_texts.entries(facts.failed_operation))
    elif report.error is not None and facts.origin == "live":
        report.error.caught = True
    annotate_tries(report, facts)


def _remarks(report: Report, old_functions: list[lines.OldFunction]) -> Iterator[str]:
    """What a reader of the report should know about its frames, breaks and lines."""
    # nothing says which thread the user means
    foreign = dict.fromkeys(f.name for f in report.frames if f.foreign and f.status not in ("ignored", "empty"))
    if foreign:
        yield f"compiled by other threads during the recording, and counted here: {', '.join(foreign)}"
    regions = [b.region for b in report.breaks if b.fullgraph and b.region.is_region and b.error_on_graph_break is False]
    places = (str(r.name) if r.file is None else label(r.file, r.cell) + (f":{r.line}" if r.line else "") for r in regions)
    for place in dict.fromkeys(places):
        yield f"error_on_graph_break(False) at {place} has no effect here: fullgraph=True wins over it."
    for file in dict.fromkeys(f.file for f in old_functions):
        names = ", ".join(dict.fromkeys(f.name for f in old_functions if f.file == file))
        yield f"line numbers of {names} are of the code in memory, which is not the code of {label(file, None)} as it is now."
    if (unknown := report.summary.unknown_breaks) > 0:
        were = "1 graph break is" if unknown == 1 else f"{unknown} graph breaks are"
        yield f"{were} known only from a resume function: no record gives the place and the reason"


def annotate_tries(report: Report, facts: RecordingFacts) -> None:
    """Note each `try` around operations of a graph: its `except` does not catch what they raise when the graph runs."""
    nodes = (n for g in report.graphs if not report.frame(g.frame).code_name.startswith("<") for n in g.nodes)
    places = dict.fromkeys((n.file, n.line) for n in nodes if n.op.startswith("call_"))
    # what is around a lambda, a generator or a comprehension need not be around its calls
    own = ((file, n) for file, n in places if file and n and is_users(file) and not lines.statement_at(file, n, "lambda"))
    for file, first in dict.fromkeys((file, lines.statement_at(file, n, *_RAISED_BY_GRAPHS)) for file, n in own):
        if first is not None:
            report.notes.append(f"the `try` at {label(file, facts.cell_of(file))}:{first} {_NO_TRY}")


def annotate_error(report: Report, error: BaseException, cell_of: lines.CellResolver, operation: list[Location]) -> None:
    """Record the error that ended the block: the compiler's refusal, or an error in the user's code.

    `operation`: the user's stack of the operation that raised it in a running graph, if that is known.  After an interrupt, the
    report is marked as partial instead.
    """
    if isinstance(error, KeyboardInterrupt):
        report.origin = "partial"
        report.notes.append("interrupted: the report holds what was compiled until then")
        if report.error is not None:
            report.error.caught = True
        return
    module, known, message = module_of(type(error)), report.error, message_of(error)
    same = known is not None and known.type == type(error).__name__
    if same and known is not None and (module.startswith("torch._dynamo") or message.startswith(known.message)):
        return  # a compile raised the error, so the report already has it, with its place
    refused = module.startswith(("torch._dynamo", "torch._inductor", "torch._functorch"))
    refused = refused or message.startswith("torch.compile with fullgraph=True found no compiled frames")
    stack = _stack(error)
    generated = [at for at in stack if _is_generated(at.file)]
    outside = [at for at in stack if not _is_generated(at.file)]
    if generated and outside and not operation:
        operation = _of_inductor(report, generated[-1], outside[-1])
    operation = [at for at in operation if not (is_plumbing(at.file) or in_torch(at.file))]
    if operation and outside and operation[0].function == outside[-1].function:  # compiled code names only its first line
        outside.pop()
    outside += operation
    calls = [at.entry(cell_of) for at in outside]
    own = [at for at in calls if origin(at.file) != "python"] or calls
    file, line = (own[-1].file, own[-1].line) if own else (None, None)
    report.error = Failure(
        type=type(error).__name__, message=message.split("\n\nfrom user code:", 1)[0].strip(), file=file, line=line,
        origin="compiler" if refused else "user", cell=cell_of(file) if file is not None else None,
        in_graph=bool(generated or operation), calls=calls,
    )  # fmt: skip
    if report.graphs and "backward through the graph a second time" in message:
        report.notes.append(_SHARED_GRAPH)


def _stack(error: BaseException) -> list[Location]:
    """The places outside torch that the exception passed through, outermost first, with those in the code of graphs."""
    found = ((frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__))
    stack = [Location(code.co_filename, line, user_name(code.co_name)) for code, line in found]
    return [at for at in stack if not (is_plumbing(at.file) or in_torch(at.file))]


def _is_generated(file: str) -> bool:
    """Whether torch wrote this code for a graph: FX, or Inductor, which names the operations."""
    return file.startswith("<eval_with_key>") or any(map(_SOURCE_NODES.search, lines.file_lines(file)))


def _of_inductor(report: Report, at: Location, within: Location) -> list[Location]:
    """The place of the operation that Inductor names above a line of its code; [] if there is none, or several places."""
    above = reversed(lines.file_lines(at.file)[: at.line])
    names = next((match[1].split(", ") for line in above if (match := _SOURCE_NODES.search(line))), [])
    graphs = {f.graph for f in report.frames if (f.file, user_name(f.code_name)) == (within.file, within.function)}
    nodes = (n for g in report.graphs if g.id in graphs for n in g.nodes if n.name in names)
    places = {(n.file, n.line) for n in nodes if n.file is not None and n.line is not None}
    if len(places) != 1:
        return []
    [(file, line)] = places
    return [Location(file, line, (lines.function_at(file, line) or ("", 0, 0))[0].rpartition(".")[2])]
