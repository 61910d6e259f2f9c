"""Sends what a run from the view prints, displays and raises to the view alone, a few times a second."""

from __future__ import annotations

import contextlib
import io
import sys
import time
from functools import partial
from typing import Any, TextIO

from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell

from dynascope.widgets.words import as_overwritten

#: seconds between two updates of the view
_UPDATE_EVERY = 0.2


class _Sink(io.RawIOBase):
    """Where a stream's bytes go: to an Output and, once the run is over, to the original stream.

    A logger that the cell sets up keeps its stream.
    """

    def __init__(self, output: Output, original: Any) -> None:
        self.output, self.original = output, original

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        text = bytes(data).decode("utf-8", "surrogatepass")
        if self.output.is_over:
            self.original.write(text)
        else:
            self.output.add("stream", text)
        return len(data)

    def flush(self) -> None:
        if self.output.is_over:
            self.original.flush()


def _stream(output: Output, original: Any) -> TextIO:
    """A text stream into a `_Sink`: one of Python's own, because Dynamo traces the methods of any other class."""
    sink: Any = _Sink(output, original)
    return io.TextIOWrapper(sink, "utf-8", "surrogatepass", newline="", write_through=True)


class Output:
    """A context manager inside which everything that is printed and displayed is shown in the view, as text."""

    def __init__(self, view: Any) -> None:
        self.view = view
        #: (kind, the texts that belong together)
        self._parts: list[tuple[str, list[str]]] = []
        self._updated = 0.0
        self._stack = contextlib.ExitStack()
        self.is_over = False

    def __enter__(self) -> Output:
        import torch

        self.view.output([])
        self._stack.enter_context(contextlib.redirect_stdout(_stream(self, sys.stdout)))
        self._stack.enter_context(contextlib.redirect_stderr(_stream(self, sys.stderr)))
        output = self
        shell: Any = InteractiveShell.instance()
        before = shell.display_pub
        untraced = partial(torch.compiler.disable, reason="Run again shows it in the view")

        class Publisher(CapturingDisplayPublisher):
            def __getattr__(self, name: str) -> Any:
                return getattr(before, name)  # the kernel may use attributes of its own publisher meanwhile

            @untraced
            def publish(self, data: Any, *args: Any, **kwargs: Any) -> None:
                if kwargs.get("update"):  # of what a cell displayed, such as the report of the first run
                    before.publish(data, *args, **kwargs)
                else:
                    output.add("data", str(data.get("text/plain", "")) + "\n")

            @untraced
            def clear_output(self, wait: bool = False) -> None:
                output.clear()

        publisher: Any = Publisher
        shell.display_pub = publisher()
        self._stack.callback(setattr, shell, "display_pub", before)
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()
        self.is_over = True
        self._show()

    def add(self, kind: str, text: str) -> None:
        """Add a part of this kind ("stream", "data" or "error")."""
        if self._parts and self._parts[-1][0] == kind == "stream":
            self._parts[-1][1].append(text)
        else:
            self._parts.append((kind, [text]))
        if time.monotonic() - self._updated > _UPDATE_EVERY:
            self._show()
            self._updated = time.monotonic()  # after it: joining a long text takes time

    def clear(self) -> None:
        """Remove what was added so far; the view changes with the next part."""
        self._parts.clear()

    def _show(self) -> None:
        self.view.output([{"type": kind, "text": as_overwritten("".join(texts))} for kind, texts in self._parts])

    def add_value(self, shell: Any, value: Any) -> None:
        """Add the cell's result."""
        if value is not None:
            data, _ = shell.display_formatter.format(value, include={"text/plain"})
            self.add("data", str(data.get("text/plain", "")))
