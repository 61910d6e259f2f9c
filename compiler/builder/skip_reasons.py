"""Why a frame was skipped or failed.

A live run has the exception that Dynamo swallowed or raised; a trace file has the printed traceback and the metrics.  Both may
have the text of a graph break that led to the exception.
"""

from __future__ import annotations

from dataclasses import replace

from dynascope.compiler.builder import break_parser
from dynascope.compiler.builder.compile_records import CompileRecord
from dynascope.compiler.builder.events.schema import Error, Location

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
    message = break_parser.message_of(record.error_text or "") or str(record.metrics.get("fail_reason") or "")
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
    return error.type in _BREAKS or any(p.gb_id for p in break_parser.read(error.message).parts)


def nothing_to_compile(record: CompileRecord) -> bool:
    """Whether Dynamo found nothing to compile in the frame."""
    message = error_of(record).message
    return any(words in message for words in _NOTHING)


def text_of(record: CompileRecord) -> break_parser.BreakText:
    """The compiler's text about what stopped the frame, parsed."""
    text = break_parser.read(record.break_texts[-1] if record.break_texts and is_break(record) else error_of(record).message)
    if not text.stack and record.error_text:
        text.stack = break_parser.stack_of(record.error_text)
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
