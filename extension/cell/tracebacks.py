"""One traceback, trimmed to the user's own frames.

An exception that leaves a cell keeps its type, its message and its traceback (`%debug` walks all of it).  What
IPython prints is another matter: the frames of the notebook, of torch and of dynascope say nothing about the user's
code, so `show_trimmed` gives the exception IPython's own `_render_traceback_`, which leaves them out.
"""

from __future__ import annotations

import contextlib
import inspect
import re
import traceback
from collections.abc import Callable
from types import CodeType, FrameType, TracebackType
from typing import Any

from dynascope.cell.source import JUMP
from dynascope.compiler.source.code import STATEMENTS

_PLUMBING = ("IPython", "ipykernel", "torch", "tornado", "asyncio", "traitlets", "nbclient", "pluggy", "_pytest")
_ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
_COLOUR = rf"(?:{_ESCAPE.pattern})*"
_RESUME_NAME = re.compile(r"(?:torch_dynamo_resume_in_)+(.+?)(?:_at_\d+)+(?=\W|$)")
#: the attribute by which an exception says itself how IPython shows it
_RENDER = "_render_traceback_"
#: exceptions that have ours
_shown_by_us: list[BaseException] = []
_FILE = re.compile(r'File "(?P<file>[^"\n]+)", line (?P<line>\d+)')


def show_trimmed(shell: Any, error: BaseException) -> None:
    """Make IPython show this exception without plumbing."""
    if isinstance(error, SyntaxError):
        _without_stack(shell)
        return

    _show_once(error, lambda: _render(shell, error))


def show_message_only(shell: Any, error: BaseException) -> None:
    """Make IPython show type and message of this exception, which has no place in the user's code."""
    _show_once(error, lambda: shell.InteractiveTB.get_exception_only(type(error), error))


def _show_once(error: BaseException, render: Callable[[], list[str]]) -> None:
    """Have IPython call `render` the next time it shows this exception; afterwards it is a plain exception again."""

    def once() -> list[str]:
        _let_go(error)
        return render()

    try:
        setattr(error, _RENDER, once)
    except AttributeError:  # an exception that takes no attributes: IPython shows all of its frames
        return
    _shown_by_us.append(error)


def _let_go(error: BaseException) -> None:
    _shown_by_us[:] = [e for e in _shown_by_us if e is not error]
    with contextlib.suppress(AttributeError):
        delattr(error, _RENDER)


def after_cell(result: Any = None) -> None:
    """A cell is over: what it raised and nobody showed is a plain exception again."""
    for error in list(_shown_by_us):
        _let_go(error)


def as_text(shell: Any, error: BaseException) -> str:
    """What IPython would print for this exception, without colours."""
    render = getattr(error, _RENDER, None)
    lines = render() if render is not None else shell.InteractiveTB.get_exception_only(type(error), error)
    return _ESCAPE.sub("", "\n".join(lines))


def trimmed(trace: TracebackType | None, signatures: dict[str, str] | None = None) -> TracebackType | None:
    """The traceback without the frames of plumbing; None where nothing is left.

    A resume function stands for the frame that it goes on from; `signatures` gets that frame's arguments by its name.
    """
    entries: list[tuple[TracebackType, CodeType]] = []
    inside = False
    while trace is not None:
        if _is_ours(trace):
            if not inside:
                entries.clear()  # above us: the notebook's machinery, and the cell's call of the magic
            inside = True
        elif not _is_plumbing(trace):
            code = trace.tb_frame.f_code
            if entries and _continues(trace, entries[-1][0]):
                written = entries.pop()[1]
                if signatures is not None:
                    signatures[code.co_name] = _arguments(written)
                code = written
            entries.append((trace, code))
        trace = trace.tb_next
    result: TracebackType | None = None
    for entry, code in reversed(entries):
        frame, last = entry.tb_frame, entry.tb_lasti
        if code is not frame.f_code or code.co_name == STATEMENTS:
            frame = _as_written(frame, code, entry.tb_lineno)
            last = frame.f_lasti
        result = TracebackType(result, frame, last, entry.tb_lineno)
    return result


