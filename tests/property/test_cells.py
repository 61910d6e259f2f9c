"""The rule of rules: a cell leaves under `%%compile` what it leaves without it.

Generated cells run plainly and under `%%compile --backend eager`, in clean namespaces; names, values, which names are
one object, in-place effects, output, results and exception types must agree.  A failure prints the cell and its seed:
`made(seed)` makes it again.
"""

from __future__ import annotations

import math
import re

import pytest
import torch
from cell_maker import SETUP, CellMaker
from example_counts import examples, some
from hypothesis import Phase, example, given, note, settings
from hypothesis import strategies as st
from notebook import Notebook


@pytest.fixture(scope="module")
def notebook() -> Notebook:
    return Notebook()


def made(seed: int) -> str:
    cell = CellMaker(seed).cell()
    # torch 2.9 and 2.11 make a tuple of what a star collects: see torch_versions.md
    return cell.replace("*rest", "rest, _") if torch.__version__.startswith(("2.9", "2.11")) else cell


@example(seed=1335)  # deletes, in a loop, a name that is not bound
@example(seed=61)  # a name read in a loop before it is bound
@settings(max_examples=examples(8), phases=[Phase.explicit, Phase.reuse, Phase.generate], deadline=None, print_blob=True)
@given(seed=st.integers(0, 2**30))
def test_a_cell_leaves_what_it_leaves_without_the_magic(notebook: Notebook, seed: int) -> None:
    cell = made(seed)
    note(f"seed {seed}\n{cell}")
    plain = notebook.run(SETUP, cell)
    assert notebook.run(SETUP, cell, "%%compile --backend eager --view none") == plain


_NUMBER = re.compile(r"-?\d+\.\d+(?:e[-+]?\d+)?")


def near(told: object, expected: object) -> bool:
    """Whether two outcomes agree to the letter but for the last digits of their floating-point numbers."""
    ours, theirs = repr(told), repr(expected)
    if _NUMBER.split(ours) != _NUMBER.split(theirs):
        return False
    pairs = zip(_NUMBER.findall(ours), _NUMBER.findall(theirs), strict=True)
    return all(math.isclose(float(a), float(b), rel_tol=1e-4, abs_tol=1e-5) for a, b in pairs)


@pytest.mark.parametrize("seed", some([1, 3, 17, 64, 500, 2024], 2))
def test_and_so_it_does_under_inductor(notebook: Notebook, seed: int) -> None:
    cell = made(seed)
    plain = notebook.run(SETUP, cell)
    compiled = notebook.run(SETUP, cell, "%%compile --backend inductor --view none")
    assert near(compiled, plain), f"seed {seed}\n{cell}"
