"""The tutorials as they are committed: executed, static, and free of what changes from run to run."""

from __future__ import annotations

import copy
from pathlib import Path

import nbformat
import pytest
from project_files import project_files

from dynascope.docs_tests.outputs import normalize
from dynascope.docs_tests.pages import read, tags_of

ROOT = Path(__file__).resolve().parents[3]
COMMITTED = [name for name in project_files(ROOT) if name.startswith("examples/") and name.endswith(".ipynb")]


@pytest.mark.parametrize("name", COMMITTED)
def test_outputs_do_not_rot(name: str) -> None:
    page = read(ROOT / name)
    normalized = copy.deepcopy(page.notebook)
    normalize(normalized, str((ROOT / name).parent))
    mend = f"dynascope test --update {name}"
    assert nbformat.writes(normalized) == nbformat.writes(page.notebook), f"times, addresses or widgets are stored: {mend}"
    assert page.stores_outputs, f"it has no outputs: {mend}"
    for index, cell in page.code_cells():
        ran = cell.get("execution_count") or tags_of(cell) & {"skip-execution", "requires-cuda"} or not cell.source.strip()
        assert ran, f"code cell {page.number(index)} was not run: {mend}"
    assert (ROOT / name).stat().st_size < 1_000_000, "over a megabyte"
