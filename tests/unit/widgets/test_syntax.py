"""What the recorded source tells: columns that fit it, regions, excerpts that begin deep inside."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from samples import one_break

from dynascope.compiler.report import Break, Excerpt, FlagOrigin, Report, Source
from dynascope.widgets.features.places import Places, span
from dynascope.widgets.features.regions import bands
from dynascope.widgets.model import view_model
from dynascope.widgets.render.text import to_text

LINE = "    y = f(g(x).item()).mean()  # why"


@pytest.mark.parametrize(
    ("start", "end", "found"),
    [
        (10, 21, "g(x).item()"),
        (8, None, "f(g(x).item()).mean()  # why"),  # the end is unknown
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


def region(text: str, first: int = 1) -> list[int]:
    """The lines of the region that a decorator of `f` makes."""
    source = Source(file="m.py", label="m.py", excerpts=[Excerpt(line=first, text=text)])
    origin = FlagOrigin(kind="decorator", name="f")
    b = Break(id="b0", file="m.py", line=first, error_on_graph_break=True, region=origin)
    return sorted(line for _, line in bands(Places(Report(sources=[source], breaks=[b]))))


def test_a_region_in_an_excerpt_that_begins_deep_inside() -> None:
    text = "    class A:\n        @error_on_graph_break(True)\n        def f(self):\n            return 1\n\n    def g(x): 0"
    assert region(text, 7) == [8, 9, 10]
    assert region("@error_on_graph_break(True)\ndef f(self)") == []


def test_continued_expressions_are_no_magics_and_a_form_feed_begins_no_line() -> None:
    text = "%%compile\n!ls\n@error_on_graph_break(True)\ndef f(self, a):\n    \f\n    return (a\n        % 2\n        != 1)"
    assert region(text) == [3, 4, 5, 6, 7, 8]


def test_a_report_is_shown_without_warnings_of_the_source() -> None:
    """These tests turn warnings into errors, as `-W error` does."""
    assert region("@error_on_graph_break(True)\ndef f(self):\n    return '\\d'") == [1, 2, 3]
    assert span("g('\\d') + 1", 0, None) == (0, 11)
