"""A call that can be run again without a trace in the user's world.

`Repeat` is made before the call, because the call may change its arguments: it keeps copies of them, for as long as it
lives.  `with repeat.without_trace() as again:` then gives a function that prepares one more call on fresh copies; what
the calls change beside their arguments is put back after each (`world`), what they print is held back, random state and
gradients are those of before.
"""

from __future__ import annotations

import contextlib
import io
import random
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from dynascope.compiler.replay import side_effects
from dynascope.compiler.replay.clone import Copies, NotRepeatable
from dynascope.compiler.replay.snapshot import World

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


#: where what `--profile` and `--check` put around an entry point keeps it
_ENTRY = "_dynascope_entry"


def watching(call: Callable[..., Any], entry: Callable[..., Any]) -> Callable[..., Any]:
    """`call`, marked as what watches the calls of `entry`."""
    vars(call)[_ENTRY] = entry
    return call


def unwatched(entry: Callable[..., Any]) -> Callable[..., Any]:
    """The entry point itself."""
    while _ENTRY in getattr(entry, "__dict__", ()):
        entry = vars(entry)[_ENTRY]
    return entry


class Prepare(Protocol):
    """Puts the world back and gives the arguments of one more call."""

    def __call__(self, *, lightly: bool = False) -> Arguments: ...


class Repeat:
    """One call of `function`; made before it, with its arguments as they are then.

    `why_not` tells why the call cannot be run again; `warnings` tells what no one can undo.
    """

    def __init__(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], names: dict[str, Any] | None = None
    ) -> None:
        """`names`: the namespace whose names each call shall find as they are now (that of a cell's statements)."""
        self.function = function
        self._namespace = names
        self._before: dict[str, Any] = {}
        self._kept: tuple[Any, Any, Any] = ((), {}, {})
        self._why_not: str | None = None
        self._locks: list[tuple[Any, Any]] = []
        self.notes: list[str] = []
        self._made: set[int] = set()
        self._outside: list[str] = []
        self._beyond: list[str] = []
        try:
            self._look(args, kwargs)
        except NotRepeatable as reason:
            self._why_not = str(reason)
        except Exception as error:  # looking at the user's objects can run their code
            self._why_not = f"looking at what it reaches raised {type(error).__name__}: {error}"

    @property
    def why_not(self) -> str | None:
        """Why the call cannot be run again, as the end of a sentence; None: it can."""
        if self._why_not is None and any(side_effects.how_taken(lock) != before for lock, before in self._locks):
            return "a lock or a semaphore is not as it was before the call, and the next call could wait for it for ever"
        return self._why_not

    def _look(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Keep copies of the arguments; raises NotRepeatable."""
        world = World([self.function, args, kwargs], values=False)
        self._outside, self._beyond, self._locks = world.outside(), world.notes, world.locks
        if world.asks():
            raise NotRepeatable(f"it calls {', '.join(world.asks())}, which waits for you")
        names = self._namespace
        if names is not None:
            self._before = {name: names[name] for name in world.names_in(names) if name in names}
        copies = Copies()
        self._kept = copies((args, kwargs, self._before))
        self._made = copies.made
        for value in world.once:
            if id(value) not in copies.replaced:
                raise NotRepeatable(f"it can reach a {type(value).__name__}, which runs only once")

    def warnings(self) -> list[str]:
        """What cannot be undone, one sentence each; known before the first repeated call."""
        if not self._outside:
            return list(self._beyond)
        words = ", ".join(f"{name}()" for name in self._outside)
        return [f"the call uses {words}: what that does outside Python is done again by each repeated call", *self._beyond]

    @contextlib.contextmanager
    def without_trace(self) -> Iterator[Prepare]:
        """Yields a function that puts everything back and gives fresh arguments for one more call.

        With `lightly=True` it puts back only what earlier calls were found to change: quick, and everything is put back
        at the end.  The world is remembered anew when this is entered: it is the one that the user sees afterwards.
        """
        world = World([self.function, self._kept], spared=self._made)

        def prepare(*, lightly: bool = False) -> Arguments:
            world.restore(lightly=lightly)
            args, kwargs, before = Copies()(self._kept)
            if self._namespace is not None:
                self._namespace.update(before)
            return args, kwargs

        with contextlib.ExitStack() as stack:
            stack.enter_context(random_state())
            stack.callback(self._put_back, world)
            stack.enter_context(contextlib.redirect_stdout(held_back(sys.stdout)))
            stack.enter_context(contextlib.redirect_stderr(held_back(sys.stderr)))
            stack.enter_context(warnings.catch_warnings())
            warnings.simplefilter("ignore")
            yield prepare

    def _put_back(self, world: World) -> None:
        world.restore()
        self.notes.extend(note for note in world.notes if note not in self._beyond)


class _HeldBack:
    """A stream that keeps back what one thread writes; what others write goes through, for `sys.stdout` is everybody's."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._instead = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="replace")
        self._thread = threading.get_ident()

    @property
    def _now(self) -> Any:
        return self._instead if threading.get_ident() == self._thread else self._stream

    def write(self, text: str) -> int:
        return int(self._now.write(text))

    def writelines(self, lines: Any) -> None:
        self._now.writelines(lines)

    def flush(self) -> None:
        self._now.flush()

    @property
    def buffer(self) -> Any:
        return self._now.buffer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def held_back(stream: Any) -> Any:
    """What the calling thread writes to this stream is lost; None, where there is no stream, takes everything."""
    return io.StringIO() if stream is None else _HeldBack(stream)


@contextlib.contextmanager
def random_state() -> Iterator[None]:
    """Python's, NumPy's and torch's random state (on every device that was used), as before."""
    import torch

    numpy = sys.modules.get("numpy")
    python, generator = random.getstate(), torch.random.get_rng_state()
    array = numpy.random.get_state() if numpy is not None else None
    devices = [
        (module.set_rng_state_all, module.get_rng_state_all())
        for module in (getattr(torch, name, None) for name in ("cuda", "xpu"))
        if module is not None and module.is_available() and module.is_initialized()
    ]
    if torch.backends.mps.is_available():
        devices.append((torch.mps.set_rng_state, torch.mps.get_rng_state()))
    try:
        yield
    finally:
        random.setstate(python)
        torch.random.set_rng_state(generator)
        if numpy is not None:
            numpy.random.set_state(array)
        for put_back, state in devices:
            put_back(state)
