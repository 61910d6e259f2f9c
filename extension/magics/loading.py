"""Implements `%load_ext` and `%unload_ext`: adds the magics to a shell, and removes exactly what was added."""

from __future__ import annotations

import sys
from typing import Any

from traitlets import TraitError

from dynascope.cell import tracebacks
from dynascope.compiler.patching import own, put
from dynascope.compiler.source import edited
from dynascope.magics.completion import matcher_for
from dynascope.magics.magics import DynascopeMagics
from dynascope.runs import history, rerun

_MAGICS = ("compile", "observe", "compile_defaults", "fix")
_KINDS = ("line", "cell")
_EVENTS = (
    ("pre_run_cell", rerun.before_cell),
    ("post_run_cell", rerun.after_cell),
    ("post_run_cell", tracebacks.after_cell),
    ("post_run_cell", lambda result=None: edited.note_loaded()),
)


class _Loaded:
    """What was added to one shell, and what was there before."""

    def __init__(self, shell: Any) -> None:
        table = shell.magics_manager.magics
        self.shell = shell
        self.replaced = {(kind, name): own(table[kind], name) for kind in _KINDS for name in _MAGICS}
        self.magics = _configured(shell)
        shell.register_magics(self.magics)
        self.matcher = matcher_for(self.magics)
        shell.Completer.custom_matchers.append(self.matcher)
        for event, hook in _EVENTS:
            shell.events.register(event, hook)
        edited.note_loaded()

    def undo(self) -> None:
        manager = self.shell.magics_manager
        for (kind, name), replaced in self.replaced.items():
            if getattr(manager.magics[kind].get(name), "__self__", None) is self.magics:  # else something else has replaced it
                put(manager.magics[kind], name, replaced)
        if manager.registry.get(type(self.magics).__name__) is self.magics:
            del manager.registry[type(self.magics).__name__]
        for added, to in ((self.magics, self.shell.configurables), (self.matcher, self.shell.Completer.custom_matchers)):
            if added in to:
                to.remove(added)
        for event, hook in _EVENTS:
            if hook in self.shell.events.callbacks[event]:
                self.shell.events.unregister(event, hook)
        tracebacks.after_cell()
        rerun.switch_off()
        history.forget()


def _configured(shell: Any) -> DynascopeMagics:
    """The magics, configured by IPython; if the configuration has a value that they cannot take, all of it is ignored."""
    try:
        return DynascopeMagics(shell)
    except TraitError as error:
        shell.configurables[:] = [c for c in shell.configurables if not isinstance(c, DynascopeMagics)]
        shell.config.pop(DynascopeMagics.__name__)
        print(f"dynascope: the configuration is ignored: {error}", file=sys.stderr)
        return DynascopeMagics(shell)


_loaded: dict[int, _Loaded] = {}


def load(shell: Any) -> None:
    """Add the magics, their configuration, their completion and the hooks for cells; a second call changes nothing."""
    if id(shell) not in _loaded:
        _loaded[id(shell)] = _Loaded(shell)


def unload(shell: Any) -> None:
    """Remove what `load` added."""
    loaded = _loaded.pop(id(shell), None)
    if loaded is not None:
        loaded.undo()
