"""`import dynascope` stays light."""

from __future__ import annotations

import subprocess
import sys


def test_import_loads_neither_torch_nor_ipython():
    code = "import sys, dynascope; print([m for m in ('torch', 'IPython', 'anywidget') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
