"""Which region set the flag that was in force at a break: pure functions over what the hooks saw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dynascope.compiler import places


@dataclass(frozen=True)
class Flags:
    """The settings in force at one hit of a break; None is unknown."""

    error_on_graph_break: bool | None = None
    fullgraph: bool | None = None
    #: who set error_on_graph_break: a function's name (decorator) or a place (`with`); None where no region was traced
    region: str | None = None

    @property
    def allowed(self) -> bool | None:
        """Whether an explicit region allows the break."""
        if self.error_on_graph_break is None or self.fullgraph is None:
            return None
        return self.region is not None and not self.error_on_graph_break and not self.fullgraph


def at_end(event: dict[str, Any] | None, cell_of: places.CellResolver) -> Flags:
    """At a graph's end by a break.  The break may lie deeper, in calls whose tracing was given up just before."""
    if event is None:
        return Flags()
    chain = list(event.get("around") or ())
    stopped, stack = event.get("stopped") or [], event.get("stack") or []
    if stopped and stack and stopped[0]["at"][0] == stack[-1]["line"] and stopped[0]["file"] == stack[-1]["file"]:
        chain = [*stopped, *chain]
    return Flags(event["error_on_graph_break"], event["fullgraph"], _named(chain, cell_of))


def at_stop(event: dict[str, Any], cell_of: places.CellResolver) -> Flags:
    """Where tracing stopped for good."""
    chain = event.get("stopped") or []
    flag = chain[0]["flag"] if chain else event.get("error_on_graph_break")
    return Flags(flag, event.get("fullgraph"), _named(chain, cell_of))


def _named(chain: list[dict[str, Any]], cell_of: places.CellResolver) -> str | None:
    inner = ""
    for entry in chain:  # innermost first
        region = entry.get("region")
        if region is None:
            inner = entry["function"]
            continue
        if places.is_plumbing(region["file"]):
            return places.user_name(inner) or None
        line = region["line"]
        label = places.label(region["file"], cell_of(region["file"]))
        return f"{label}:{line}" if line else label
    return None
