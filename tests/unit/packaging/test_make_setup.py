"""What `make` does before the work: look at the machine, make the environment, resume after an interruption."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tools import browser, environment, generated, preflight, tasks

BEFORE_THE_ENVIRONMENT = ("preflight", "environment", "browser", "frontend", "tasks")


@pytest.mark.parametrize("name", BEFORE_THE_ENVIRONMENT)
def test_an_old_python_can_read_it_and_needs_nothing(root: Path, name: str) -> None:
    tree = ast.parse((root / "tools" / f"{name}.py").read_text(), feature_version=(3, 8))
    modules = {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    modules |= {alias.name for n in ast.walk(tree) if isinstance(n, ast.Import) for alias in n.names}
    tops = {str(m).partition(".")[0] for m in modules} - {"tools"}
    assert tops <= set(sys.stdlib_module_names)


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
    assert finding is not None
    what, cure = str(finding).splitlines()
    assert what.startswith("preflight: ")
    assert cure.strip().startswith("cure: ")
    return str(finding)


def test_too_little_space_is_named(tmp_path: Path) -> None:
    assert preflight.disk_finding(tmp_path, needed=0.000001) is None
    assert "GB of free disk space" in one_cure(preflight.disk_finding(tmp_path, needed=1e9))


def test_a_cuda_build_needs_more_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight.shutil, "disk_usage", lambda folder: SimpleNamespace(free=5e9))
    monkeypatch.setattr(preflight.sys, "platform", "linux")
    monkeypatch.delenv("TORCH_INDEX", raising=False)
    assert "TORCH_INDEX" in one_cure(preflight.disk_finding(tmp_path))
    monkeypatch.setenv("TORCH_INDEX", "https://example.org/cpu")
    assert preflight.disk_finding(tmp_path) is None


def test_sudo_is_recommended_only_where_it_exists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("apt-get", "sudo"):
        program = tmp_path / name
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(preflight.os, "geteuid", lambda: 1000)
    assert preflight.system_cure("g++", "", "") == "sudo apt-get install g++"
    (tmp_path / "sudo").unlink()
    assert preflight.system_cure("g++", "", "") == "as root: apt-get install g++"


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


def test_without_headers_or_with_a_broken_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "g++"
    broken.write_text("#!/bin/sh\necho 'cannot execute cc1plus' >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("CXX", str(broken))
    if (Path(sysconfig.get_paths()["include"]) / "Python.h").exists():
        assert "cannot execute cc1plus" in one_cure(preflight.compiler_finding(fatal=True))
    monkeypatch.setattr(sysconfig, "get_paths", lambda: {"include": str(tmp_path)})
    assert f"Python.h for Inductor (looked in {tmp_path})" in one_cure(preflight.compiler_finding(fatal=True))


def test_a_python_without_ensurepip_is_named(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexit 1\n")
    python.chmod(0o755)
    assert "ensurepip" in one_cure(preflight.venv_finding(str(python)))


def test_node_may_be_missing_but_not_under_ci(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for under_ci in (False, True):
        finding = preflight.node_finding(under_ci)
        assert "node" in one_cure(finding)
        assert finding is not None
        assert finding.fatal == under_ci


def test_a_browser_that_does_not_start_is_not_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stub = tmp_path / "chromium"
    stub.write_text("#!/bin/sh\necho 'run: snap install chromium' >&2\nexit 1\n")
    stub.chmod(0o755)
    monkeypatch.setattr(browser, "playwrights_own", lambda python, environ: None)
    assert browser.find(sys.executable, {"PATH": str(tmp_path)}) is None
    stub.write_text("#!/bin/sh\necho Chromium 140\n")
    assert browser.find(sys.executable, {"PATH": str(tmp_path)}) == str(stub)
    assert "\n" not in browser.cure()


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


def test_a_half_made_environment_is_made_anew(project: tuple[Path, list[str]]) -> None:
    root, done = project
    venv = root / ".venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "leftover").touch()
    environment.ensure(venv, "2.13.0", root)
    assert done[0] == "venv"
    assert not (venv / "leftover").exists()


def test_a_checkout_that_bears_the_packages_name_is_pointed_out(
    project: tuple[Path, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    root, _ = project
    environment.ensure(root / ".venv", "2.13.0", root)
    assert "import dynascope" not in capsys.readouterr().out
    named = root.rename(root.parent / "dynascope")
    environment.ensure(named / ".venv", "2.13.0", named)
    assert f"run Python elsewhere than in {root.parent}: " in capsys.readouterr().out


def test_a_failed_step_says_how_to_go_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        environment.run([sys.executable, "-c", "raise SystemExit(3)"], tmp_path, dict(os.environ))
    assert "run the same make command again to continue" in capsys.readouterr().out


@pytest.mark.parametrize("refuses", [True, False])
def test_a_torch_that_refuses_this_python_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refuses: bool) -> None:
    body = 'raise RuntimeError("not supported on Python 3.14+")' if refuses else "pass"
    (tmp_path / "torch.py").write_text(f"def compile(): {body}\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    said = tasks.torch_refusal(sys.executable)
    assert said == ("RuntimeError: not supported on Python 3.14+" if refuses else None)


def test_every_dependency_is_pinned_and_nothing_of_one_machine_is_in_the_pins(root: Path) -> None:
    lines = [n for n in (root / environment.CONSTRAINTS).read_text().splitlines() if not n.startswith("#")]
    shape = re.compile(r'[a-z0-9.-]+==[0-9a-z.]+( ; python_version (<|>=) "3\.11")?')
    assert [n for n in lines if not shape.fullmatch(n)] == []
    pinned = {n.partition("==")[0] for n in lines}
    text = (root / "pyproject.toml").read_text()
    asked = {
        generated.canonical(n) for n in re.findall(r'"([A-Za-z][\w.-]*)\s*(?:>=[\d.]+)?",?', text.partition("dependencies")[2])
    }
    needed = asked & {
        generated.canonical(n) for n in ("ipython", "ipywidgets", "anywidget", "pytest", "ruff", "mypy", "jupyterlab")
    }
    assert len(needed) == 7
    assert needed <= pinned
    assert "torch" not in pinned


def test_make_has_every_task(root: Path) -> None:
    targets = re.search(r"^demo.*:$", (root / "Makefile").read_text(), re.MULTILINE)
    assert targets
    assert set(targets.group(0).rstrip(":").split()) == set(tasks.TASKS)
    text = subprocess.run(["make", "help"], cwd=root, capture_output=True, text=True).stdout
    assert all(f"make {task}" in text for task in tasks.TASKS)


def test_make_without_any_python_says_so(root: Path, tmp_path: Path) -> None:
    make = subprocess.run(["sh", "-c", "command -v make"], capture_output=True, text=True).stdout.strip()
    done = subprocess.run([make, "test", "PYTHON="], cwd=root, capture_output=True, text=True)
    assert done.returncode != 0
    assert "No Python found: install Python 3.10" in done.stderr


def test_ci_runs_make_test(root: Path) -> None:
    script = root / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert "set -euo pipefail" in script.read_text()
    assert "make --no-print-directory test" in script.read_text()


def test_an_unknown_generated_file_is_bad_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert [generated.main(given) for given in ([], ["optoins"])] == [2, 2]
    assert capsys.readouterr().out.count("usage: ") == 2


@pytest.mark.parametrize(("given", "spread"), [(["-k", "my-name"], True), (["-n", "1"], False), (["-n2"], False)])
def test_pytest_runs_in_three_processes_unless_told_otherwise(given: list[str], spread: bool) -> None:
    work = SimpleNamespace(environ={}, py=lambda *arguments: arguments)
    assert ("--dist" in tasks.pytest(work, [], given)) is spread  # type: ignore[arg-type, operator]
