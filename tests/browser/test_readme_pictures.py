"""The README's screenshots, from the real widget in JupyterLab, light and dark.

They go to build/shots; with DYNASCOPE_PICTURES=1 to examples/images too, which the README shows.
"""

from __future__ import annotations

import os
import shutil

import nbformat
import pytest

from browser.lab import ROOT, LabPage, OpenLab, shot_path

IMAGES = ROOT / "examples" / "images"
SET_UP = "import json\nimport torch\ntorch.set_num_threads(1)\n%load_ext dynascope"
CELL = """\
%%compile --backend eager
def settle(x):
    for step in range(3):
        x = torch.relu(x) + step
        print("step", step)
    return x

def model(x):
    x = x.sin() + 1
    if x.mean() > 1:
        x = x / x.mean()
    return settle(x).sum()

model(torch.ones(4))"""


@pytest.fixture
def shown(open_lab: OpenLab) -> LabPage:
    tutorial = nbformat.read(ROOT / "examples" / "07_run_time.ipynb", as_version=4)
    profiled = next(cell.source for cell in tutorial.cells if cell.source.startswith("%%compile --profile"))
    lab: LabPage = open_lab([SET_UP, CELL, profiled], width=1240, height=1750)
    lab.focus()
    lab.run(0)
    lab.run(1)
    lab.page.wait_for_selector(".dyn-widget svg")
    return lab


def test_readme_pictures(shown: LabPage) -> None:
    for theme in ("light", "dark"):
        shown.theme(theme)
        shown.cells().nth(1).hover(position={"x": 5, "y": 5})
        path = shot_path(f"view-{theme}")
        shown.cells().nth(1).screenshot(path=path)
        assert path.stat().st_size > 20_000
        if os.environ.get("DYNASCOPE_PICTURES"):
            IMAGES.mkdir(exist_ok=True)
            shutil.copyfile(path, IMAGES / f"view-{theme}.png")


def test_run_time_picture(shown: LabPage) -> None:
    shown.theme("light")
    shown.run(2)
    view = shown.cells().nth(2).locator(".dyn-widget").last
    view.scroll_into_view_if_needed()
    path = shot_path("run-time")
    view.screenshot(path=path)
    assert path.stat().st_size > 20_000
    if os.environ.get("DYNASCOPE_PICTURES"):
        shutil.copyfile(path, IMAGES / "run-time.png")
