"""Adds a note if torch.export ran and its graph is not in the log: an empty report would look as if nothing had happened.

Some records belong to no compile of torch.compile: torch.export, AOTInductor, or AOTAutograd used by itself wrote them.  A
report shows the graphs in them like any other, but torch logs the graph of an export only in some versions and modes.
"""

from __future__ import annotations

from typing import Any

from dynascope.compiler.builder.events.trace_records import record_compile_id
from dynascope.compiler.report import listed, plural

_GRAPHS = frozenset({"exported_program", "aot_forward_graph", "aot_inference_graph", "aot_joint_graph"})
_GUARDS = frozenset({"guard_added", "guard_added_fast"})
_FOLDERS = ("torch/export/", "torch/_export/", "torch\\export\\", "torch\\_export\\")


class OutsideCompiles:
    """Counts the records of one run that torch.export wrote, and the graphs from outside torch.compile."""

    def __init__(self) -> None:
        self._graphs = 0
        self._started: set[str] = set()
        #: number of records that torch.export wrote
        self._of_export = 0
        #: the guards, each once, in the order of their first record
        self._guards: dict[str, None] = {}

    def add(self, name: str, metadata: dict[str, Any]) -> None:
        """Count a record, even one that reports do not show."""
        compile_id = record_compile_id(metadata)
        if compile_id is not None:
            # torch.export(strict=True) traces with Dynamo, which then logs no dynamo_start (in torch 2.9 it does)
            if name == "dynamo_start":
                self._started.add(compile_id)
            self._graphs += name == "dynamo_output_graph" and compile_id not in self._started
            if name != "create_symbol" or compile_id in self._started:
                return
        self._graphs += name in _GRAPHS
        stack = metadata.get("stack") or (metadata[name].get("stack") if name == "create_symbol" else None)
        files = (str(entry["filename"]) for entry in stack or ())
        self._of_export += name == "exported_program" or any(folder in file for file in files for folder in _FOLDERS)
        if name in _GUARDS:
            self._guards[str(metadata[name].get("expr"))] = None

    def notes(self) -> list[str]:
        """One sentence if torch.export ran and the log has no graph from outside torch.compile; else none."""
        if not self._of_export or self._graphs:
            return []
        words = f", which added {plural(len(self._guards), 'guard')}: {listed(self._guards, 5)}" if self._guards else ""
        return [f"torch.export ran{words}; this version of torch does not write the graph of an export into the log"]
