"""The live view in a real JupyterLab: click, read, search, walk, switch theme; the kernel knows what is selected."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect
from programs import COLUMNS

from browser.lab import LabPage, Server, shot_path
from browser.view_pages import MIXED, ONE, START, VIEWS, Shown, grave_faults, view_of


@pytest.fixture(scope="module")
def lab(chromium: Browser, lab_server: Server) -> Iterator[LabPage]:
    """One notebook, run once, for all tests here: none changes what another one looks at."""
    name = lab_server.write("view.ipynb", [START, ONE, MIXED]).name
    page = LabPage(lab_server, chromium, name, 1200, 1300)
    page.run_all()
    page.focus()
    yield page
    page.close()


@pytest.fixture
def one(lab: LabPage) -> Shown:
    return view_of(lab, 1)


@pytest.fixture
def mixed(lab: LabPage) -> Shown:
    return view_of(lab, 2)


def selected_in_kernel(lab: LabPage, name: str) -> str:
    return lab.python(VIEWS + f"print([v.selected for v in views if v.content and v.content['name'] == '{name}'][-1])").strip()


def test_click_the_break_read_why_click_a_line_see_the_node(lab: LabPage, one: Shown) -> None:
    one.select("g0")
    expect(one.root.locator(".dyn-detail")).to_contain_text("Graph 0")
    one.select("b0")
    assert one.selected() == ["b0"]
    detail = one.detail()
    assert "Graph break torch._dynamo.graph_break()" in detail
    assert ("In[2]:5:5 in f" if COLUMNS else "In[2]:5 in f") in detail
    assert "The program asks for it: remove the torch._dynamo.graph_break() call" in detail
    assert one.line(5).get_attribute("aria-selected") == "true"
    assert selected_in_kernel(lab, "f") == "b0"
    one.line(7).click()
    expect(one.node("g1")).to_have_attribute("aria-pressed", "true")
    assert one.selected() == ["g1"]
    assert "Graph 1" in one.detail()
    assert selected_in_kernel(lab, "f") == "g1"


def test_the_kernel_selects_and_the_view_follows(lab: LabPage, one: Shown) -> None:
    lab.python(VIEWS + "next(v for v in views if v.content and v.content['name'] == 'f').selected = 'f1'")
    expect(one.node("f1")).to_have_attribute("aria-pressed", "true")
    expect(one.root.locator(".dyn-detail")).to_contain_text("Resume function")


def test_the_run_is_over_and_the_command_shows_only_after_a_change(lab: LabPage, one: Shown) -> None:
    told = lab.python(VIEWS + "print({(v.command, bool(v.settings)) for v in views if v.content['name'] == 'f'})")
    assert told.strip() == "{('', True)}"
    expect(one.root.locator(".dyn-command")).to_be_hidden()
    assert not one.root.locator(".dyn-progress").is_visible()
    expect(one.root.get_by_role("button", name="Stop")).to_have_count(0)


def test_the_static_twin_hides_while_the_view_lives(lab: LabPage) -> None:
    assert lab.cells().nth(1).locator(".dyn-static").count() == 1
    assert not lab.cells().nth(1).locator(".dyn-static").is_visible()


def test_loop_skip_nested_break_and_recompile_are_found(mixed: Shown) -> None:
    skipped = mixed.boxes("skipped")
    assert skipped.count() == 1
    assert "looped" in (skipped.text_content() or "")
    skipped.locator("text").first.click()
    assert "Skipped frame looped" in mixed.detail()
    assert "loop" in mixed.detail()
    nested = mixed.boxes("break").filter(has_text="2 hits")
    assert nested.count() == 1
    nested.click()
    mixed.root.get_by_role("tab", name="Frames (2)").click()
    assert "outer" in mixed.detail()
    assert "deep" in mixed.detail()
    mixed.boxes("version").click()
    assert "Why recompiled" in mixed.detail()
    assert "n was 2 when it was compiled, and is 3 now" in mixed.detail()
    rows = mixed.root.locator(".dyn-brow")
    assert rows.count() == 2
    assert "frame skipped" in rows.nth(0).inner_text()


def test_search_by_name_and_by_line(mixed: Shown) -> None:
    field = mixed.root.get_by_label("search the split graph by name or line")
    found = mixed.root.locator(".dyn-found")
    field.fill("looped")
    assert found.inner_text().endswith("found")
    assert mixed.root.locator(".dyn-node.dyn-dim").count() > 0
    field.press("Enter")
    assert "looped" in mixed.detail()
    field.fill("16")
    field.press("Enter")
    assert "scaled" in mixed.detail() or "Graph" in mixed.detail()
    field.fill("nothing like it")
    assert found.inner_text() == "nothing found"
    field.press("Escape")
    assert mixed.root.locator(".dyn-node.dyn-dim").count() == 0


def test_the_details_switches_come_and_go_with_what_can_run_them(lab: LabPage, one: Shown) -> None:
    one.select("b0")
    switches = one.root.locator(".dyn-switches")
    can_run = VIEWS + "next(v for v in views if v.content and v.content['name'] == 'f').can_run_again = "
    lab.python(can_run + "False")
    expect(switches).to_have_count(0)
    lab.python(can_run + "True")
    expect(switches).to_be_visible()


def test_zoom_and_fit(one: Shown) -> None:
    svg = one.root.locator(".dyn-pane > svg")
    before = float(svg.get_attribute("width") or 0)
    one.root.get_by_role("button", name="zoom in").click()
    assert float(svg.get_attribute("width") or 0) > 1.2 * before
    one.root.get_by_role("button", name="fit").click()
    assert float(svg.get_attribute("width") or 0) == pytest.approx(before, abs=2)


def focused(shown: Shown) -> str:
    return str(shown.page.evaluate("() => document.activeElement.dataset.id || document.activeElement.className"))


def test_one_tab_stop_arrows_enter_and_escape(one: Shown) -> None:
    one.select("b0")
    stops = one.root.locator(".dyn-split .dyn-node[tabindex='0']")
    assert stops.count() == 1
    stops.focus()
    keyboard = one.page.keyboard
    keyboard.press("ArrowUp")
    assert focused(one) == "g0"
    keyboard.press("ArrowDown")
    keyboard.press("ArrowDown")
    assert focused(one) == "f1"
    keyboard.press("Enter")
    assert focused(one) == "dyn-detail"
    assert "Resume function" in one.detail()
    keyboard.press("Escape")
    assert focused(one) == "f1"
    one.line(3).focus()
    keyboard.press("ArrowDown")
    keyboard.press("Enter")
    assert one.selected() == ["g0"]
    one.root.locator(".dyn-brow").first.focus()
    keyboard.press("Enter")
    assert focused(one) == "dyn-detail"
    # from the search field on, Tab leads through the view and out of it: no trap, few stops
    one.root.get_by_label("search the split graph by name or line").focus()
    seen = []
    for _ in range(30):
        keyboard.press("Tab")
        if not one.root.evaluate("root => root.contains(document.activeElement)"):
            break
        seen.append(focused(one))
    else:
        pytest.fail(f"Tab never leaves the view: {seen}")
    assert len(seen) < 16, seen


def test_no_text_leaves_its_box_and_axe_is_content(lab: LabPage, one: Shown, mixed: Shown) -> None:
    one.select("b0")
    mixed.select("b1")
    for theme, width in (("light", 1200), ("light", 600), ("dark", 800)):
        lab.theme(theme)
        lab.resize(width, 1300)
        for name, shown in (("one", one), ("mixed", mixed)):
            assert shown.overflowing() == [], (name, theme, width)
            shown.root.scroll_into_view_if_needed()
            shown.root.screenshot(path=shot_path(f"lab-{name}-{theme}-{width}"))
    assert grave_faults(lab.page, ".dyn-widget") == []
    lab.theme("light")
    lab.resize(1200, 1300)


def test_two_views_of_one_output_work_side_by_side(lab: LabPage, one: Shown) -> None:
    one.select("g0")
    lab.page.evaluate("""async () => { const n = jupyterapp.shell.currentWidget; n.content.activeCellIndex = 1;
      await jupyterapp.commands.execute('notebook:create-output-view'); jupyterapp.shell.activateById(n.id); }""")
    second = Shown(lab.page, lab.page.locator(".jp-LinkedOutputView .dyn-widget"))
    second.root.locator(".dyn-detail").wait_for(state="attached")
    expect(second.node("g0")).to_have_attribute("aria-pressed", "true")
    one.select("b0")
    expect(second.node("b0")).to_have_attribute("aria-pressed", "true")
    lab.page.evaluate(
        """() => { for (const w of jupyterapp.shell.widgets('main'))
          if (w.node.querySelector('.jp-LinkedOutputView')) w.close(); }"""
    )


def test_the_page_has_nothing_to_complain_about(lab: LabPage) -> None:
    assert [line for line in lab.console if "dyn" in line.lower() or "TypeError" in line] == []
