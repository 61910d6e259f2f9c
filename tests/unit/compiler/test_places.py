"""Short names of files and cells: no name that a notebook made up for a file of its own is shown."""

from __future__ import annotations

import pytest

from dynascope.compiler.source import places


@pytest.mark.parametrize(
    ("file", "cell", "label"),
    [
        ("/home/me/model.py", None, "model.py"),
        ("/tmp/ipykernel_77/123.py", 3, "In[3]"),
        ("/tmp/ipykernel_77/123.py", None, "cell"),
        ("/tmp/marimo_4711/__marimo__cell_MJUe_.py", None, "cell MJUe"),
        ("/tmp/marimo_4711/__marimo__cell_Hbol.py", None, "cell Hbol"),
    ],
)
def test_cells_bear_the_names_that_their_notebook_shows(file: str, cell: int | None, label: str) -> None:
    assert places.label(file, cell) == label
