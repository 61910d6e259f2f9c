"""What Binder builds, as far as it runs here: the environment's file, and postBuild in a clean environment."""

from __future__ import annotations

import os
import subprocess
import sysconfig
import venv
from pathlib import Path

import pytest
from project_files import copy_project

yaml = pytest.importorskip("yaml")


def names(root: Path) -> set[str]:
    made = yaml.safe_load((root / "binder" / "environment.yml").read_text())
    assert made["channels"] == ["conda-forge"]
    return {entry.replace(">=", "=").partition("=")[0] for entry in made["dependencies"]}


def test_the_environment_has_what_the_project_asks_for(root: Path) -> None:
    found = names(root)
    assert {"python-graphviz", "pytorch-cpu", "cxx-compiler"} <= found
    text = (root / "pyproject.toml").read_text()
    asked = text.partition("dependencies = [")[2].partition("]\n\n")[0]
    # under conda's own names; the others come with these
    known = {"torch": "pytorch-cpu", "ipython": "jupyterlab", "traitlets": "ipywidgets", "graphviz": "python-graphviz"}
    for line in asked.splitlines():
        name = line.strip().strip('",').partition(">")[0]
        if name and name not in "]":
            assert known.get(name, name) in found, f"binder/environment.yml lacks {name}"


@pytest.mark.packaging
def test_post_build_installs_the_project(root: Path, tmp_path: Path) -> None:
    copy = copy_project(root, tmp_path / "repository")
    place = tmp_path / "venv"
    venv.create(place, symlinks=True)
    site = next((place / "lib").glob("python3*")) / "site-packages"
    # conda's part of the work: torch, pip and setuptools are there already
    (site / "others.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    environ = {**os.environ, "PATH": f"{place / 'bin'}{os.pathsep}{os.environ['PATH']}", "PIP_NO_INDEX": "1"}
    # pip reads "no" here as: no isolation, so that nothing is downloaded
    environ["PIP_NO_BUILD_ISOLATION"] = "0"
    environ["PIP_IGNORE_INSTALLED"] = "1"
    done = subprocess.run([str(copy / "binder" / "postBuild")], cwd=copy, env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (site / "dynascope" / "compiler" / "report" / "schema.py").exists()
