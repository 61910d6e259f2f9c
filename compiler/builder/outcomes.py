"""What became of a frame, and why it was skipped or failed.

A live run has the exception that Dynamo swallowed or raised; a trace file has the printed traceback and the metrics.  Both may
have the text of a graph break that led to the exception.
"""

from __future__ import annotations

from dataclasses import replace

from dynascope.compiler.builder import dynamo_texts
from dynascope.compiler.builder.compile_records import CompileRecord
from dynascope.compiler.builder.events.schema import Error, Location
from dynascope.compiler.report import FrameStatus
from dynascope.compiler.source.origin import is_plumbing, is_used_by_compiler

#: types of exceptions that are graph breaks ("": unknown); any other exception is a break only if its text has a break's id,
#: and otherwise an error of a backend, of Dynamo or of the user's code
_BREAKS = ("", "Unsupported", "SkipFrame", "UserError", "UncapturedHigherOrderOpError", "ObservedException")
#: beginnings of the names of exceptions that Dynamo swallows
_SWALLOWED = ("Unsupported", "UserError", "SkipFrame", "RecompileLimitExceeded", "Observed")
_NOTHING = ("no content in function call", "No ops traced for the FX graph")


def error_of(record: CompileRecord) -> Error:
    """The exception that stopped the frame; its type and message are "" if they are unknown.

    Without an observed exception, as in a trace file: the type in the metrics, and the message of the printed traceback or else
    of the metrics.
    """
    end = record.frame_end
    if end is not None and end.error is not None:
        return end.error
    if end is not None and end.stopped and end.stopped[0].type == "SkipFrame" and not record.error_text:  # torch 2.9
        return Error("SkipFrame", end.stopped[0].message or "the code asked to skip the frame")
    message = dynamo_texts.message_of(record.error_text or "") or str(record.metrics.get("fail_reason") or "")
    return Error(str(record.metrics.get("fail_type") or ""), message)


def error_message(record: CompileRecord) -> str:
    """The compiler's message about the failure, without stacks and advice on logs."""
    message = error_of(record).message
    return message.split("\n\nfrom user code:", 1)[0].split("\nSet TORCHDYNAMO_VERBOSE", 1)[0].strip()


def was_raised(record: CompileRecord) -> bool:
    """Whether the exception that ended a compile is known, and of a type that Dynamo does not swallow."""
    kind = error_of(record).type
    return kind != "" and not kind.startswith(_SWALLOWED)


def interrupted(record: CompileRecord) -> bool:
    """Whether an interrupt ended the compile."""
    kind, metrics = error_of(record).type, record.metrics
    if kind or record.frame_end is not None:
        return kind == "KeyboardInterrupt"
    # metrics do not record an interrupt; it shows as a graph that reached the backend and never got guards
    captured = record.graph_text is not None and not record.break_texts
    return captured and bool(metrics) and metrics.get("guard_count") is None and record.guard_text is None


def is_break(record: CompileRecord) -> bool:
    """Whether a graph break stopped the frame, rather than another kind of error."""
    error = error_of(record)
    if nothing_to_compile(record):
        return False
    return error.type in _BREAKS or any(p.gb_id for p in dynamo_texts.read_break(error.message).parts)


def nothing_to_compile(record: CompileRecord) -> bool:
    """Whether Dynamo found nothing to compile in the frame."""
    message = error_of(record).message
    return any(words in message for words in _NOTHING)


def text_of(record: CompileRecord) -> dynamo_texts.BreakText:
    """The compiler's text about what stopped the frame, parsed."""
    text = dynamo_texts.read_break(
        record.break_texts[-1] if record.break_texts and is_break(record) else error_of(record).message
    )
    if not text.stack and record.error_text:
        text.stack = dynamo_texts.stack_of(record.error_text)
    return text


def reason_of(record: CompileRecord) -> str | None:
    """The reason and the explanation of the last break in the text, which is the one that stopped this frame."""
    parts = text_of(record).parts
    if not parts:
        return None
    last = parts[-1]
    first = last.explanation.split("\n", 1)[0]
    explanation = last.explanation.replace("\n", " ") if first.endswith(":") else first
    return f"{last.reason}: {explanation}" if explanation and explanation != last.reason else last.reason


def stack_of(record: CompileRecord) -> list[Location]:
    """The user's stack where tracing stopped, outermost first, as far as the exception or Dynamo's translators know it."""
    stack = list(error_of(record).stack)
    stopped = [s.location for s in record.frame_end.stopped] if record.frame_end is not None else []
    if len(stack) < len(stopped):
        return stopped[::-1]
    if stack and stopped and stack[-1].column is None and same_line(stack[-1], stopped[0]):
        # torch 2.9 and 2.11 give no columns, so those of the instruction are used
        stack[-1] = replace(stopped[0], function=stack[-1].function)
    return stack


def same_line(a: Location, b: Location) -> bool:
    return (a.file, a.line) == (b.file, b.line)


# -- what became of a frame ------------------------


def why_unfinished(record: CompileRecord, no_end_words: str) -> str:
    """Why a compile is unfinished, and how far it got."""
    reason = "interrupted before this compile had ended" if interrupted(record) else no_end_words
    known = (
        "its guards were built" if record.guard_text is not None
        else "its graph was captured" if record.graph_text is not None
        else "it had reached a graph break" if record.break_texts
        else ""
    )  # fmt: skip
    return f"{reason} ({known})" if known else reason


def outcome(record: CompileRecord) -> str:
    if record.outside is not None:
        return "compiled"
    if record.unfinished or interrupted(record):
        return "unfinished"
    if record.frame_end is not None:
        return record.frame_end.outcome
    metrics = record.metrics
    if metrics.get("guard_count") is not None or record.guard_text is not None:
        return "compiled"
    if record.error_text is not None and not record.break_texts:
        return "raised"  # a break that fullgraph or error_on_graph_break refuses is recorded as an error, not as a break
    if metrics and was_raised(record):
        return "raised"
    if record.break_texts or metrics:
        return "skipped"
    return "compiled" if record.graph_text is not None else "skipped"


def skipped(record: CompileRecord) -> tuple[FrameStatus, str | None]:
    reason = record.frame_end.skip_reason if record.frame_end else None
    if record.compile_id is None and (is_used_by_compiler(record.file) or is_plumbing(record.file)):
        return "ignored", reason_of(record) or reason  # a generator of the compiler's or the notebook's
    if record.break_texts or record.error_text or error_of(record).type:
        status: FrameStatus = "empty" if nothing_to_compile(record) else "skipped"
        return status, reason_of(record) or reason
    if record.compile_id is None:
        return "ignored", reason
    return "empty", reason or "nothing to compile in it"


def end_word(record: CompileRecord) -> str | None:
    reason = record.graph_end.reason if record.graph_end else None
    return None if reason is None else "return" if reason == "return_value" else reason.splitlines()[0]
