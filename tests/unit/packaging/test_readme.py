"""The README says what is: its options are those of Settings, its tutorials those of examples/."""

from __future__ import annotations

from pathlib import Path

from tools.generated import with_table

FIX = "python -m tools.generated options"


def test_options_are_those_of_settings(root: Path) -> None:
    readme = (root / "README.md").read_text(encoding="utf-8")
    assert with_table(readme) == readme, f"the table of options is out of date; fix it with: {FIX}"


def test_it_links_every_tutorial(root: Path) -> None:
    readme = (root / "README.md").read_text(encoding="utf-8")
    missing = [p.name for p in (root / "examples").glob("*.ipynb") if f"](examples/{p.name}" not in readme]
    assert not missing, f"README.md links to no {', '.join(missing)}"
