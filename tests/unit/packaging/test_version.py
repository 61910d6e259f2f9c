"""The version stands in two places, which agree."""

from __future__ import annotations

import re
from pathlib import Path

import dynascope


def test_package_and_project_agree(root: Path) -> None:
    told = re.search(r'^version = "(.*)"$', (root / "pyproject.toml").read_text(encoding="utf-8"), re.M)
    assert told[1] == dynascope.__version__
