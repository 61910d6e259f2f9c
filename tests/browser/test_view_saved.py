"""A saved notebook: picture and table, with the kernel restarted, gone, untrusted, offline, and in Notebook 7."""

from __future__ import annotations

import re
import time
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from browser.lab import LabPage, OpenLab, Server, shot_path
from browser.view_pages import MIXED, ONE, START, grave_faults, view_of

ERRORS = re.compile(r"error displaying widget|model not found|loading widget|widget.*not (?:found|trusted)", re.IGNORECASE)


def assert_picture_and_table(where: Locator) -> None:
    """The static output is to be seen, whole, and nothing else of ours speaks."""
    table, picture = where.locator("table").first, where.locator("img[src^='data:image/svg']").first
    expect(table).to_be_visible()
    expect(picture).to_be_visible()
    assert "torch._dynamo.graph_break()" in table.inner_text()
    width, shown = picture.evaluate("async i => { await i.decode(); return [i.naturalWidth, i.clientWidth]; }")
    assert width >= 250
    assert shown > 200
    assert not ERRORS.search(where.inner_text())


def assert_pictures_and_tables(lab: LabPage) -> None:
    """Below both cells."""
    for index in (1, 2):
        lab.cells().nth(index).scroll_into_view_if_needed()
        assert_picture_and_table(lab.outputs(index))


@pytest.fixture(scope="module")
def page(chromium: Browser, lab_server: Server) -> LabPage:
    """A notebook, run and saved once; tests open copies of it."""
    lab = LabPage(lab_server, chromium, lab_server.write("kept.ipynb", [START, ONE, MIXED]).name, 1100, 1000)
    lab.run_all()
    view_of(lab, 2)
    lab.save()
    return lab


def test_reload_with_its_kernel_then_restart_then_reload(page: LabPage) -> None:
    page.reload()
    shown = view_of(page, 1)
    shown.select("b0")
    assert "Graph break" in shown.detail()
    assert not page.cells().nth(1).locator(".dyn-static").is_visible()
    page.restart()
    page.reload()
    assert_pictures_and_tables(page)
    assert page.cells().locator(".dyn-widget .dyn").count() == 0
    page.shot("saved-after-restart")


def test_reopened_trusted_and_not(page: LabPage, lab_server: Server, open_lab: OpenLab) -> None:
    notebook = nbformat.read(page.save(), as_version=4)
    assert notebook.metadata.get("widgets", None) in (None, {})
    notebook.metadata["note"] = "another file, so no signature of this server's"
    path = lab_server.root / "foreign.ipynb"
    nbformat.write(notebook, path)
    trusted = """() => jupyterapp.shell.currentWidget.content.widgets.every(c => c.model.type !== 'code' || c.model.trusted)"""
    foreign = open_lab(path)
    assert not foreign.page.evaluate(trusted)
    assert_pictures_and_tables(foreign)
    foreign.shot("saved-untrusted")
    foreign.close()
    page.close()
    again = open_lab(lab_server.root / "kept.ipynb")
    assert again.page.evaluate(trusted)
    assert_pictures_and_tables(again)
    again.theme("dark")
    again.shot("saved-trusted-dark")


def offline(chromium: Browser, path: Path, **options: object) -> Page:
    """A file, opened in a browser without a network; what it asks for is in `page.wanted`."""
    context = chromium.new_context(offline=True, **options)  # type: ignore[arg-type]
    page = context.new_page()
    page.goto(path.as_uri(), wait_until="domcontentloaded")
    return page


def test_nbconvert_html_offline(page: LabPage, chromium: Browser, lab_server: Server, tmp_path: Path) -> None:
    from nbconvert import HTMLExporter

    text, _ = HTMLExporter().from_filename(str(lab_server.root / "kept.ipynb"))
    path = tmp_path / "kept.html"
    path.write_text(text, "utf-8")
    opened = offline(chromium, path, viewport={"width": 1000, "height": 1400})
    outputs = opened.locator(".jp-OutputArea, .output_area, .jp-Cell-outputArea")
    for index in range(2):
        assert_picture_and_table(outputs.filter(has=opened.locator(".dyn-static")).nth(index))
    assert not ERRORS.search(opened.locator("body").inner_text())
    opened.screenshot(path=shot_path("saved-nbconvert"), full_page=True)
    opened.context.close()


def test_notebook_7(chromium: Browser, lab_server: Server) -> None:
    seven = LabPage(lab_server, chromium, lab_server.write("seven.ipynb", [START, ONE]).name, 1100, 1000, app="notebook")
    seven.run_all()
    shown = view_of(seven, 1)
    shown.select("b0")
    assert "The program asks for it: remove the torch._dynamo.graph_break() call" in shown.detail()
    shown.line(6).click()
    assert shown.selected() == ["g1"]
    shown.root.get_by_label("search the split graph by name or line").fill("resume")
    expect(shown.root.locator(".dyn-found")).to_have_text(re.compile("found"))
    assert not seven.cells().nth(1).locator(".dyn-static").is_visible()
    assert shown.overflowing() == []
    assert grave_faults(seven.page, ".dyn-widget") == []
    shown.root.screenshot(path=shot_path("notebook7"))
    seven.save()
    seven.restart()
    seven.reload()
    time.sleep(0.5)
    assert_picture_and_table(seven.outputs(1))
    seven.shot("notebook7-saved")
    seven.close()
