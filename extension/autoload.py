"""`torch_imported` is an entry point of the group `torch.backends`: torch calls it near the end of its own import.

It runs in every program that imports torch where dynascope is installed, unless TORCH_DEVICE_BACKEND_AUTOLOAD is 0.  So it
imports nothing of dynascope, and does nothing, unless the environment asks for a recording.
"""

from __future__ import annotations

import os
import sys

#: the value of `VARIABLE` in `compiler.jobs.recorder`, which is not imported here
VARIABLE = "DYNASCOPE_RANKS"
#: part of the command line of Inductor's compile workers, which inherit the environment of the rank that they compile for
_COMPILE_WORKER = "compile_worker"


def torch_imported() -> None:
    """Record this process, unless it is a compile worker, if DYNASCOPE_RANKS is set; an error is printed, not raised."""
    folder = os.environ.get(VARIABLE)
    if not folder or any(_COMPILE_WORKER in argument for argument in sys.orig_argv):
        return
    try:
        from dynascope.children import begin

        begin(folder)
    except Exception as error:
        print(f"dynascope: this process is not recorded: {error}", file=sys.stderr)
