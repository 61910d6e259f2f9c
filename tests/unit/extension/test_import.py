"""`import dynascope` stays light."""

from __future__ import annotations

from processes import printed_by


def loaded_by(module: str) -> list[str]:
    """Modules that `import module` loads in a new process."""
    code = f"import sys; before = set(sys.modules); import {module}; print(*sorted(set(sys.modules) - before))"
    return printed_by("-c", code).split()


def test_import_loads_neither_torch_nor_ipython():
    assert not {"torch", "IPython", "anywidget"} & {*loaded_by("dynascope")}


def test_the_magics_load_no_torch_before_a_cell_runs():
    assert "torch" not in loaded_by("dynascope.magics")


def test_torch_loads_nothing_of_ours():
    assert not [module for module in loaded_by("torch") if module.partition(".")[0] == "dynascope"]
