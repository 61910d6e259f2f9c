"""The registry through which a Report calls code of higher layers: for views, and for running graphs again.

The compiler does not import these layers; `dynascope/__init__.py` fills the registry.  It does so in every program that imports
torch (see `dynascope.autoload`), so this module imports next to nothing.
"""

from __future__ import annotations

import importlib
from typing import Any

#: name (or file suffix) -> "package.module:function", imported on first use; the function's first argument is the report
LOWERINGS: dict[str, str] = {}


def lower(name: str, subject: Any, *args: Any, **kwargs: Any) -> Any:
    """Call the function registered under `name`; raises KeyError if there is none."""
    module, _, function = LOWERINGS[name].partition(":")
    return getattr(importlib.import_module(module), function)(subject, *args, **kwargs)
