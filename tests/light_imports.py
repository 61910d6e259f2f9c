"""Imported before nbformat: keeps jsonschema from loading a grammar of web addresses, which takes three seconds a process."""

import sys

sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
