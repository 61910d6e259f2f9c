"""Short names of files and cells: no name that a notebook made up for a file of its own is shown."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest
import torch

import dynascope
from dynascope.compiler import report
from dynascope.compiler.source import origin
from dynascope.widgets.features.places import Places
from dynascope.widgets.render import text


@pytest.mark.parametrize(
    ("file", "cell", "label"),
    [
        ("/home/me/model.py", None, "model.py"),
        ("/home/me/layers/__init__.py", None, "layers/__init__.py"),
        ("C:\\py\\collections\\__init__.py", None, "collections\\__init__.py"),
        ("/tmp/ipykernel_77/123.py", 3, "In[3]"),
        ("/tmp/ipykernel_77/123.py", None, "cell"),
        ("/tmp/marimo_4711/__marimo__cell_MJUe_.py", None, "cell MJUe"),
        ("/tmp/marimo_4711/__marimo__cell_Hbol.py", None, "cell Hbol"),
    ],
)
def test_cells_bear_the_names_that_their_notebook_shows(file: str, cell: int | None, label: str) -> None:
    assert report.label(file, cell) == Places(report.Report()).label(file, cell) == label


def test_own_code_is_told_by_the_files_of_the_modules() -> None:
    assert all(origin.is_plumbing(str(module.__file__)) for module in (dynascope, origin, report, text))
    assert not origin.is_plumbing(str(Path(origin.__file__).parents[2] / "train.py"))  # in the checkout, beside our folders


@pytest.mark.parametrize(
    ("file", "owner", "plumbing"),
    [
        (torch.nn.functional.__file__, "torch", False),
        (torch._dynamo.__file__, "torch", True),
        (os.__file__, "python", False),
        (contextlib.__file__, "python", True),
        ("<frozen importlib._bootstrap>", "python", True),
        ("/elsewhere/lib/python3.12/contextlib.py", "user", True),
        ("C:\\elsewhere\\Python312\\Lib\\contextlib.py", "user", True),
        ("/home/me/python3.12/functools.py", "user", False),
        ("/elsewhere/lib/python3.12/site-packages/ipykernel/kernelapp.py", "library", True),
        ("/elsewhere/lib/python3.12/site-packages/sympy/core/add.py", "library", False),
        ("/elsewhere/site-packages/transformers/models/bert.py", "library", False),
        ("/home/me/train.py", "user", False),
        ("/tmp/ipykernel_77/123.py", "user", False),
        # a log is read where its torch is in another folder, or where there is none
        ("/opt/other/lib/python3.12/site-packages/torch/_dynamo/external_utils.py", "torch", True),
        ("/opt/other/lib/python3.12/site-packages/torch/nn/functional.py", "torch", False),
        ("C:\\other\\Lib\\site-packages\\torch\\utils\\_contextlib.py", "torch", True),
        ("/opt/other/lib/python3.12/site-packages/torchvision/_dynamo.py", "library", False),
        ("/home/user/torch/_dynamo.py", "user", False),
        ("<ipython-input-3>", "user", False),
    ],
)
def test_whose_a_file_is(file: str, owner: str, plumbing: bool) -> None:
    assert origin.origin(file) == owner
    assert origin.is_plumbing(file) == plumbing
    assert origin.is_users(file) == (owner == "user" and not plumbing)
    assert origin.is_used_by_compiler(file) == (owner == "python" or "sympy" in file)
