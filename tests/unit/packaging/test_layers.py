"""The shape of the import package: no circles, small folders.  Its layers are in pyproject.toml, for import-linter."""

from __future__ import annotations

import graphlib
import json
from pathlib import Path

import pytest
from processes import printed_by
from project_files import pyproject

from tools.typecheck import assemble

FOLDERS = ("compiler", "extension", "widgets")
#: a folder with more modules than this has more than one subject
MODULES = 14


#: where it runs, grimp finds the assembled package, not the one that pytest has imported
PRINT_IMPORTS = """
import grimp, json
graph = grimp.build_graph("dynascope", cache_dir=None)
print(json.dumps({m: sorted(graph.find_modules_directly_imported_by(m)) for m in graph.modules}))
"""


def test_no_module_imports_itself_through_others(root: Path, tmp_path: Path) -> None:
    """Imports in functions and imports for annotations count."""
    assemble(root, tmp_path)
    imports = json.loads(printed_by("-c", PRINT_IMPORTS, folder=tmp_path))
    assert "dynascope.compiler.settings" in imports["dynascope.options"]
    try:
        graphlib.TopologicalSorter(imports).prepare()
    except graphlib.CycleError as error:
        pytest.fail("a circle: " + " <- ".join(error.args[1]))


def test_folders_are_small(root: Path) -> None:
    sizes = {
        init.parent.relative_to(root).as_posix(): len([p for p in init.parent.glob("*.py") if p != init])
        for folder in FOLDERS
        for init in (root / folder).rglob("__init__.py")
    }
    assert sizes
    large = {folder: size for folder, size in sizes.items() if size > MODULES}
    assert not large, f"more than {MODULES} modules: {large}"


def test_the_contract_of_the_widgets_names_all_of_the_compiler(root: Path) -> None:
    """import-linter's `forbidden` names modules one by one; a new one must not be forgotten."""
    contracts = pyproject(root)["tool"]["importlinter"]["contracts"]
    (forbidden,) = [c["forbidden_modules"] for c in contracts if c["type"] == "forbidden"]
    here = {p.stem for p in (root / "compiler").iterdir() if p.suffix == ".py" or (p / "__init__.py").exists()}
    allowed = {"__init__", "formats", "parsing", "ranks", "report", "settings"}
    whole = [name for name in forbidden if name.count(".") == 2]
    assert sorted(whole) == sorted(f"dynascope.compiler.{name}" for name in here - allowed)
