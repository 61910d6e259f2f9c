"""`pytest --dynascope examples/` runs every notebook as a test (`dynascope.docs_tests.runner`).

A project's own tests can use the fixture `dynascope_expect`:

    def test_model(dynascope_expect):
        with dynascope_expect("graphs=1,breaks=0"):
            compiled(x)

pytest loads this module wherever dynascope is installed, so it imports next to nothing unless `--dynascope` is given or a test
uses the fixture.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from dynascope.compiler.driver import Run


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("dynascope", "notebooks as tests")
    group.addoption("--dynascope", action="store_true", help="Run notebooks as tests.")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    is_page = file_path.suffix == ".ipynb" and ".ipynb_checkpoints" not in file_path.parts
    return PageFile.from_parent(parent, path=file_path) if is_page and parent.config.getoption("--dynascope") else None


class PageFile(pytest.File):
    """One page; its only item runs all of it, because cells depend on earlier ones."""

    def collect(self) -> Iterable[pytest.Item]:
        yield PageItem.from_parent(self, name="notebook")


class PageItem(pytest.Item):
    """The test that runs one page."""

    def runtest(self) -> None:
        from dynascope.docs_tests.runner import run_page

        here = self.config.invocation_params.dir
        result = run_page(self.path.relative_to(here) if self.path.is_relative_to(here) and here == Path.cwd() else self.path)
        if result.skipped:
            pytest.skip(result.skipped)
        for note in result.notes:
            self.add_report_section("call", "notes", note)
        if not result.ok:
            pytest.fail("\n\n".join(map(str, result.problems)), pytrace=False)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, str(self.path.name)


class ExpectingBlock:
    """A context manager that records the code inside, which is traced again, and checks the expectations at the end.

    It yields the run.  If the code raises, the expectations are not checked.
    """

    def __init__(self, expected: str = "", /, **counts: int | str) -> None:
        """The counts that the report must have; raises ValueError for an expectation that cannot be read."""
        __tracebackhide__ = True  # pytest shows the test's own line
        from dynascope.compiler.report import comparison

        try:
            self.expected = comparison.read_expectations(expected, **counts)
        except ValueError as error:
            raise ValueError(str(error)) from None

    def __enter__(self) -> Run:
        from dynascope.compiler.driver import Run

        self._run = Run()  # traces again what an earlier test has compiled
        return self._run.__enter__()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        __tracebackhide__ = True
        from dynascope.compiler.report import comparison

        self._run.__exit__(kind, error, trace)
        if kind is None:
            comparison.check_expectations(self._run.report, self.expected)


@pytest.fixture
def dynascope_expect() -> type[ExpectingBlock]:
    """`with dynascope_expect("graphs=1,breaks=0"): compiled(x)` fails if the counts are different."""
    return ExpectingBlock
