"""`import dynascope` stays light."""

from __future__ import annotations

import subprocess
import sys


def loaded_by(module: str) -> list[str]:
    """Modules that `import module` loads in a new process."""
    code = f"import sys; before = set(sys.modules); import {module}; print(*sorted(set(sys.modules) - before))"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()


def test_import_loads_neither_torch_nor_ipython():
    assert not {"torch", "IPython", "anywidget"} & {*loaded_by("dynascope")}


def test_what_torch_loads_in_every_program_is_nearly_nothing():
    """`import torch` imports `dynascope.autoload` wherever dynascope is installed."""
    ours = [module for module in loaded_by("dynascope.autoload") if module.startswith("dynascope")]
    assert ours == ["dynascope", "dynascope.autoload", "dynascope.compiler", "dynascope.compiler.lowerings"]
