"""The registry through which a report's own methods call code that it must not import: views, fixes, running a graph by itself.

`dynascope/__init__.py` fills the registry.
"""

from __future__ import annotations

import importlib
from typing import Any

#: name (or file suffix) -> "package.module:function", imported on first use; its first argument is a report or a comparison
FORMATS: dict[str, str] = {}


def make(name: str, subject: Any, *args: Any, **kwargs: Any) -> Any:
    """Call the function registered under `name` with `subject` and these arguments; raises KeyError if none is registered."""
    module, _, function = FORMATS[name].partition(":")
    return getattr(importlib.import_module(module), function)(subject, *args, **kwargs)
