"""Reads the pages that docs tests run: `.ipynb`, which can also be written, and MyST Markdown through jupytext.

A Page knows its cells, their tags and its time limit.  Nothing here runs code or loads torch.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SUFFIXES = (".ipynb", ".md")
DEFAULT_TIMEOUT = 300.0
_FRONT_MATTER = re.compile(r"\A---\s*\n(.*?)\n(?:---|\.\.\.)\s*(?:\n|\Z)", re.DOTALL)
_MYST_FRONT = re.compile(r"^\s*(?:file_format:\s*mystnb|format_name:\s*myst)\s*$", re.MULTILINE)
#: a kernelspec without a display name, as in PyTorch's own pages, is none for jupytext
_KERNELSPEC = re.compile(r"^kernelspec:\n(?:[ \t]+.*\n)*", re.M)


class PageError(Exception):
    """A page cannot be found, read or run; the message is one line."""


@dataclass
class Page:
    """One notebook or MyST page, with its cells as nbformat has them."""

    path: Path
    notebook: Any

    @property
    def stores_outputs(self) -> bool:
        """Whether the file is a notebook with outputs or execution counts; if it is, the outputs are compared."""
        return self.path.suffix == ".ipynb" and any(
            cell.get("outputs") or cell.get("execution_count") for _, cell in self.code_cells()
        )

    def code_cells(self) -> Iterator[tuple[int, Any]]:
        """(index among all cells, cell) of each code cell."""
        for index, cell in enumerate(self.notebook.cells):
            if cell.cell_type == "code":
                yield index, cell

    def number(self, index: int) -> int:
        """The code cell's number, counted from 1, as messages use it."""
        return sum(1 for i, _ in self.code_cells() if i <= index)

    def option(self, name: str) -> Any:
        """An option of the page as MyST-NB has it, under `mystnb` in the front matter or the metadata; None: not given."""
        return self.notebook.metadata.get("mystnb", {}).get(name)

    def skip_reason(self) -> str | None:
        """Why the whole page is skipped, or None."""
        is_off = self.option("execution_mode") in ("off", False)  # YAML reads an unquoted `off` as False
        return "the page is marked as not to be run" if is_off or "skip-execution" in tags_of(self.notebook) else None

    def timeout(self, default: float = DEFAULT_TIMEOUT) -> float | None:
        """Time limit of a cell in seconds: the page's, else `default`; None: there is none, which is given as 0."""
        given = self.option("execution_timeout")
        try:
            seconds = float(default if given is None else given)
        except (TypeError, ValueError):
            raise PageError(f"{self.path}: execution_timeout is {given!r}, not a number of seconds") from None
        return seconds if seconds > 0 else None

    def write(self) -> None:
        """Write the notebook to its .ipynb file."""
        import nbformat

        text: str = nbformat.writes(self.notebook)  # type: ignore[no-untyped-call, unused-ignore]
        self.path.write_text(text if text.endswith("\n") else text + "\n", encoding="utf-8")


def tags_of(cell: Any) -> set[str]:
    """The tags of a cell or of a notebook."""
    return set(map(str, cell.metadata.get("tags") or ()))


def is_hidden(tags: Set[str]) -> bool:
    """Whether these tags remove a cell's outputs from the page."""
    return bool(tags & {"remove-cell", "remove-output", "remove_cell", "remove_output"})


def read(path: Path) -> Page:
    """Read the page at `path`; raises PageError, with a one-line message, if it cannot be read as a page."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise PageError(f"{path}: cannot be read: {error}") from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # missing cell ids are added; nothing that is tested depends on them
            page = Page(path, _notebook(path, text))
    except ImportError:
        raise PageError(f"{path}: MyST pages need jupytext: pip install jupytext") from None
    except Exception as error:
        what = "a MyST page" if path.suffix == ".md" else "a notebook"
        raise PageError(f"{path}: not {what}: {(str(error).splitlines() or [type(error).__name__])[0]}") from None
    if path.suffix == ".md" and not any(page.code_cells()):
        raise PageError(f"{path}: no code cells")
    return page


def _notebook(path: Path, text: str) -> Any:
    if path.suffix == ".md":
        import jupytext

        return jupytext.reads(_KERNELSPEC.sub("", text, count=1), fmt="md:myst")
    import nbformat

    return nbformat.reads(text, as_version=4)  # type: ignore[no-untyped-call, unused-ignore]


def is_page(path: Path) -> bool:
    """Whether the file is a page for docs tests: a notebook, or a Markdown file whose front matter declares it as MyST."""
    if path.suffix != ".md":
        return path.suffix == ".ipynb"
    try:
        front = _FRONT_MATTER.match(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError):
        return False
    return front is not None and _MYST_FRONT.search(front[1]) is not None


def find(paths: Iterable[str | Path]) -> list[Path]:
    """Every page in these files and folders, in order, each once; raises PageError for a missing or unsuitable path."""
    pages: dict[Path, None] = {}
    for given in map(Path, paths):
        if given.is_dir():
            inside = [p for p in sorted(given.rglob("*")) if not _is_excluded(p, given) and is_page(p)]
            pages.update(dict.fromkeys(inside))
        elif not given.exists():
            raise PageError(f"{given}: no such file or folder")
        elif given.suffix in SUFFIXES:
            pages[given] = None
        else:
            raise PageError(f"{given}: neither an .ipynb nor an .md file")
    return list(pages)


def _is_excluded(path: Path, root: Path) -> bool:
    """Whether the file is in a folder that holds no sources, such as .ipynb_checkpoints, .git or a build folder."""
    folders = path.relative_to(root).parts[:-1]
    return any(part.startswith(".") or part in ("build", "_build", "node_modules", "__pycache__") for part in folders)
