"""Tracebacks trimmed to the user's own frames.

An exception that leaves a cell keeps its type, message and traceback (`%debug` walks all of it).  Only what IPython prints
changes: IPython shows an exception by calling its method `_render_traceback_`, if there is one.  `show_trimmed` gives the
exception such a hook, which leaves out the frames of torch, of dynascope and of the notebook's machinery.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import re
import traceback
from collections.abc import Callable
from types import CodeType, FrameType, FunctionType, TracebackType
from typing import Any

from dynascope.compiler.patching import patched
from dynascope.compiler.source.code import STATEMENTS, is_jump, is_resume, user_name
from dynascope.compiler.source.origin import in_torch, is_plumbing, module_of, origin

_ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
_RESUME_NAME = re.compile(r"(?:torch_dynamo_resume_in_)+(.+?)(?:_at_\d+)+(?=\W|$)")
_FILE = re.compile(r'File "(?P<file>[^"\n]+)", line (?P<line>\d+)')
_RENDER_HOOK = "_render_traceback_"
#: removes our hooks from exceptions, also from those that were never shown, and restores `showsyntaxerror` of the shell
_hooks = contextlib.ExitStack()


def show_trimmed(shell: Any, error: BaseException) -> None:
    """Make IPython show this exception with a trimmed traceback."""
    if isinstance(error, SyntaxError):
        _show_syntax_error(shell, error)
    else:
        _show_once(error, lambda: _render(shell, error))


def show_message_only(shell: Any, error: BaseException) -> None:
    """Make IPython show only the type and the message of this exception, which no line of the user's code raised.

    One that the user's code has raised before it is shown above it.
    """
    own = error.__context__
    _show_once(error, lambda: [*(_render(shell, own) if own is not None else ()), *_message(shell, error)])


def _message(shell: Any, error: BaseException) -> list[str]:
    """Type and message of an exception as IPython shows them.

    IPython 8 would print the attribute `msg` of any exception: in torch's errors, `msg` is the message without the user's code.
    """
    shown = error
    if not isinstance(error, SyntaxError):
        shown = Exception(error)
        vars(shown)["__notes__"] = getattr(error, "__notes__", [])
    lines: list[str] = shell.InteractiveTB.get_exception_only(type(error), shown)
    return lines


def _show_once(error: BaseException, render: Callable[[], list[str]]) -> None:
    """Have IPython call `render` the next time it shows this exception; after that, the exception has no hook any more."""

    def render_once() -> list[str]:
        vars(error).pop(_RENDER_HOOK, None)
        return render()

    _hooks.enter_context(patched(vars(error), {_RENDER_HOOK: render_once}))


def after_cell(result: Any = None) -> None:
    """Remove the hooks that are left, also that for syntax errors."""
    _hooks.close()


def as_text(shell: Any, error: BaseException) -> str:
    """What IPython shows for an exception, without colours: what our hook shows, or, without a hook, type and message.

    IPython shows no traceback of a SystemExit.
    """
    render = None if isinstance(error, SystemExit) else getattr(error, _RENDER_HOOK, None)
    return _ESCAPE.sub("", "\n".join(render() if render is not None else _message(shell, error)))


def trimmed(trace: TracebackType | None) -> TracebackType | None:
    """The traceback without the frames of torch, dynascope and the notebook's machinery; None if no frame is left.

    If a frame of dynascope is in it, all frames that led to the first such frame are left out, too.  A resume function and the
    frame that it continues become one entry, in the code of that frame.
    """
    entries: list[tuple[TracebackType, CodeType]] = []
    in_dynascope = False
    while trace is not None:
        code = trace.tb_frame.f_code
        if origin(code.co_filename) == "dynascope" or is_jump(code.co_name):
            if not in_dynascope:
                entries.clear()  # the frames outside: the notebook's machinery, and the cell's call of the magic
            in_dynascope = True
        elif not _is_library(code.co_filename):
            if entries and is_resume(code.co_name) and user_name(entries[-1][1].co_name) == user_name(code.co_name):
                code = entries.pop()[1]
            entries.append((trace, code))
        trace = trace.tb_next
    result: TracebackType | None = None
    for entry, code in reversed(entries):
        frame, last_instruction = entry.tb_frame, entry.tb_lasti
        if code is not frame.f_code or code.co_name == STATEMENTS:
            frame = _frame_in_source(frame, code, entry.tb_lineno)
            last_instruction = frame.f_lasti
        result = TracebackType(result, frame, last_instruction, entry.tb_lineno)
    return result


def _is_library(file: str) -> bool:
    """Whether the file is torch's or the notebook's machinery, or generated.

    Inductor's files are in a folder `torchinductor_USER`, or in the one that its variable names.
    """
    folder = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
    is_inductors = f"{os.sep}torchinductor_" in file or bool(folder and file.startswith(os.path.join(folder, "")))
    return is_inductors or in_torch(file) or is_plumbing(file) or file.startswith("<eval_with_key>")


def _frame_in_source(frame: FrameType, code: CodeType, line: int) -> FrameType:
    """A frame that fails at `line` of the source, for IPython to show in place of `frame`.

    In the source, the cell's statements are no function, so their frame is one of a module.  A resume function is a part of
    another function; its frame has the first line, the name and the arguments of that function's `code`.
    """
    if code.co_name == STATEMENTS:
        failing = compile("\n" * (line - 1) + "1/0", code.co_filename, "exec")
    else:
        first = code.co_firstlineno
        text = "\n" * (first - 1) + "def f():" + "\n" * (line - first) + " 1/0"
        failing = next(c for c in compile(text, code.co_filename, "exec").co_consts if isinstance(c, CodeType))
        same = ("co_name", "co_qualname", "co_argcount", "co_posonlyargcount", "co_kwonlyargcount")
        names, star, stars = inspect.getargs(code)
        names += filter(None, (star, stars))
        failing = failing.replace(
            **{name: getattr(code, name) for name in same if hasattr(code, name)},
            co_flags=failing.co_flags | code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS),
            co_varnames=tuple(names), co_nlocals=len(names),
        )  # fmt: skip
    keywords = failing.co_varnames[failing.co_argcount :][: failing.co_kwonlyargcount]
    try:
        FunctionType(failing, frame.f_globals)(*[...] * failing.co_argcount, **dict.fromkeys(keywords, ...))
    except ZeroDivisionError as error:
        frame = list(traceback.walk_tb(error.__traceback__))[-1][0]
    return frame


def _render(shell: Any, error: BaseException) -> list[str]:
    chain = _chain(error)
    before = [(e, e.__traceback__, e.__cause__, e.__context__, e.__suppress_context__) for e in chain]
    try:
        for e in chain:
            e.__traceback__ = trimmed(e.__traceback__)
            if module_of(type(e)).startswith("torch."):
                e.__cause__, e.__suppress_context__ = None, True  # its causes show only the compiler's own frames
        shown, trace = (type(error), error), error.__traceback__
        if trace is None:  # the compiler refused the statements themselves: the message says where
            lines = _message(shell, error)
        else:
            try:
                lines = shell.InteractiveTB.structured_traceback(*shown, trace, tb_offset=0)
            except TypeError:
                # IPython hashes the code of each frame, and Dynamo's code objects may hold constants without a hash.  Its
                # formatter for syntax errors prints the places alone.
                lines = shell.SyntaxTB.structured_traceback(*shown, traceback.extract_tb(trace), tb_offset=0)
    finally:
        for e, trace, cause, context, suppressed in before:
            e.__traceback__, e.__cause__, e.__context__, e.__suppress_context__ = trace, cause, context, suppressed
    return [_with_source_names(shell, line) for line in lines]


def _chain(error: BaseException) -> list[BaseException]:
    """The exception with its causes and contexts."""
    chain: list[BaseException] = []
    todo: list[BaseException | None] = [error]
    while todo:
        e = todo.pop()
        if e is not None and not any(e is other for other in chain):
            chain.append(e)
            todo += [e.__cause__, e.__context__]
    return chain


def _with_source_names(shell: Any, text: str) -> str:
    """A line of a traceback with functions and cells named as in a plain cell: no resume functions, `Cell In[3]`."""

    def cell_label(match: re.Match[str]) -> str:
        label = shell.compile.format_code_name(match["file"])
        return match[0] if label is None else f"{label[0]} {label[1]}, line {match['line']}"

    return _RESUME_NAME.sub(r"\1", _FILE.sub(cell_label, text)).replace(f", in {STATEMENTS}", "")


def _show_syntax_error(shell: Any, error: SyntaxError) -> None:
    """Make IPython show the next syntax error as in a plain cell: with the user's frames, if running code raised it."""

    def show_once(filename: str | None = None, running_compiled_code: bool = False) -> None:
        _hooks.close()
        formatter, places = shell.SyntaxTB, traceback.extract_tb(trimmed(error.__traceback__))
        is_running = any(origin(place.filename) == "user" for place in places)  # or else Python has refused the cell's text
        lines = formatter.structured_traceback(type(error), error, places if is_running else [])
        shown = [_with_source_names(shell, line) for line in lines]
        with patched(vars(formatter), {"structured_traceback": lambda *args: shown}):
            shell.showsyntaxerror(filename, running_compiled_code)

    _hooks.enter_context(patched(vars(shell), {"showsyntaxerror": show_once}))
