"""Parses source text as `ast.parse` does, without warnings, and in threads; says what is wrong with an input."""

from __future__ import annotations

import ast
import contextlib
import threading
import warnings
from collections.abc import Iterator


def syntax_tree(text: str) -> ast.Module:
    """`ast.parse`, for text that another thread may parse at the same time; raises what that raises.

    In Python 3.11, threads share the counter of the tree's depth, and one of them may get a SystemError.
    """
    with no_syntax_warnings():
        for _ in range(9):
            with contextlib.suppress(SystemError):
                return ast.parse(text)
        return ast.parse(text)


def parsed(text: str) -> ast.Module | None:
    """The tree of a text; None if it is not valid Python."""
    try:
        return syntax_tree(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


@contextlib.contextmanager
def no_syntax_warnings() -> Iterator[None]:
    """Keep Python from warning of invalid escape sequences and the like: any such warning was due when it compiled the program.

    In other threads than the main one this does nothing, because the filters of warnings belong to all threads.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        warnings.filterwarnings("ignore", "invalid ", DeprecationWarning)  # what Python before 3.12 says of escape sequences
        yield


@contextlib.contextmanager
def errors_as(
    kind: type[Exception], about: str = "", errors: tuple[type[Exception], ...] = (ValueError, LookupError)
) -> Iterator[None]:
    """Raise such errors, whose message says what is wrong with the input, as another kind; its message begins with `about`."""
    try:
        yield
    except errors as error:
        raise kind(f"{about}{error}") from None
