"""Small notebooks and pages, made where a test needs them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat

MIME = "application/vnd.dynascope.report+json"

#: plain Python that displays what a report's static output displays: its structure, and text with a time in it
REPORT = """\
def report(breaks, graphs=2, seconds=0.84):
    from IPython.display import display
    structure = {"summary": {"graphs": graphs, "breaks": len(breaks), "compile_seconds": seconds},
                 "breaks": [dict(zip(("type", "line", "outcome", "place"), b)) for b in breaks]}
    display({"text/plain": f"f: {graphs} graphs · compiled in {seconds} s",
             "application/vnd.dynascope.report+json": structure}, raw=True)
"""

Maker = Callable[..., Path]


def cell(source: str, *tags: str, **metadata: Any) -> Any:
    """A code cell with these tags."""
    made = nbformat.v4.new_code_cell(source)
    if tags:
        made.metadata["tags"] = list(tags)
    made.metadata.update(metadata)
    return made


def make_notebook(path: Path, *cells: Any, **metadata: Any) -> Path:
    """Write an .ipynb of these cells (sources or cells)."""
    notebook = nbformat.v4.new_notebook()
    notebook.metadata.update(metadata)
    notebook.cells = [cell(c) if isinstance(c, str) else c for c in cells]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(nbformat.writes(notebook))
    return path


def edit(path: Path, index: int, source: str, *tags: str) -> None:
    """Change one cell of a notebook, keeping the outputs that are stored for it."""
    notebook = nbformat.read(path, as_version=4)
    notebook.cells[index].source = source
    if tags:
        notebook.cells[index].metadata["tags"] = list(tags)
    path.write_text(nbformat.writes(notebook))
