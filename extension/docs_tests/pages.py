"""Reads the pages that docs tests run: `.ipynb`, which can also be written, and MyST Markdown through jupytext.

A Page knows its cells, their tags and time limits, and, for MyST, the line of the file on which the source of each cell starts.
Nothing here runs code or loads torch.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dynascope.compiler.report import plural

SUFFIXES = (".ipynb", ".md")
DEFAULT_TIMEOUT = 300.0
_FRONT_MATTER = re.compile(r"\A---\s*\n(.*?)\n(?:---|\.\.\.)\s*(?:\n|\Z)", re.DOTALL)
_MYST_FRONT = re.compile(r"^\s*(?:file_format:\s*mystnb|format_name:\s*myst)\s*$", re.MULTILINE)
_CODE_CELL = re.compile(r"^[ \t]*(?:`{3,}|~{3,}|:{3,})\{code-cell\}", re.MULTILINE)


class PageError(Exception):
    """A page cannot be found, read or run; the message is one line."""


@dataclass
class Page:
    """One notebook or MyST page, with its cells as nbformat has them."""

    path: Path
    notebook: Any
    #: for each cell, the line of the file on which its source starts; None in an .ipynb, or if it was not found
    first_lines: list[int | None]
    #: notes for the test's result, one sentence each
    notes: list[str] = field(default_factory=list)

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
        """A page-wide option from the front matter or the notebook's metadata; None if not given."""
        return _option(self.notebook.metadata, name)

    def skip_reason(self) -> str | None:
        """Why the whole page is skipped, or None."""
        is_off = self.option("execution_mode") in ("off", False)  # YAML reads an unquoted `off` as False
        if is_off or "skip-execution" in tags_of(self.notebook):
            return "the page is marked as not to be run"
        metadata = self.notebook.metadata
        language = metadata.get("language_info", {}).get("name") or metadata.get("kernelspec", {}).get("language")
        if language and language not in ("python", "ipython", "ipython3"):
            return f"written in {language}, not in Python"
        return None

    def timeout(self, cell: Any, default: float = DEFAULT_TIMEOUT) -> float | None:
        """Time limit of a cell in seconds: its own, else the page's, else `default`.  A limit of 0 means none: returns None."""
        for given in (_option(cell.metadata, "execution_timeout"), self.option("execution_timeout"), default):
            if given is not None:
                try:
                    seconds = float(given)
                except (TypeError, ValueError):
                    raise PageError(f"{self.path}: execution_timeout is {given!r}, not a number of seconds") from None
                return seconds if seconds > 0 else None
        return None

    def write(self) -> None:
        """Write the notebook to its .ipynb file."""
        import nbformat

        text: str = nbformat.writes(self.notebook)  # type: ignore[no-untyped-call, unused-ignore]
        self.path.write_text(text if text.endswith("\n") else text + "\n", encoding="utf-8")


def tags_of(cell: Any) -> set[str]:
    """The tags of a cell or of a notebook."""
    tags = cell.metadata.get("tags")
    if isinstance(tags, str):
        return set(tags.replace(",", " ").split())
    return set(map(str, tags)) if isinstance(tags, list) else set()


def is_hidden(tags: Set[str]) -> bool:
    """Whether these tags remove a cell's outputs from the page."""
    return bool(tags & {"remove-cell", "remove-output", "remove_cell", "remove_output"})


def _option(metadata: Any, name: str) -> Any:
    """The value of an option in the metadata of a cell or a page; None if not given.

    It is at the top level, under `mystnb` or `dynascope`, or, for MyST-NB before 1.0, without its prefix under `execution`.
    """
    places = [(metadata, name), (metadata.get("mystnb"), name), (metadata.get("dynascope"), name)]
    places.append((metadata.get("execution"), name.removeprefix("execution_")))
    given = (holder.get(key) for holder, key in places if isinstance(holder, dict))
    return next((value for value in given if value is not None), None)


