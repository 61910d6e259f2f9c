"""The committed bundle is what its sources give, and the front end's tools are installed once."""

from __future__ import annotations

import json
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


@pytest.mark.parametrize("ci", ["", "1"])
def test_checks_that_cannot_run_are_a_failure_under_ci_only(
    ci: str, root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CI", ci)
    monkeypatch.setattr(frontend, "ensure", lambda environ: "npm is missing")
    work = tasks.Work("test", root / ".venv")
    work.environ["PATH"] = "/nowhere"
    tasks.BUILD.mkdir(exist_ok=True)
    assert tasks.frontend_checks(work) == (["front end, tests", "front end, types and format"] if ci else [])
    assert ("FAILED" if ci else "left out") + " (npm is missing)" in capsys.readouterr().out
