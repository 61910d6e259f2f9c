"""pytest --dynascope examples/: every notebook and MyST page is a test (see dynascope.notebooks).

Loaded by pytest wherever dynascope is installed, so it does nothing, and imports next to nothing,
unless `--dynascope` is given.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

TIMEOUT = "dynascope_timeout"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("dynascope", "notebooks as tests")
    group.addoption("--dynascope", action="store_true", help="Run .ipynb and MyST .md pages as tests.")
    group.addoption(
        "--dynascope-update", action="store_true",
        help="With --dynascope: store the new outputs of notebooks instead of comparing.",
    )  # fmt: skip
    group.addoption(
        "--dynascope-timeout", type=float, default=None, metavar="SECONDS",
        help="Time limit of a cell where neither it nor its page gives one (default: 300; 0: none).",
    )  # fmt: skip
    parser.addini(TIMEOUT, "Time limit of a notebook's cell, in seconds.", default="")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    config = parent.config
    if not config.getoption("--dynascope") or file_path.suffix not in (".ipynb", ".md"):
        return None
    if ".ipynb_checkpoints" in file_path.parts:
        return None
    from dynascope.notebook_pages import is_page

    named = any(Path(str(given).split("::")[0]).resolve() == file_path for given in config.args)
    return PageFile.from_parent(parent, path=file_path) if is_page(file_path, explicit=named) else None


class PageFile(pytest.File):
    """One page; its only item runs it whole, because cells build on one another."""

    def collect(self) -> Iterable[pytest.Item]:
        yield PageItem.from_parent(self, name="notebook")


class PageFailure(Exception):
    """Carries a page's problems to the report."""


class PageItem(pytest.Item):
    """Running one page."""

    def runtest(self) -> None:
        from dynascope.notebook_pages import DEFAULT_TIMEOUT
        from dynascope.notebooks import run_page

        options = self.config.option
        limit = options.dynascope_timeout
        if limit is None:
            limit = float(self.config.getini(TIMEOUT) or DEFAULT_TIMEOUT)
        here = self.config.invocation_params.dir
        path = self.path.relative_to(here) if self.path.is_relative_to(here) and here == Path.cwd() else self.path
        result = run_page(path, update=options.dynascope_update, timeout=limit)
        if result.skipped:
            pytest.skip(result.skipped)
        for note in result.notes:
            self.add_report_section("call", "notes", note)
        if not result.ok:
            raise PageFailure("\n\n".join(map(str, result.problems)))

    def repr_failure(self, excinfo: Any, style: Any = None) -> Any:
        if isinstance(excinfo.value, PageFailure):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, str(self.path.name)
