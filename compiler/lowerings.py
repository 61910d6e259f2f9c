"""The registry through which a Report calls code of higher layers: views, and running graphs again.

The compiler does not import them; the package's `__init__` (`dynascope/__init__.py`) fills the registry.  It does so in every
program that imports torch (see `dynascope.autoload`), so this module imports next to nothing.
"""

from __future__ import annotations

import importlib
from typing import Any

#: name (or file suffix) -> "package.module:function", imported on first use; its first argument is what is lowered
LOWERINGS: dict[str, str] = {}


def lower(name: str, subject: Any, *args: Any, **kwargs: Any) -> Any:
    """Call the function registered under `name`; raises KeyError if there is none."""
    module, _, function = LOWERINGS[name].partition(":")
    return getattr(importlib.import_module(module), function)(subject, *args, **kwargs)
