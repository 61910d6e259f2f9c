"""The tutorials: each runs in a fresh kernel and gives the reports that it stores; each is fit to be read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from project_files import project_files

from dynascope.compiler.report.comparison import MIME
from dynascope.docs_tests.pages import Page, read
from dynascope.docs_tests.runner import run_page

ROOT = Path(__file__).resolve().parents[2]
TUTORIALS = [name for name in project_files(ROOT) if name.startswith("examples/") and name.endswith(".ipynb")]
REFERENCE = sorted(p.relative_to(ROOT).as_posix() for p in (ROOT / "examples" / "reference").glob("*.md"))
_LINK = re.compile(r"\]\(([^)#]+)(?:#[^)]*)?\)")


@pytest.mark.slow
@pytest.mark.parametrize("name", TUTORIALS)
def test_it_gives_the_reports_that_it_stores(name: str, request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--dynascope"):
        pytest.skip("--dynascope runs the tutorials")
    result = run_page(ROOT / name)
    assert result.ok, "\n\n".join(map(str, result.problems))


def text_of(page: Page) -> str:
    return "\n".join(cell.source for cell in page.notebook.cells if cell.cell_type == "markdown")


@pytest.mark.parametrize("name", TUTORIALS)
def test_it_has_a_title_a_picture_and_something_to_try(name: str) -> None:
    page = read(ROOT / name)
    text = text_of(page)
    assert text.startswith("# ")
    assert "\n## Try it\n" in text
    shown = [o["data"].get("text/html", "") for _, c in page.code_cells() for o in c.outputs if "data" in o]
    assert any("data:image/svg+xml" in html for html in shown), "no picture"


@pytest.mark.parametrize("name", [*TUTORIALS, "README.md", *REFERENCE])
def test_its_links_lead_somewhere(name: str) -> None:
    path = ROOT / name
    text = path.read_text(encoding="utf-8") if path.suffix == ".md" else text_of(read(path))
    for target in _LINK.findall(text):
        if "://" not in target and not target.startswith("attachment:"):
            assert (path.parent / target).exists(), f"{name} links to {target}, which is not there"


@pytest.mark.parametrize("name", TUTORIALS)
def test_each_report_has_its_structure_beside_it(name: str) -> None:
    for _, cell in read(ROOT / name).code_cells():
        shown = [o["data"] for o in cell.outputs if "dyn-static" in o.get("data", {}).get("text/html", "")]
        is_one_rank = ".report_of(" in cell.source  # its structure is in that of the ranks
        assert is_one_rank or all(MIME in data for data in shown)
