"""`pytest --dynascope examples/` runs every notebook and MyST page as a test (`dynascope.docs_tests.runner`).

A project's own tests can use the fixture `dynascope_expect`:

    def test_model(dynascope_expect):
        with dynascope_expect("graphs=1,breaks=0"):
            compiled(x)

pytest loads this module wherever dynascope is installed, so it imports next to nothing unless `--dynascope` is given or a test
uses the fixture.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from dynascope.compiler.driver import Run
    from dynascope.compiler.report.comparison import Expectation


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("dynascope", "notebooks as tests")
    group.addoption("--dynascope", action="store_true", help="Run .ipynb and MyST .md pages as tests.")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    config = parent.config
    if not config.getoption("--dynascope"):
        return None
    from dynascope.docs_tests.pages import is_page

    if ".ipynb_checkpoints" in file_path.parts or not is_page(file_path):
        return None
    return PageFile.from_parent(parent, path=file_path)


class PageFile(pytest.File):
    """One page; its only item runs all of it, because cells depend on earlier ones."""

    def collect(self) -> Iterable[pytest.Item]:
        yield PageItem.from_parent(self, name="notebook")


class PageItem(pytest.Item):
    """The test that runs one page."""

    def runtest(self) -> None:
        from dynascope.docs_tests.runner import run_page

        here = self.config.invocation_params.dir
        path = self.path.relative_to(here) if self.path.is_relative_to(here) and here == Path.cwd() else self.path
        result = run_page(path)
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

    def __init__(self, expected: list[Expectation]) -> None:
        self.expected = expected
        self.entered = False

    def __str__(self) -> str:
        return ",".join(map(str, self.expected))

    def __enter__(self) -> Run:
        from dynascope.compiler.driver import Run

        self.entered = True
        self._run = Run()  # traces again what an earlier test has compiled
        return self._run.__enter__()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        __tracebackhide__ = True
        from dynascope.compiler.report import comparison

        self._run.__exit__(kind, error, trace)
        if kind is not None:
            return
        report = self._run.report
        nothing = all(f.status == "ignored" for f in report.frames)
        if nothing and all(e.name != "graphs" for e in self.expected):
            raise comparison.ExpectationFailed(
                f"expected {self}, but nothing was compiled: call a compiled function in the block"
            )
        comparison.check_expectations(report, self.expected)


@pytest.fixture
def dynascope_expect() -> Iterator[Callable[..., ExpectingBlock]]:
    """`with dynascope_expect("graphs=1,breaks=0"): compiled(x)` fails if the counts are different."""
    blocks: list[ExpectingBlock] = []

    def expecting(expected: str = "", /, **counts: int | str) -> ExpectingBlock:
        """A block whose report must have these counts; raises ValueError for an expectation that cannot be read."""
        __tracebackhide__ = True  # pytest shows the test's own line
        from dynascope.compiler.report import comparison

        try:
            blocks.append(ExpectingBlock(comparison.read_expectations(expected, **counts)))
        except ValueError as error:
            raise ValueError(str(error)) from None
        return blocks[-1]

    yield expecting
    unused = [str(block) for block in blocks if not block.entered]
    if unused:
        pytest.fail(f"dynascope_expect({unused[0]!r}) was never entered: write it as `with ...:`", pytrace=False)
