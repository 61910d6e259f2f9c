"""What the recorded source tells: columns that fit it, methods of classes, excerpts that begin deep inside."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from samples import one_break

from dynascope.widgets.features.places import methods, span
from dynascope.widgets.model import view_model
from dynascope.widgets.render.text import to_text

LINE = "    y = f(g(x).item()).mean()  # why"


@pytest.mark.parametrize(
    ("start", "end", "found"),
    [
        (10, 21, "g(x).item()"),
        (10, None, "g(x).item()"),  # the end is unknown: the longest expression that begins there
        (8, None, "f(g(x).item()).mean()"),
        (None, None, None),
        (2, 9, None),  # begins with a blank: columns of another text
        (10, 9, None),
        (8, 18, None),  # ends in the middle of a word
        (29, 500, None),
    ],
)
def test_columns_are_taken_where_they_fit_the_text(start: int | None, end: int | None, found: str | None) -> None:
    at = span(LINE, start, end)
    assert (None if at is None else LINE[slice(*at)]) == found


def test_columns_of_a_text_with_another_indentation_are_not_shown() -> None:
    """marimo compiles the cells of a notebook's file without the indentation that they have in it."""
    report = one_break()
    b = report.breaks[0]
    fits = view_model(report)
    assert fits["breaks"][0]["code"] == "torch._dynamo.graph_break()"
    assert fits["details"]["b0"]["copy"] == "In[3]:4:5"
    for source in report.sources:
        source.excerpts = [replace(e, text="\n".join("    " + row for row in e.text.split("\n"))) for e in source.excerpts]
    model = view_model(report)
    assert b.column == 4
    assert model["breaks"][0]["code"] == "torch._dynamo.graph_break()"
    assert model["details"]["b0"]["copy"] == "In[3]:4"
    line = next(row for row in model["sources"][0]["lines"] if row["line"] == 4)
    mark = line["marks"][0]
    assert line["text"][mark["start"] : mark["end"]] == "torch._dynamo.graph_break()"
    assert "4 │ torch._dynamo.graph_break()\n        │ ^^^^^^^^^^^^^^^^^^^^^^^^^^^\n" in to_text(report, colour=False)


def test_methods_of_an_excerpt_that_begins_deep_inside() -> None:
    text = "    class Inner:\n        @property\n        def size(self):\n            return 1\n\n    def f(x):\n        pass"
    assert methods(dict(enumerate(text.split("\n"), 7))) == [("size", 8, 10, "Inner")]
    assert methods({1: "%%compile", 2: "class A:", 3: "    def f(self): pass"}) == [("f", 3, 3, "A")]
    assert methods({1: "class A:", 2: "    def f(self)"}) == []


def test_continued_expressions_are_no_magics_and_a_form_feed_begins_no_line() -> None:
    text = "%%compile\n!ls\nclass A:\n    \f\n    def f(self, a):\n        return (a\n            % 2\n            != 1)"
    assert methods(dict(enumerate(text.split("\n"), 1))) == [("f", 5, 8, "A")]
    assert methods({1: "%time f()", 2: "class A:", 3: "    def f(a): return (a", 4: "      % 2)"}) == [("f", 3, 4, "A")]
    assert methods({1: "\f", 2: "class A:", 3: "    def f(self): pass"}) == [("f", 3, 3, "A")]


def test_a_report_is_shown_without_warnings_of_the_source() -> None:
    """These tests turn warnings into errors, as `-W error` does."""
    assert methods({1: "class K:", 2: "    def f(self):", 3: "        return '\\d'"}) == [("f", 2, 3, "K")]
    assert span("g('\\d') + 1", 0, None) == (0, 11)
