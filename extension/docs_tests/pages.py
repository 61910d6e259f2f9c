"""Reads and writes the notebooks that docs tests run.

A Page knows its cells and their tags.  Nothing here runs code or loads torch.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dynascope.compiler.parsing import errors_as

SUFFIX = ".ipynb"
DEFAULT_TIMEOUT = 300.0
#: folders that hold no sources, and so do .ipynb_checkpoints, .git and the like
_NO_SOURCES = ("build", "_build", "node_modules", "__pycache__")


class PageError(Exception):
    """A page cannot be found, read or run; the message is one line."""


@dataclass
class Page:
    """One notebook, with its cells as nbformat has them."""

    path: Path
    notebook: Any

    @property
    def stores_outputs(self) -> bool:
        """Whether the file has outputs or execution counts; if it has, the outputs are compared."""
        return any(cell.get("outputs") or cell.get("execution_count") for _, cell in self.code_cells())

    def code_cells(self) -> Iterator[tuple[int, Any]]:
        """(index among all cells, cell) of each code cell."""
        for index, cell in enumerate(self.notebook.cells):
            if cell.cell_type == "code":
                yield index, cell

    def number(self, index: int) -> int:
        """The code cell's number, counted from 1, as messages use it."""
        return sum(1 for i, _ in self.code_cells() if i <= index)

    def write(self) -> None:
        """Write the notebook to its .ipynb file."""
        import nbformat

        nbformat.write(self.notebook, self.path)  # type: ignore[no-untyped-call, unused-ignore]


def tags_of(cell: Any) -> set[str]:
    """The tags of a cell or of a notebook."""
    return set(map(str, cell.metadata.get("tags") or ()))


def is_hidden(tags: Set[str]) -> bool:
    """Whether these tags remove a cell's outputs from the page."""
    return bool(tags & {"remove-cell", "remove-output", "remove_cell", "remove_output"})


def read(path: Path) -> Page:
    """Read the page at `path`; raises PageError, with a one-line message, if it cannot be read as a page."""
    import nbformat

    with errors_as(PageError, f"{path}: cannot be read: ", (OSError, UnicodeDecodeError)):
        text = path.read_text(encoding="utf-8-sig")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # missing cell ids are added; nothing that is tested depends on them
            return Page(path, nbformat.reads(text, as_version=4))  # type: ignore[no-untyped-call, unused-ignore]
    except Exception as error:
        raise PageError(f"{path}: not a notebook: {(str(error).splitlines() or [type(error).__name__])[0]}") from None


def find(paths: Iterable[str | Path]) -> list[Path]:
    """Every page in these files and folders, in order, each once; raises PageError for a missing or unsuitable path."""
    pages: dict[Path, None] = {}
    for given in map(Path, paths):
        if given.is_dir():
            for page in sorted(given.rglob(f"*{SUFFIX}")):
                folders = page.relative_to(given).parts[:-1]
                if not any(folder.startswith(".") or folder in _NO_SOURCES for folder in folders):
                    pages[page] = None
        elif not given.exists():
            raise PageError(f"{given}: no such file or folder")
        elif given.suffix == SUFFIX:
            pages[given] = None
        else:
            raise PageError(f"{given}: not an .ipynb file")
    return list(pages)