def _as_written(frame: FrameType, code: CodeType, line: int) -> FrameType:
    """A frame for the same place whose code begins where it begins in the text: from there IPython counts what it shows.

    The cell's statements are no function in the text, and a resume function begins there where its function does.
    """
    if code.co_name == STATEMENTS:
        made = compile("\n" * (line - 1) + "1/0", code.co_filename, "exec")
    else:
        first = code.co_firstlineno
        text = "\n" * (first - 1) + "def f():" + "\n" * (line - first) + " 1/0"
        made = next(c for c in compile(text, code.co_filename, "exec").co_consts if isinstance(c, CodeType))
        made = made.replace(**{name: getattr(frame.f_code, name) for name in ("co_name", "co_qualname") if hasattr(made, name)})
    try:
        exec(made, frame.f_globals)
    except ZeroDivisionError as error:
        frame = [found for found, _ in traceback.walk_tb(error.__traceback__)][-1]
    return frame


def _arguments(code: CodeType) -> str:
    """The arguments as IPython names them beside a function."""
    names, star, stars = inspect.getargs(code)
    return ", ".join([*names, *([f"*{star}"] if star else []), *([f"**{stars}"] if stars else [])])


def _is_ours(trace: TracebackType) -> bool:
    return _package(trace) == "dynascope" or trace.tb_frame.f_code.co_name.startswith(JUMP.split("{", 1)[0])


def _is_plumbing(trace: TracebackType) -> bool:
    file = trace.tb_frame.f_code.co_filename
    return _package(trace) in _PLUMBING or file.startswith("<eval_with_key>") or "torchinductor" in file


def _package(trace: TracebackType) -> str:
    return str(trace.tb_frame.f_globals.get("__name__") or "").partition(".")[0]


def _continues(trace: TracebackType, before: TracebackType) -> bool:
    """Whether this frame is a resume function called by the frame that it goes on from."""
    name = trace.tb_frame.f_code.co_name
    found = _RESUME_NAME.fullmatch(name)
    return found is not None and _RESUME_NAME.sub(r"\1", before.tb_frame.f_code.co_name) == found[1]


def _render(shell: Any, error: BaseException) -> list[str]:
    chain = _chain(error)
    signatures: dict[str, str] = {}
    before = [(e, e.__traceback__, e.__cause__, e.__context__, e.__suppress_context__) for e in chain]
    try:
        for e in chain:
            e.__traceback__ = trimmed(e.__traceback__, signatures)
            if type(e).__module__.startswith("torch."):
                e.__cause__, e.__suppress_context__ = None, True  # its causes are the compiler's own frames
        if error.__traceback__ is None:  # the statements themselves were refused: the message names the place
            lines = shell.InteractiveTB.get_exception_only(type(error), error)
        else:
            lines = _format(shell, error)
    finally:
        for e, trace, cause, context, suppressed in before:
            e.__traceback__, e.__cause__, e.__context__, e.__suppress_context__ = trace, cause, context, suppressed
    return [_plain_names(shell, line, signatures) for line in lines]


def _format(shell: Any, error: BaseException) -> list[str]:
    lines: list[str]
    try:
        lines = shell.InteractiveTB.structured_traceback(type(error), error, error.__traceback__, tb_offset=0)
    except TypeError:
        # Code objects that Dynamo makes may hold constants without a hash, and what IPython looks frames up with hashes
        # their code: the plain list of places, which it shows for syntax errors, needs none.
        places = traceback.extract_tb(error.__traceback__)
        lines = shell.SyntaxTB.structured_traceback(type(error), error, places, tb_offset=0)
    return lines


def _chain(error: BaseException) -> list[BaseException]:
    found: list[BaseException] = []
    todo: list[BaseException | None] = [error]
    while todo:
        e = todo.pop()
        if e is not None and not any(e is known for known in found):
            found.append(e)
            todo += [e.__cause__, e.__context__]
    return found


def _plain_names(shell: Any, text: str, signatures: dict[str, str]) -> str:
    """A frame bears the name that it has in a plain cell, and a cell's file is called `Cell In[3]`."""

    def place(found: re.Match[str]) -> str:
        label = shell.compile.format_code_name(found["file"])
        return found[0] if label is None else f"{label[0]} {label[1]}, line {found['line']}"

    text = _FILE.sub(place, text)
    for name, arguments in signatures.items():
        text = re.sub(rf"({re.escape(name)}{_COLOUR})\([^)]*\)", rf"\g<1>({arguments})", text)
    return _RESUME_NAME.sub(r"\1", text).replace(f", in {STATEMENTS}", "")


def _without_stack(shell: Any) -> None:
    """IPython shows a plain cell's syntax error without a stack; let it do so this once."""

    def once(filename: str | None = None, running_compiled_code: bool = False) -> None:
        vars(shell).pop("showsyntaxerror", None)
        shell.showsyntaxerror(filename)

    vars(shell)["showsyntaxerror"] = once
