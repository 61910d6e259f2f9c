"""The README is short and leads to the guide; the guide's options are those of Settings."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

from tools.generated import with_table

FIX = "python -m tools.generated options"


def test_options_are_those_of_settings(root: Path) -> None:
    page = (root / "examples" / "reference" / "options.md").read_text(encoding="utf-8")
    assert with_table(page) == page, f"the table of options is out of date; fix it with: {FIX}"


def test_it_is_short_and_links_every_page_of_the_guide(root: Path) -> None:
    readme = (root / "README.md").read_text(encoding="utf-8")
    assert len(readme.splitlines()) <= 160
    pages = [*(root / "examples").glob("*.ipynb"), *(root / "examples").glob("reference/*.md")]
    missing = [p.name for p in pages if f"]({p.relative_to(root).as_posix()}" not in readme]
    assert not missing, f"README.md links to no {', '.join(missing)}"


def test_every_link_leads_to_a_file_that_the_source_distribution_has(root: Path) -> None:
    readme = (root / "README.md").read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)#]+)", readme) + re.findall(r"src(?:set)?=\"([^\"]+)", readme)
    local = {t for t in targets if not t.startswith("http")}
    assert len(local) > 15
    assert not [t for t in local if not (root / t).exists()]
    manifest = (root / "MANIFEST.in").read_text(encoding="utf-8")
    grafted = re.findall(r"^graft (.+)$", manifest, re.M)
    included = " ".join(re.findall(r"^include (.+)$", manifest, re.M)).split()
    assert not [t for t in local if t.split("/")[0] not in grafted and t not in included]


def test_links_are_absolute_on_a_package_index(root: Path) -> None:
    described = runpy.run_path(str(root / "setup.py"))["metadata"]("https://example.org/a/b")
    text = described["long_description"]
    assert "two breaks, one of them costs 41 percent of it](https://example.org/a/b/raw/HEAD/examples/" in text
    assert 'srcset="https://example.org/a/b/raw/HEAD/examples/images/view-dark.png"' in text
    assert "](https://example.org/a/b/blob/HEAD/CONTRIBUTING.md)" in text
    links = re.findall(r"\]\(([^)]+)", text) + re.findall(r"src(?:set)?=\"([^\"]+)", text)
    assert not [link for link in links if not link.startswith(("https://", "#"))]
    assert described["project_urls"]["Source"] == "https://example.org/a/b"
