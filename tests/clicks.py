"""Run again without a browser: a shell that passes for a kernel's, and the messages that a view's buttons send."""

from __future__ import annotations

import contextlib
import types
from collections.abc import Iterator
from typing import Any


class Loop:
    """A kernel's event loop: what is queued waits for the end of the cell."""

    def __init__(self) -> None:
        self.queued: list[Any] = []

    def add_callback(self, callback: Any, *args: Any) -> None:
        self.queued.append((callback, args))

    def run(self) -> None:
        while self.queued:
            callback, args = self.queued.pop(0)
            callback(*args)


class Clicks:
    """The buttons of the latest view."""

    def __init__(self) -> None:
        self.loop = Loop()
        self.views: list[Any] = []
        #: the updates of earlier displays: a kernel sends them to the front end, a terminal would print them
        self.updates: list[Any] = []

    def view(self) -> Any:
        return self.views[-1]

    def press(self, kind: str, number: int = -1, **request: Any) -> Any:
        """What another button sends, of the latest view or of the one with this number; the view."""
        view = self.views[number]
        view.on_request({"kind": kind, **request})
        return view

    def send(self, settings: dict[str, Any] | None = None, regions: dict[str, str] | None = None) -> None:
        """What the button sends: changed settings, and {target: "error" or "allow"}."""
        wanted = [{"target": target, "set": to} for target, to in (regions or {}).items()]
        self.view()._on_message(None, {"kind": "run_again", "settings": settings or {}, "regions": wanted, "id": 1}, None)

    def again(self, settings: dict[str, Any] | None = None, regions: dict[str, str] | None = None) -> Any:
        """Click, and let the loop run; the new report."""
        import dynascope

        before = dynascope.last()
        self.send(settings, regions)
        self.loop.run()
        assert dynascope.last() is not before, self.view().status
        return dynascope.last()


@contextlib.contextmanager
def clicks(ip: Any) -> Iterator[Clicks]:
    """For the duration `ip` is a kernel's shell, and every `%%compile` has a live view."""
    from dynascope.runs import rerun

    made = Clicks()
    ip.kernel = types.SimpleNamespace(io_loop=made.loop)
    ip.get_parent = dict
    view = next(c for c in ip.configurables if type(c).__name__ == "DynascopeMagics").view
    ip.run_line_magic("config", "DynascopeMagics.view = 'widget'")
    attach, publish = rerun.attach, ip.display_pub.publish

    def published(data: Any, *args: Any, **kwargs: Any) -> None:
        if kwargs.get("update"):
            made.updates.append(data)
        else:
            publish(data, *args, **kwargs)

    def attached(run: Any, display: Any) -> None:
        attach(run, display)
        made.views.append(display.view)

    rerun.attach = attached  # type: ignore[assignment]
    ip.display_pub.publish = published
    try:
        yield made
    finally:
        rerun.attach = attach
        del ip.display_pub.publish
        ip.run_line_magic("config", f"DynascopeMagics.view = {view!r}")
        del ip.kernel, ip.get_parent
