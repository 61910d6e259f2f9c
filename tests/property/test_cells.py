"""The rule of rules: a cell leaves under `%%compile` what it leaves without it.

Generated cells run plainly and under `%%compile --backend eager`, in clean namespaces; names, values, which names are
one object, in-place effects, output, results and exception types must agree.  A failure prints the cell and its seed:
`CellMaker(seed).cell()` makes it again.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import Phase, example, given, note, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))
from cell_maker import SETUP, CellMaker
from notebook import Notebook


@pytest.fixture(scope="module")
def notebook() -> Notebook:
    return Notebook()


@example(seed=1335)  # deletes, in a loop, a name that is not bound
@example(seed=61)  # a name read in a loop before it is bound
@settings(max_examples=80, phases=[Phase.explicit, Phase.reuse, Phase.generate], deadline=None, print_blob=True)
@given(seed=st.integers(0, 2**30))
def test_a_cell_leaves_what_it_leaves_without_the_magic(notebook: Notebook, seed: int) -> None:
    cell = CellMaker(seed).cell()
    note(f"seed {seed}\n{cell}")
    plain = notebook.run(SETUP, cell)
    compiled = notebook.run(SETUP, cell, "%%compile --backend eager --view none")
    assert compiled == plain