def read(path: Path) -> Page:
    """Read the page at `path`; raises PageError, with a one-line message, if it cannot be read as a page."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise PageError(f"{path}: cannot be read: {error}") from None
    return _read_myst(path, text) if path.suffix == ".md" else _read_ipynb(path, text)


def _read_ipynb(path: Path, text: str) -> Page:
    import nbformat

    notebook = _parse(lambda: nbformat.reads(text, as_version=4), f"{path}: not a notebook")  # type: ignore[no-untyped-call, unused-ignore]
    return Page(path, notebook, [None] * len(notebook.cells))


def _parse(parse: Callable[[], Any], what: str) -> Any:
    """Call `parse`; raises PageError, with a one-line message that starts with `what`, if that fails."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # missing cell ids are added; nothing that is tested depends on them
        try:
            return parse()
        except Exception as error:
            message = (str(error).splitlines() or [type(error).__name__])[0]
            raise PageError(f"{what}: {message}") from None


def _read_myst(path: Path, text: str) -> Page:
    try:
        import jupytext
        import yaml
    except ImportError:
        raise PageError(f"{path}: MyST pages need jupytext: pip install jupytext") from None
    front: dict[str, Any] = {}
    matter = _FRONT_MATTER.match(text)
    if matter:
        try:
            front = yaml.safe_load(matter[1]) or {}
        except yaml.YAMLError as error:
            raise PageError(f"{path}: front matter: {' '.join(str(error).split())}") from None
        if not isinstance(front, dict) or not isinstance(front.get("kernelspec") or {}, dict):
            raise PageError(f"{path}: front matter: {'kernelspec' if isinstance(front, dict) else 'it'} is not a mapping")
        # Jupytext validates the front matter against the notebook format; MyST-NB does not (it accepts a `kernelspec` without a
        # display name).  So the front matter is added afterwards, and empty lines in its place keep the line numbers.
        text = "\n" * matter[0].count("\n") + text[matter.end() :]
    notebook = _parse(lambda: jupytext.reads(text, fmt="md:myst"), f"{path}: not a MyST page")
    for name, value in front.items():
        notebook.metadata[name] = value
    notebook.metadata.pop("jupytext", None)
    kernelspec = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook.metadata["kernelspec"] = kernelspec | (front.get("kernelspec") or {})
    page = Page(path, notebook, _first_lines(notebook, text.splitlines()))
    for _, cell in page.code_cells():
        if "load" in cell.metadata:
            cell.source = _loaded(path, str(cell.metadata["load"]))
    if not any(page.code_cells()):
        raise PageError(f"{path}: no code cells")
    nested = len(_CODE_CELL.findall(text)) - sum(1 for _ in page.code_cells())
    if nested > 0:
        page.notes.append(f"{plural(nested, 'code cell')} inside lists or other blocks: not run (jupytext does not read them)")
    return page


def _loaded(page: Path, file: str) -> str:
    """The source of a cell with the option `:load:`."""
    try:
        return (page.parent / file).read_text(encoding="utf-8-sig").rstrip("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise PageError(f"{page}: load: {file} cannot be read: {error}") from None


def _first_lines(notebook: Any, lines: list[str]) -> list[int | None]:
    """The line on which each cell's source starts, or None; cells are in the order of the file, so one pass is enough."""
    lines = [line.strip() for line in lines]
    first_lines: list[int | None] = []
    start = 0
    for cell in notebook.cells:
        body = [line.strip() for line in cell.source.splitlines()]
        places = range(start, len(lines) - len(body) + 1) if body else ()
        index = next((i for i in places if lines[i : i + len(body)] == body), None)
        first_lines.append(None if index is None else index + 1)
        start = start if index is None else index + len(body)
    return first_lines


def is_page(path: Path, explicit: bool = False) -> bool:
    """Whether the file is a page for docs tests.

    The front matter of a Markdown file must declare it as MyST; if the file is named explicitly, a code cell is enough.
    """
    if path.suffix == ".ipynb":
        return True
    if path.suffix != ".md":
        return False
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return explicit
    front = _FRONT_MATTER.match(text)
    if front and _MYST_FRONT.search(front.group(1)):
        return True
    return explicit and _CODE_CELL.search(text) is not None


def find(paths: Iterable[str | Path]) -> list[Path]:
    """Every page in these files and folders, in order, each once; raises PageError for a missing or unsuitable path."""
    pages: dict[Path, None] = {}
    for given in map(Path, paths):
        if given.is_dir():
            inside = [p for p in sorted(given.rglob("*")) if p.suffix in SUFFIXES and not _is_excluded(p, given) and is_page(p)]
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
