"""What a browser does with any page: find, copy, print; and what the system asks for: high contrast."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from browser.lab import shot_path
from browser.view_pages import TEXT_OVERFLOW, OpenPage

#: what is shown of a report, each found by the browser's own Find
FOUND = (
    "return z.sum()",
    "graph break",
    "User-inserted graph break.",
    "resumes at line 5",
    "graph 1",
    "resume in f",
    "resumed",
)
COLOURS = """root => { const of = (selector, name) => getComputedStyle(root.querySelector(selector))[name];
  return { ground: of('.dyn', 'backgroundColor'), tip: of('.dyn-tip', 'fill'),
    arrow: of('.dyn-arrow', 'stroke'), allowed: of('.dyn-r-allow .dyn-area', 'stroke'),
    error: of('.dyn-r-error .dyn-area', 'stroke'), frame: of('.dyn-r-error .dyn-frame', 'stroke'),
    band: of('.dyn-in-error', 'borderRightColor') }; }"""


def test_the_hosts_find_finds_what_is_shown(open_page: OpenPage) -> None:
    shown = open_page("one")
    for words in FOUND:
        found = shown.page.evaluate(
            """words => { getSelection().removeAllRanges();
              return window.find(words) && document.querySelector('.dyn').contains(getSelection().anchorNode); }""",
            words,
        )
        assert found, words
    assert not shown.page.evaluate("() => window.find('nothing like it')")


def copied(page: Page) -> str:
    """What the keyboard's Copy puts on the clipboard."""
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.keyboard.press("Control+c")
    return str(page.evaluate("() => navigator.clipboard.readText()"))


def test_copied_source_is_clean(open_page: OpenPage) -> None:
    shown = open_page("loop")
    shown.page.evaluate("""() => { const line = n => document.querySelector(`.dyn-ln[data-line='${n}']`);
      getSelection().setBaseAndExtent(line(2), 0, line(5), line(5).childNodes.length); }""")
    lines = ["    h = x @ w", "    h = h.relu()", "    log(h)", "    y = h.softmax(-1)"]
    assert copied(shown.page).rstrip("\n").splitlines() == lines
    shown.select("f1")
    shown.root.get_by_role("tab", name=re.compile("Source")).click()
    shown.page.evaluate("() => getSelection().selectAllChildren(document.querySelector('.dyn-panel'))")
    assert copied(shown.page).splitlines()[0] == "    y = h.softmax(-1)"


def test_the_place_of_a_break_is_copied(open_page: OpenPage) -> None:
    shown = open_page("one")
    shown.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    shown.select("b0")
    shown.root.get_by_role("button", name="Copy place").click()
    expect(shown.root.get_by_role("button", name="copied")).to_be_visible()
    assert shown.page.evaluate("() => navigator.clipboard.readText()") == "In[3]:4:5"
    expect(shown.page).to_have_url(re.compile("#b0$"))  # and its link is the page's own address


@pytest.mark.parametrize("name", ["many", "layers", "regions"])
def test_print_shows_all_of_it(open_page: OpenPage, name: str) -> None:
    shown = open_page(name)
    shown.page.emulate_media(media="print")
    hidden = shown.root.evaluate(
        """root => [...root.querySelectorAll('.dyn, .dyn *')].filter(e => !e.closest('svg') && e.clientHeight &&
          getComputedStyle(e).overflowY !== 'visible' && e.scrollHeight > e.clientHeight + 2).map(e => e.className)"""
    )
    assert hidden == []
    assert not shown.root.locator(".dyn-tools").is_visible()
    path = shot_path(f"print-{name}").with_suffix(".pdf")
    shown.page.pdf(path=path)
    assert len(re.findall(rb"/Type\s*/Page\b", path.read_bytes())) >= (5 if name == "many" else 1)


def test_print_is_dark_on_white_and_no_line_is_cut_off(open_page: OpenPage) -> None:
    shown = open_page("hostile", dark=True, width=700)
    shown.page.emulate_media(media="print", color_scheme="dark")
    look = "n => [getComputedStyle(n).backgroundColor, getComputedStyle(n).color]"
    assert shown.root.locator(".dyn").evaluate(look) == ["rgb(255, 255, 255)", "rgb(27, 31, 36)"]
    assert shown.root.locator(".dyn-ln > div").first.evaluate("n => getComputedStyle(n).whiteSpace") == "break-spaces"
    assert shown.root.evaluate(TEXT_OVERFLOW) == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_high_contrast(open_page: OpenPage, dark: bool) -> None:
    shown = open_page("regions", dark=dark, forced_colors="active")
    shown.select("b0")
    shown.page.screenshot(path=shot_path(f"page-high-contrast{'-dark' * dark}"), full_page=True)
    colours = shown.root.evaluate(COLOURS)
    assert colours.pop("ground") == ("rgb(0, 0, 0)" if dark else "rgb(255, 255, 255)")
    assert set(colours.values()) == {"rgb(255, 255, 255)" if dark else "rgb(0, 0, 0)"}
    wide = shown.node("b0").locator(".dyn-main").evaluate("n => parseFloat(getComputedStyle(n).strokeWidth)")
    assert wide >= 2.5  # selection is no matter of colour
    dashes = [shown.root.locator(f".dyn-r-{kind} .dyn-area").first.evaluate("n => getComputedStyle(n).strokeDasharray")
              for kind in ("allow", "error")]  # fmt: skip
    assert dashes[0] != dashes[1] == "none"  # nor is which kind of region it is
