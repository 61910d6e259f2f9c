"""What `make` does before the work: look at the machine, make the environment, resume after an interruption."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tools import environment, generated, preflight, tasks

BEFORE_THE_ENVIRONMENT = ("preflight", "environment", "browser", "frontend", "tasks")


@pytest.mark.parametrize("name", BEFORE_THE_ENVIRONMENT)
def test_an_old_python_can_read_it_and_needs_nothing(root: Path, name: str) -> None:
    tree = ast.parse((root / "tools" / f"{name}.py").read_text(), feature_version=(3, 8))
    modules = {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    modules |= {alias.name for n in ast.walk(tree) if isinstance(n, ast.Import) for alias in n.names}
    assert {str(m).partition(".")[0] for m in modules} - {"tools"} <= set(sys.stdlib_module_names)


@pytest.mark.parametrize(("version", "fine"), [((3, 9), False), ((3, 10), True), ((3, 14), True), ((3, 15), False)])
def test_the_range_of_pythons(version: tuple[int, int], fine: bool) -> None:
    found = preflight.python_finding(version)
    assert (found is None) == fine
    if found:
        # a newer one is only a note: torch may have wheels for it
        assert found.fatal == (version < (3, 10))
        assert "3.10 to 3.14" in found.what
        assert "make PYTHON=" in found.cure


def one_cure(finding: preflight.Finding | None) -> str:
    what, cure = str(finding).splitlines()
    assert what.startswith("preflight: ")
    assert cure.strip().startswith("cure: ")
    return str(finding)


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_a_python_that_does_not_exist_is_named(root: Path) -> None:
    done = subprocess.run(["make", "PYTHON=python3.99", "check"], cwd=root, capture_output=True, text=True)
    assert done.returncode != 0
    assert "There is no python3.99: give a Python that exists" in done.stderr


def test_without_a_compiler_the_demo_goes_on_and_the_tests_do_not(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    (demo,) = preflight.check("demo", installed=True)
    assert not demo.fatal
    assert "a C++ compiler for Inductor (continuing with the backend aot_eager" in one_cure(demo)
    missing = [f for f in preflight.check("test", installed=True) if f.fatal]
    assert "a C++ compiler for Inductor" in one_cure(missing[0])
    assert not preflight.can_compile()


def test_nothing_of_other_installations_leaks_in(tmp_path: Path) -> None:
    outside = dict.fromkeys(environment.LEAKS, "/elsewhere") | {"PATH": "/usr/bin", "HOME": "/home/a"}
    inside = environment.isolated(outside, tmp_path / "build", tmp_path / ".venv")
    assert "/elsewhere" not in inside.values()
    assert inside["HOME"] == "/home/a"
    assert inside["PATH"].split(os.pathsep)[0] == str(tmp_path / ".venv" / "bin")
    for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):
        assert inside[name].startswith(str(tmp_path / "build"))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, list[str]]:
    """A project whose installation steps are recorded, not run (the environment itself is real)."""
    (tmp_path / "binder").mkdir()
    (tmp_path / environment.CONSTRAINTS).write_text("a==1\n")
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    done: list[str] = []
    real = environment.run

    def run(command: list[str], root: Path, environ: dict[str, str]) -> None:
        if "venv" in command:
            done.append("venv")
            real([*command, "--without-pip"], root, environ)
            # the tests need no pip, but the probe for a sound environment asks for one
            (next((Path(command[-1]) / "lib").glob("python3*")) / "site-packages" / "pip.py").touch()
        else:
            done.append(command[-1])

    monkeypatch.setattr(environment, "run", run)
    return tmp_path, done


def test_a_finished_installation_is_not_repeated(project: tuple[Path, list[str]]) -> None:
    root, done = project
    venv = root / ".venv"
    assert environment.ensure(venv, "2.13.0", root)
    assert done == ["venv", "torch==2.13.0", "setuptools>=77", ".[test,docs]"]
    assert not environment.ensure(venv, "2.13.0", root)
    assert len(done) == 4
    (root / "pyproject.toml").write_text("[project]\n[tool.ruff]\nline-length = 3\n")
    assert not environment.ensure(venv, "2.13.0", root), "a setting of a check installs nothing"
    (root / environment.CONSTRAINTS).write_text("a==2\n")
    assert environment.ensure(venv, "2.13.0", root)
    assert environment.ensure(venv, "2.9.1", root)
    assert done[4:] == ["torch==2.13.0", "setuptools>=77", ".[test,docs]", "torch==2.9.1", "setuptools>=77", ".[test,docs]"]


def test_an_interrupted_installation_is_resumed(project: tuple[Path, list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    root, done = project
    venv = root / ".venv"
    recording: Any = environment.run

    def interrupted(command: list[str], root: Path, environ: dict[str, str]) -> None:
        if command[-1].startswith("setuptools"):
            raise KeyboardInterrupt
        recording(command, root, environ)

    monkeypatch.setattr(environment, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        environment.ensure(venv, "2.13.0", root)
    assert not environment.is_ready(venv, "2.13.0", root)
    monkeypatch.setattr(environment, "run", recording)
    assert environment.ensure(venv, "2.13.0", root)
    assert done.count("venv") == 1, "what was there is used"
    assert environment.is_ready(venv, "2.13.0", root)


def test_every_dependency_is_pinned_and_nothing_of_one_machine_is_in_the_pins(root: Path) -> None:
    lines = [n for n in (root / environment.CONSTRAINTS).read_text().splitlines() if not n.startswith("#")]
    shape = re.compile(r'[a-z0-9.-]+==[0-9a-z.]+( ; python_version (<|>=) "3\.11")?')
    assert [n for n in lines if not shape.fullmatch(n)] == []
    pinned = {n.partition("==")[0] for n in lines}
    text = (root / "pyproject.toml").read_text()
    named = re.findall(r'"([A-Za-z][\w.-]*)\s*(?:>=[\d.]+)?",?', text.partition("dependencies")[2])
    needed = {*map(generated.canonical, named)} & {"ipython", "ipywidgets", "anywidget", "pytest", "ruff", "mypy", "jupyterlab"}
    assert len(needed) == 7
    assert needed <= pinned
    assert "torch" not in pinned


def test_make_has_every_task(root: Path) -> None:
    targets = re.search(r"^demo.*:$", (root / "Makefile").read_text(), re.MULTILINE)
    assert targets
    assert set(targets.group(0).rstrip(":").split()) == set(tasks.TASKS)
    text = subprocess.run(["make", "help"], cwd=root, capture_output=True, text=True).stdout
    assert all(f"make {task}" in text for task in tasks.TASKS)
