"""Whoever follows the README from the top gets what it shows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import dynascope


def test_thirty_seconds(shell: Any, root: Path, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    del shell.ns["torch"]
    start = (root / "README.md").read_text(encoding="utf-8").partition("## Thirty seconds")[2].partition("\n## ")[0]
    cells = re.findall(r"```python\n(.*?)```", start, re.DOTALL)
    assert len(cells) == 3
    for cell in cells:
        done = shell(*cell.splitlines())
        assert done.error is None, done.text
    assert dynascope.last().summary.breaks == 1
    assert (tmp_path / "report.html").exists()


def test_known_differences_are_as_told(shell: Any, root: Path) -> None:
    shell("import numpy as np")
    numbers = ("np.random.seed(0)", "drawn = np.random.rand(2)")
    shell("%%compile", *numbers)
    compiled = shell.ns["drawn"]
    shell(*numbers)
    assert compiled.tolist() != shell.ns["drawn"].tolist()
    shell("%%compile", "told = torch.compiler.is_compiling()")
    assert shell.ns["told"] is True
    shell("get_ipython().ast_node_interactivity = 'all'")
    try:
        assert "Out" not in shell("%%compile", "x * 2", "y = x;").text
    finally:
        shell("get_ipython().ast_node_interactivity = 'last_expr'")
