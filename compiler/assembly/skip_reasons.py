"""Why a frame was given up or failed: pure functions over a draft.

A live run has the exception that Dynamo swallowed or raised; a trace file has the printed traceback and the
metrics.  Both may have the text of a graph break that came before it.
"""

from __future__ import annotations

from typing import Any

from dynascope.compiler.assembly import break_text
from dynascope.compiler.assembly.compile_records import Draft

#: exceptions that are graph breaks; others are faults of a backend, of Dynamo's own or of the user's code
_BREAKS = ("", "Unsupported", "SkipFrame", "UserError", "UncapturedHigherOrderOpError", "ObservedException")
_NOTHING = ("no content in function call", "No ops traced for the FX graph")


def error_of(draft: Draft) -> dict[str, Any]:
    """{"type", "message", "stack"} of what stopped the frame; without a live exception, as the metrics tell it."""
    live = (draft.frame or {}).get("error")
    if live:
        return dict(live)
    chain = (draft.frame or {}).get("stopped") or []
    if chain and chain[0]["type"] == "SkipFrame" and not draft.error_text:  # 2.9 tells of it in no other way
        return {"type": "SkipFrame", "message": chain[0]["message"] or "the code asked to skip the frame", "stack": []}
    message = break_text.message_of(draft.error_text or "") or str(draft.metrics.get("fail_reason") or "")
    return {"type": str(draft.metrics.get("fail_type") or ""), "message": message, "stack": []}


def message_of(draft: Draft) -> str:
    """What the compiler says of the failure, without stacks and advice on logs."""
    message = str(error_of(draft)["message"])
    return message.split("\n\nfrom user code:", 1)[0].split("\nSet TORCHDYNAMO_VERBOSE", 1)[0].strip()


def not_swallowed(draft: Draft) -> bool:
    """Whether the metrics of a compile that did not end well tell of more than Dynamo swallows: then the user's code saw it."""
    kind = error_of(draft)["type"]
    return kind != "" and not kind.startswith(("Unsupported", "UserError", "SkipFrame", "RecompileLimitExceeded", "Observed"))


def interrupted(draft: Draft) -> bool:
    """Whether an interrupt ended the compile."""
    kind, metrics = error_of(draft)["type"], draft.metrics
    if kind or draft.frame is not None:
        return bool(kind == "KeyboardInterrupt")
    # metrics name no interrupt: the backend had the graph, and guards are missing
    captured = draft.graph_text is not None and not draft.break_texts
    return captured and bool(metrics) and metrics.get("guard_count") is None and draft.guard_text is None


def is_break(draft: Draft) -> bool:
    """Whether a graph break stopped the frame, and not a fault of another kind."""
    error = error_of(draft)
    if any(words in error["message"] for words in _NOTHING):
        return False
    return error["type"] in _BREAKS or "GB" in "".join(p.gb_id or "" for p in break_text.read(error["message"]).parts)


def nothing_to_compile(draft: Draft) -> bool:
    """Whether Dynamo found nothing to compile in the frame."""
    return any(words in error_of(draft)["message"] for words in _NOTHING)


def text_of(draft: Draft) -> break_text.BreakText:
    """What the compiler said of the stop."""
    error = error_of(draft)
    written = draft.break_texts[-1] if draft.break_texts and is_break(draft) else error["message"]
    text = break_text.read(written)
    if not text.stack and draft.error_text:
        text.stack = break_text.stack_of(draft.error_text)
    return text


def reason_of(draft: Draft) -> str | None:
    """One sentence: the last link of the chain of breaks, which names the frame's own trouble."""
    parts = text_of(draft).parts
    if not parts:
        return None
    last = parts[-1]
    first = last.explanation.split("\n", 1)[0]
    explanation = " ".join(last.explanation.split("\n")) if first.endswith(":") else first
    return f"{last.reason}: {explanation}" if explanation and explanation != last.reason else last.reason


def stack_of(draft: Draft) -> list[dict[str, Any]]:
    """The user's stack at the stop, outermost first, as far as the exception or the translators tell it."""
    event = draft.frame or {}
    stack: list[dict[str, Any]] = [dict(entry) for entry in error_of(draft)["stack"] or ()]
    chain = event.get("stopped") or []
    if len(stack) >= len(chain):
        if stack and chain and stack[-1].get("column") is None:  # 2.9 and 2.11 tell none; the instruction's are known
            at = place(chain[0]["at"])
            if (chain[0]["file"], at["line"]) == (stack[-1]["file"], stack[-1]["line"]):
                stack[-1] |= at
        return stack
    return [{"file": c["file"], "function": c["function"], **place(c["at"])} for c in reversed(chain)]


def place(at: list[int | None]) -> dict[str, int | None]:
    """An instruction's [line, column, end line, end column] by name."""
    return dict(zip(("line", "column", "end_line", "end_column"), at, strict=True))
