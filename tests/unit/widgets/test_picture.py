"""The static pictures: valid, closed in themselves, and nothing of the user's gets out of its place."""

from __future__ import annotations

import base64
import html
import re
import subprocess
import xml.dom.minidom

import pytest
from nbconvert.filters import clean_html
from samples import SAMPLES, loop, many, one_break, split

from dynascope.widgets.drawing.split_graph import split_picture
from dynascope.widgets.features.places import Places
from dynascope.widgets.layout import fx_graph
from dynascope.widgets.model import view_model
from dynascope.widgets.render.picture import to_graphviz, to_svg
from dynascope.widgets.render.static_output import HIDE_CSS, to_mimebundle
from dynascope.widgets.words import text_width


@pytest.mark.parametrize("name", SAMPLES)
def test_svg_is_valid_and_loads_nothing(name: str) -> None:
    text = to_svg(SAMPLES[name]())
    document = xml.dom.minidom.parseString(text)
    tags = {e.tagName for e in document.getElementsByTagName("*")}
    assert tags <= {"svg", "title", "style", "defs", "marker", "path", "pattern", "rect", "g", "text"}
    attributes = {a for e in document.getElementsByTagName("*") for a, _ in e.attributes.items()}
    assert not {a for a in attributes if a.startswith("on") or "href" in a}
    assert "var(--" not in text


def test_svg_names_what_matters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("dynascope.widgets.model.details")  # a picture needs none
    text = to_svg(loop())
    for word in ("graph 0", "graph 2", "log(h)", "print(step)", "skipped", "resumes at line 5", "calls"):
        assert word in text


@pytest.mark.parametrize("name", SAMPLES)
def test_no_text_is_wider_than_its_box(name: str) -> None:
    """By the careful widths that the picture itself assumes."""
    for group in re.findall("<g .*?</g>", to_svg(SAMPLES[name]()), re.DOTALL):
        rect = re.search(r'<rect class="[^"]*dyn-main"[^>]* width="([\d.]+)"', group)
        assert rect is not None
        for x, words in re.findall(r'<text class="[^"]*" x="([\d.]+)"[^>]*>(.*?)</text>', group):
            assert 0 <= float(x) <= float(rect[1])
            assert text_width(html.unescape(words), 11) <= float(rect[1]), words


@pytest.mark.parametrize("name", SAMPLES)
def test_dot_holds_generated_names_only_outside_of_quotes(name: str) -> None:
    outside = re.sub(r'"(?:\\.|[^"\\])*"', "", str(to_graphviz(SAMPLES[name]())))
    assert "onerror" not in outside
    assert "<" not in outside.replace("->", "")


def test_the_static_twin_survives_sanitisers() -> None:
    page = to_mimebundle(one_break(), fallback="dyn-1")["text/html"]
    assert 'class="dyn-static dyn-1"' in page
    assert "data:image/svg+xml;base64," in page
    assert HIDE_CSS in page
    assert "jp-OutputArea" not in clean_html(page)  # as `nbconvert --sanitize-html` shows it: it turns most tags into text
    assert "<script" not in page
    assert "<svg" not in page
    assert " id=" not in page


def test_the_static_picture_of_many_frames_is_short_and_says_what_is_not_drawn() -> None:
    page = to_mimebundle(SAMPLES["many"]())["text/html"]
    picture = base64.b64decode(page.partition("base64,")[2].partition('"')[0]).decode()
    assert float(picture.partition('height="')[2].partition('"')[0]) < 2200
    assert "not drawn: 91 more frames" in picture


def test_a_break_before_a_skipped_resume_function_is_not_drawn_in_it() -> None:
    report = many()
    report.frames[60].status, report.frames[60].graph = "skipped", None  # drawn for that; the frame that it continues is not
    picture = split_picture(report, Places(report))
    assert "f60" in [shape.id for shape in picture.groups]
    assert [shape.id for shape in picture.boxes if shape.group == "f60"] == ["b60"]


def test_tall_drawings_have_columns() -> None:
    layers = view_model(SAMPLES["layers"]())["details"]["g0"]["parts"][0]["body"]["picture"]
    assert len({x for x, *_ in layers["boxes"]}) >= 4
    assert layers["height"] < 20 * len(layers["boxes"])  # a single column is 70 for each
    breaks = split(many(30))
    assert breaks.height < 6 * breaks.width


def test_a_picture_depends_on_no_program_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "Popen", None)
    monkeypatch.setenv("PATH", "")
    fx_graph.layout.cache_clear()
    for name in ("nested", "loop", "many"):
        xml.dom.minidom.parseString(to_svg(SAMPLES[name]()))
