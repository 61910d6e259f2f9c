"""The committed bundle is what its sources give, and the front end's tools are installed once."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tools import frontend, preflight, tasks

#: bytes of the module; every saved widget state carries it
LIMIT = 90_000


@pytest.mark.packaging
def test_the_bundle_is_current_and_small(root: Path, tmp_path: Path) -> None:
    npm = shutil.which("npm")
    if npm is None or not frontend.is_installed():
        missing = "node, or what `make test` installs into widgets/frontend/node_modules, is missing"
        assert not preflight.under_ci(), missing
        pytest.skip(missing)
    build = [npm, "--silent", "run", "build", "--", f"--outdir={tmp_path}"]
    subprocess.run(build, cwd=root / "widgets" / "frontend", check=True)
    built = {path.name: path.read_text("utf-8") for path in tmp_path.iterdir()}
    committed = {path.name: path.read_text("utf-8") for path in (root / "widgets" / "static").iterdir()}
    assert built.keys() == committed.keys() == {"view.js", "view.css", "picture.css"}
    stale = [name for name in built if built[name] != committed[name]]
    assert not stale, f"{stale}: run npm run build in widgets/frontend, and commit the result"
    assert len(built["view.js"].encode()) < LIMIT


def test_the_lock_file_pins_everything_and_names_no_registry(root: Path) -> None:
    folder = root / "widgets" / "frontend"
    wanted = json.loads((folder / "package.json").read_text())["devDependencies"]
    lock = json.loads((folder / "package-lock.json").read_text())
    for name, version in wanted.items():
        assert lock["packages"][f"node_modules/{name}"]["version"] == version
    assert not [name for name, package in lock["packages"].items() if "resolved" in package]
    assert all("integrity" in package for name, package in lock["packages"].items() if name)


def write_lock(folder: Path, version: str) -> None:
    lock = {
        "packages": {
            "": {},
            "node_modules/tool": {"version": version},
            "node_modules/other": {"version": "1", "optional": True},
        }
    }
    (folder / "package-lock.json").write_text(json.dumps(lock))


@pytest.fixture
def project(tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """A folder with a lock file, and an npm that records its calls and succeeds unless `fail` is there."""
    write_lock(tmp_path, "1.0.0")
    npm = tmp_path / "bin" / "npm"
    npm.parent.mkdir()
    npm.write_text(
        f"#!/bin/sh\necho $@ >> {tmp_path}/calls\n"
        f"[ -e {tmp_path}/fail ] && echo 'npm error code ENOTFOUND' >&2 && exit 1\n"
        f"mkdir -p node_modules && cp package-lock.json {frontend.INSTALLED}\n"
    )
    npm.chmod(0o755)
    return tmp_path, {"PATH": f"{npm.parent}{os.pathsep}{os.environ['PATH']}"}


def test_tools_are_installed_once_and_again_when_a_version_changes(project: tuple[Path, dict[str, str]]) -> None:
    folder, environ = project
    for _ in range(2):
        assert frontend.ensure(environ, folder) is None
        assert (folder / "calls").read_text() == "ci\n"
    write_lock(folder, "1.0.1")
    assert not frontend.is_installed(folder)
    assert frontend.ensure(environ, folder) is None
    assert (folder / "calls").read_text() == "ci\nci\n"


def test_a_failed_installation_is_named_and_repeated(project: tuple[Path, dict[str, str]]) -> None:
    folder, environ = project
    (folder / "fail").touch()
    assert frontend.ensure(environ, folder) == "npm ci failed: error code ENOTFOUND"
    assert not frontend.is_installed(folder)
    assert frontend.ensure({"PATH": "/nowhere"}, folder) == "npm is missing"
    (folder / "fail").unlink()
    assert frontend.ensure(environ, folder) is None
    assert frontend.ensure({"PATH": "/nowhere"}, folder) is None, "installed: npm is not asked"


@pytest.mark.parametrize("ci", ["", "1"])
def test_checks_that_cannot_run_are_a_failure_under_ci_only(
    ci: str, root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CI", ci)
    monkeypatch.setattr(frontend, "ensure", lambda environ: "npm is missing")
    work = tasks.Work("test", root / ".venv")
    work.environ["PATH"] = "/nowhere"
    tasks.BUILD.mkdir(exist_ok=True)
    checks = ["front end, tests", "front end, types and format"]
    assert tasks.frontend_checks(work) == (checks if ci else [])
    assert ("FAILED" if ci else "left out") + " (npm is missing)" in capsys.readouterr().out


def test_under_another_python_the_tools_are_installed_too(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There the checks of the front end do not run, but a test builds the bundle."""
    done: list[str] = []
    monkeypatch.setattr(frontend, "ensure", lambda environ: done.append("npm"))
    monkeypatch.setattr(tasks.browser, "ensure", lambda python, environ: "/chromium")
    monkeypatch.setattr(tasks, "pytest", lambda work, folders, arguments: done.append("pytest") or 0)
    tasks.BUILD.mkdir(exist_ok=True)
    assert tasks.test(tasks.Work("test-python", root / ".venv"), []) == 0
    assert done == ["npm", "pytest"]
