"""What Binder builds, as far as it runs here: the environment's file, and postBuild in a clean environment."""

from __future__ import annotations

from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml")


def names(root: Path) -> set[str]:
    made = yaml.safe_load((root / "binder" / "environment.yml").read_text())
    assert made["channels"] == ["conda-forge"]
    return {entry.replace(">=", "=").partition("=")[0] for entry in made["dependencies"]}


def test_the_environment_has_what_the_project_asks_for(root: Path) -> None:
    found = names(root)
    assert {"python-graphviz", "pytorch-cpu", "cxx-compiler"} <= found
    asked = (root / "pyproject.toml").read_text().partition("dependencies = [")[2].partition("]\n\n")[0]
    # under conda's own names; the others come with these
    known = {"torch": "pytorch-cpu", "ipython": "jupyterlab", "traitlets": "ipywidgets", "graphviz": "python-graphviz"}
    for line in asked.splitlines():
        name = line.strip().strip('",').partition(">")[0]
        if name and name not in "]":
            assert known.get(name, name) in found, f"binder/environment.yml lacks {name}"
