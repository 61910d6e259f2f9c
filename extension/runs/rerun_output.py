"""Sends what a run from the view prints, displays and raises to the view alone, a few times a second."""

from __future__ import annotations

import contextlib
import io
import time
from typing import Any

from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell

#: seconds between two updates of the view
_UPDATE_EVERY = 0.2


class _Stream(io.TextIOBase):
    """A text stream that writes to an Output."""

    def __init__(self, output: Output) -> None:
        self.output = output

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.output.add("stream", str(text))
        return len(text)


class Output:
    """A context manager inside which everything that is printed and displayed is shown in the view, as text."""

    def __init__(self, view: Any) -> None:
        self.view = view
        self.parts: list[dict[str, str]] = []
        self._updated = 0.0
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Output:
        self.view.output([])
        stream: Any = _Stream(self)
        self._stack.enter_context(contextlib.redirect_stdout(stream))
        self._stack.enter_context(contextlib.redirect_stderr(stream))
        output = self
        shell: Any = InteractiveShell.instance()
        before = shell.display_pub

        class Publisher(CapturingDisplayPublisher):
            def __getattr__(self, name: str) -> Any:
                return getattr(before, name)  # the kernel may use attributes of its own publisher meanwhile

            def publish(self, data: Any, *args: Any, **kwargs: Any) -> None:
                if not kwargs.get("update"):
                    output.add("data", str(data.get("text/plain", "")) + "\n")

        publisher: Any = Publisher
        shell.display_pub = publisher()
        self._stack.callback(setattr, shell, "display_pub", before)
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()
        self.view.output(self.parts)

    def add(self, kind: str, text: str) -> None:
        """Add a part of this kind ("stream", "data" or "error")."""
        if self.parts and self.parts[-1]["type"] == kind == "stream":
            self.parts[-1]["text"] += text
        else:
            self.parts.append({"type": kind, "text": text})
        if time.monotonic() - self._updated > _UPDATE_EVERY:
            self._updated = time.monotonic()
            self.view.output(self.parts)

    def add_value(self, shell: Any, value: Any) -> None:
        """Add the cell's result."""
        if value is not None:
            data, _ = shell.display_formatter.format(value, include={"text/plain"})
            self.add("data", str(data.get("text/plain", "")))
