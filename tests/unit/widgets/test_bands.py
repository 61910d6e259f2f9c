"""How far regions reach in the source, as far as the report tells."""

from __future__ import annotations

from typing import Any

import pytest
from samples import CELL, broken, regions, report, split

from dynascope.compiler.report import FlagOrigin, RegionLines, Report
from dynascope.widgets.features.places import Places
from dynascope.widgets.features.regions import bands, region_name
from dynascope.widgets.model import view_model
from dynascope.widgets.render.text import to_text

SOURCE = """%load something
@region(error_on_graph_break=False)
def decorated(x):
    log(x)
    return x

def plain(x):
    with torch.no_grad():
        log(x)
    with torch.no_grad(), region(error_on_graph_break=False):
        with region(error_on_graph_break=True):
            log(x)
        log(x)
    return x
"""


def block(line: int, file: str = CELL) -> FlagOrigin:
    return FlagOrigin(kind="with", file=file, line=line, cell=3 if file == CELL else None)


def decorator(name: str) -> FlagOrigin:
    return FlagOrigin(kind="decorator", name=name)


def option(target: str) -> FlagOrigin:
    return FlagOrigin(kind="option", name=target)


def made(line: int, region: FlagOrigin, flag: bool | None = False, source: str = SOURCE, **settings: Any) -> Report:
    text = source.splitlines()[line - 1]
    b = broken("b0", line, text.strip(), text, region=region, error_on_graph_break=flag, allowed=flag is False)
    found = report(source, "plain", breaks=[b])
    found.settings = {**found.settings, **settings}
    return found


def lines(r: Report) -> list[int]:
    return [line for file, line in bands(Places(r)) if file == CELL]


@pytest.mark.parametrize(
    ("line", "region", "found"),
    [
        (4, decorator("decorated"), [2, 3, 4, 5]),
        (13, block(10), [10, 11, 12, 13]),
        (13, block(13), [10, 11, 12, 13]),  # the resume function enters the `with` again
        (12, block(11), [11, 12]),
        (9, decorator("plain"), []),  # nothing says that it is decorated
        (9, block(9), []),  # no `with` around it sets a region
        (9, decorator("gone"), []),
        (9, block(3, "model.py"), []),
        (9, FlagOrigin(kind="run"), []),
        (9, FlagOrigin(), []),
    ],
)
def test_a_region_is_as_long_as_its_block_function_or_lines(line: int, region: FlagOrigin, found: list[int]) -> None:
    assert sorted(lines(made(line, region))) == found


def test_a_region_that_a_resume_function_enters_again_has_the_place_of_its_with() -> None:
    r = made(13, block(13))
    assert region_name(r.breaks[0], Places(r)) == "In[3]:10"
    model = view_model(r)
    assert split(r).boxes[0].lines == ["In[3]:10: breaks allowed"]
    assert ["error_on_graph_break", "False (region In[3]:10)", ""] in model["details"]["b0"]["facts"]
    assert "allowed by region In[3]:10" in to_text(r, colour=False, width=200)
    elsewhere = made(13, block(9, "model.py"))
    assert region_name(elsewhere.breaks[0], Places(elsewhere)) == "model.py:9"


def test_what_the_run_asked_for_is_a_region_also_without_a_break() -> None:
    r = report(SOURCE, "plain")
    r.sources[0].regions = [
        RegionLines(first=8, last=9, error_on_graph_break=False, set_by=option("8-9")),
        RegionLines(first=8, last=20, error_on_graph_break=True, set_by=option("plain")),
    ]
    found = bands(Places(Report.from_dict(r.to_dict())))
    assert [found[CELL, n].who for n in (8, 9, 10)] == ["set by --region 8-9=allow"] * 2 + ["set by --region plain=error"]


def test_the_source_view_says_the_innermost_region_of_a_line() -> None:
    found = {line["line"]: line["region"] for line in view_model(regions())["sources"][0]["lines"] if "region" in line}
    assert sorted(found) == [7, 8, 10, 11]
    assert found[7] == found[8] == ["allow", "region: error_on_graph_break=False, set by In[3]:7"]
    assert found[11] == ["error", "region: error_on_graph_break=True, set by In[3]:10"]
