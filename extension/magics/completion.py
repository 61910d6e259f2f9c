"""Tab completion for the lines of the magics: flags, their values, and the names that `-f` and `--inputs` can take."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import FunctionType
from typing import Any

from IPython.core.completer import CompletionContext, SimpleCompletion, context_matcher

from dynascope.compiler.settings import option_flag
from dynascope.magics.options import OBSERVE, Field, fields

_LINE = re.compile(r"^\s*%{1,2}(compile|observe)\s(.*)$", re.S)


def matcher_for(magics: Any) -> Callable[[CompletionContext], Any]:
    """The matcher to register with IPython's completer."""

    @context_matcher()
    def dynascope_matcher(context: CompletionContext) -> Any:
        line = context.line_with_cursor[: context.cursor_position]
        found = _LINE.match(line)
        texts = completions(found[1], found[2], magics.shell.user_ns) if found else []
        return {
            "completions": [SimpleCompletion(text=t, type="param") for t in texts],
            "suppress": bool(texts),
            "matched_fragment": _fragment(line) if found else None,
        }

    return dynascope_matcher  # type: ignore[no-any-return]


def completions(magic: str, typed: str, namespace: dict[str, Any]) -> list[str]:
    """What can stand at the end of `typed`, the line after `%%compile `."""
    fragment = _fragment(typed)
    words = typed[: len(typed) - len(fragment)].split()
    previous = words[-1] if words else ""
    known = {flag: f for f in fields(OBSERVE if magic == "observe" else None) for flag in _spellings(f)}
    if fragment.startswith("--") and "=" in fragment:
        flag, _, start = fragment.partition("=")
        return [f"{flag}={v}" for v in _values(known[flag], namespace) if v.startswith(start)] if flag in known else []
    if previous in known and known[previous].metadata["kind"] != "switch":
        return [v for v in _values(known[previous], namespace) if v.startswith(fragment)]
    if fragment.startswith("-") or not fragment:
        flags = [flag for f in known.values() for flag in _flags(f)] + (["--fresh"] if magic == "observe" else [])
        return [flag for flag in dict.fromkeys(flags) if flag.startswith(fragment or "--")]
    return []


def _fragment(line: str) -> str:
    return re.split(r"\s", line)[-1]


def _spellings(f: Field) -> list[str]:
    return [option_flag(f)] + ([f"-{f.metadata['short']}"] if f.metadata["short"] else [])


def _flags(f: Field) -> list[str]:
    flag = option_flag(f)
    return [flag, f"--no-{flag[2:]}"] if f.metadata["kind"] == "switch" else [flag]


def _values(f: Field, namespace: dict[str, Any]) -> list[str]:
    if f.metadata["choices"]:
        return list(f.metadata["choices"])
    if f.name == "backend":
        from dynascope.compiler.torch_private import config

        return [str(name) for name in config.backends()]
    if f.name == "device":
        return ["cpu", "cuda", "meta", "mps", "xpu"]
    if f.name == "function":
        return [name for name, value in namespace.items() if not name.startswith("_") and _can_be_compiled(value)]
    if f.name == "inputs":
        return [name for name, value in namespace.items() if not name.startswith("_") and isinstance(value, (list, tuple))]
    return []


def _can_be_compiled(value: Any) -> bool:
    import torch

    return isinstance(value, (FunctionType, torch.nn.Module))
