"""The package list, the folders and the wheel agree, and a clean installation works.

A subpackage that is missing from the list in pyproject.toml is dropped from the wheel without a word:
the first test compares the two, and prints the fix.
"""

from __future__ import annotations

import json
import subprocess
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import nbformat
import pytest
from processes import printed_by
from project_files import copy_project, project_files, pyproject

import dynascope

TOP = {"dynascope": "extension", "dynascope.compiler": "compiler", "dynascope.widgets": "widgets"}


def packages(root: Path) -> dict[str, str]:
    """Every package that there is, with its folder."""
    found = {}
    for package, folder in TOP.items():
        for init in sorted((root / folder).rglob("__init__.py")):
            inner = init.parent.relative_to(root / folder).parts
            found[".".join([package, *inner])] = "/".join([folder, *inner])
    return found


def test_the_package_list_is_complete(root: Path) -> None:
    setuptools = pyproject(root)["tool"]["setuptools"]
    names = list(packages(root))
    fix = f"pyproject.toml, [tool.setuptools]:\n\npackages = {json.dumps(names)}\n"
    assert sorted(setuptools["packages"]) == sorted(names), f"the list and the folders differ; write\n\n{fix}"
    assert setuptools["package-dir"] == TOP


def test_the_version_stands_in_two_places_which_agree(root: Path) -> None:
    assert pyproject(root)["project"]["version"] == dynascope.__version__


def test_no_python_file_lies_outside_a_package(root: Path) -> None:
    folders = {root / folder for folder in packages(root).values()}
    for folder in TOP.values():
        stray = [p.relative_to(root) for p in (root / folder).rglob("*.py") if p.parent not in folders]
        assert not stray, f"{stray}: add an __init__.py to its folder, or these are left out of the wheel"


@pytest.fixture(scope="module")
def built(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, and the wheel that was built from the sdist."""
    out = tmp_path_factory.mktemp("dist")
    copy = copy_project(root, tmp_path_factory.mktemp("repository"))
    printed_by("-m", "build", "--no-isolation", "--outdir", out, copy)
    return out


@pytest.mark.packaging
def test_the_wheel_holds_every_file(root: Path, built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    for package, folder in packages(root).items():
        for source in (root / folder).glob("*.py"):
            assert f"{package.replace('.', '/')}/{source.name}" in names
    for asset in (root / "widgets" / "static").glob("*.*"):
        assert f"dynascope/widgets/static/{asset.name}" in names
    assert "dynascope/py.typed" in names
    ours = {n for n in names if n.startswith("dynascope/") and not n.endswith(".py")}
    assert ours == {"dynascope/py.typed", "dynascope/compiler/py.typed", "dynascope/widgets/py.typed"} | {
        f"dynascope/widgets/static/{asset.name}" for asset in (root / "widgets" / "static").iterdir()
    }, "the wheel holds the code and the built front end, not its sources"
    assert not [n for n in names if n.split("/")[0] in ("tests", "tools", "extension", "compiler", "widgets")]


@pytest.mark.packaging
def test_the_sdist_holds_the_project(root: Path, built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = [
        n
        for n in project_files(root)
        if n.startswith(("examples/", "binder/", "extension/", "compiler/", "widgets/", "tests/"))
    ]
    assert {"binder/environment.yml", "binder/postBuild", "LICENSE", "README.md", "Makefile"} <= names
    missing = [n for n in wanted if n not in names]
    assert not missing, f"MANIFEST.in leaves these out: {missing}"


@pytest.fixture(scope="module")
def clean_python(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clean environment with the wheel in it; torch and the rest are seen through a .pth file."""
    place = tmp_path_factory.mktemp("clean") / "venv"
    venv.create(place, symlinks=True)
    python = place / "bin" / "python"
    (wheel,) = built.glob("*.whl")
    target = next((place / "lib").glob("python3*")) / "site-packages"
    printed_by("-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target", target, wheel)
    # a plain path line: the .pth files in there, the editable installation's among them, are not read
    (target / "others.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    return python


def run_clean(python: Path, code: str, folder: Path) -> str:
    done = subprocess.run([str(python), "-c", code], cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.packaging
def test_the_wheel_loads_lightly_from_where_it_is_installed(root: Path, clean_python: Path, tmp_path: Path) -> None:
    code = (
        "import dynascope, sys\nprint(dynascope.__file__)\n"
        "assert not {'torch', 'IPython', 'anywidget'} & set(sys.modules), sorted(sys.modules)\n"
    )
    assert str(clean_python.parent.parent) in run_clean(clean_python, code, tmp_path)


@pytest.mark.packaging
def test_the_extension_loads_and_the_tours_first_cell_runs(root: Path, clean_python: Path, tmp_path: Path) -> None:
    cells = []
    if (root / "examples" / "tour.ipynb").exists():
        notebook = nbformat.read(root / "examples" / "tour.ipynb", as_version=4)
        cells = [c.source for c in notebook.cells if c.cell_type == "code"]
    # up to the first cell that compiles: the tour may begin with imports
    first = next((i for i, source in enumerate(cells) if "%%compile" in source), len(cells) - 1)
    code = (
        "from IPython.testing.globalipapp import start_ipython\n"
        "shell = start_ipython()\n"
        "shell.run_line_magic('load_ext', 'dynascope')\n"
        f"for source in {cells[: first + 1]!r}:\n"
        "    shell.run_cell(source).raise_error()\n"
        "assert 'compile' in shell.magics_manager.magics['cell']\n"
        "shell.run_line_magic('unload_ext', 'dynascope')\n"
        "import dynascope; print(dynascope.__file__)\n"
    )
    assert str(clean_python.parent.parent) in run_clean(clean_python, code, tmp_path)


@pytest.mark.packaging
def test_the_command_is_declared(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [n for n in archive.namelist() if n.endswith("entry_points.txt")]
        text = archive.read(name).decode()
    assert "dynascope = dynascope.cli:main" in text
    assert "dynascope = dynascope.pytest_plugin" in text
