"""Fixtures for tests in a browser: one server and one browser for all, a page for each test.

A test asks for `open_lab`: `lab = open_lab(["1 + 1"])` opens a new notebook of these cells, `lab.run(0)`
runs the first one to its end, and `lab.text(0)` is what it shows.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright", reason="the browser tests need playwright: pip install playwright")

from playwright.sync_api import Browser, BrowserContext, expect, sync_playwright

from browser.lab import CHROMIUM_FLAGS, LabPage, OpenLab, Server, find_chromium
from browser.view_pages import Shown, sample
from dynascope.compiler.ranks import RanksReport
from dynascope.compiler.report import Report
from tools.preflight import under_ci


def pytest_itemcollected(item: pytest.Item) -> None:
    """One process runs them all (`tests/conftest.py` sees to it), so that they share the server."""
    item.add_marker("browser")


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    """The browser.  Without one the tests are skipped, saying how to get it; never under CI."""
    path = find_chromium()
    expect.set_options(timeout=20_000)  # a busy machine is slow, and a test must not depend on that
    with sync_playwright() as playwright:
        if path is None and not Path(playwright.chromium.executable_path).exists():
            message = "no Chromium: apt-get install chromium, or: python -m playwright install --with-deps chromium"
            if under_ci():
                pytest.fail(message)
            pytest.skip(message)
        browser = playwright.chromium.launch(executable_path=path, args=CHROMIUM_FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def lab_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One JupyterLab for all tests; `write` puts a notebook into its folder."""
    server = Server(tmp_path_factory.mktemp("lab"))
    yield server
    server.stop()


@pytest.fixture
def open_lab(chromium: Browser, lab_server: Server, request: pytest.FixtureRequest) -> Iterator[OpenLab]:
    """open_lab(cells or path, width=1200, height=900): a notebook, open, its kernel idle.

    Given cells it is a new notebook; given a path inside the server's folder it is opened as it is.
    """
    opened: list[LabPage] = []
    numbers = itertools.count(1)

    def opener(what: Any, *, width: int = 1200, height: int = 900, **metadata: Any) -> LabPage:
        if isinstance(what, Path):
            name = what.relative_to(lab_server.root).as_posix()
        else:
            stem = "".join(c if c.isalnum() else "-" for c in request.node.name)
            name = lab_server.write(f"{stem}-{next(numbers)}.ipynb", what, **metadata).name
        page = LabPage(lab_server, chromium, name, width, height)
        opened.append(page)
        return page

    yield opener
    for page in opened:
        page.close()


@pytest.fixture
def open_page(chromium: Browser, tmp_path: Path) -> Iterator[Callable[..., Shown]]:
    """open_page("loop", dark=True, width=800): the page of a report, or of some HTML, in a browser without a network.

    No page asks for anything but itself, and the console has nothing to complain about.
    """
    contexts: list[BrowserContext] = []
    wanted: list[str] = []
    faults: list[str] = []

    def opener(
        what: str | Report | RanksReport, *, dark: bool = False, width: int = 1100, hash: str = "", **more: Any
    ) -> Shown:
        if not (isinstance(what, str) and what.startswith("<")):
            what = (sample(what) if isinstance(what, str) else what).to_html()
        size = {"width": width, "height": 900}
        path = tmp_path / f"page{len(contexts)}.html"
        path.write_text(what, "utf-8")
        context = chromium.new_context(offline=True, viewport=size, color_scheme="dark" if dark else "light", **more)
        contexts.append(context)
        page = context.new_page()
        page.on("request", lambda r: wanted.append(r.url))
        page.on("console", lambda m: faults.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda e: faults.append(str(e)))
        page.goto(path.as_uri() + hash)
        page.locator(".dyn-detail").first.wait_for()
        return Shown(page, page.locator("#dyn-view, .dyn-ranks").first)

    yield opener
    for context in contexts:
        context.close()
    assert [url for url in wanted if not url.startswith(("file:", "data:"))] == []
    assert faults == []
