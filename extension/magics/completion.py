"""Tab completion for lines of `compile` and `observe`: flags, their values, and names for `-f` and `--inputs`."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import FunctionType
from typing import Any

from IPython.core.completer import CompletionContext, SimpleCompletion, context_matcher

from dynascope.compiler.settings import SWITCH, option_flag
from dynascope.magics.flag_parser import OBSERVE, Field, fields, flags_of

_LINE = re.compile(r"^\s*%{1,2}(compile|observe)\s(.*)$", re.S)


def matcher_for(magics: Any) -> Callable[[CompletionContext], Any]:
    """The matcher to register with IPython's completer."""

    @context_matcher()
    def dynascope_matcher(context: CompletionContext) -> Any:
        line = context.line_with_cursor[: context.cursor_position]
        match = _LINE.match(line)
        texts = completions(match[1], match[2], magics.shell.user_ns) if match else []
        return {
            "completions": [SimpleCompletion(text=t, type="param") for t in texts],
            "suppress": bool(texts),
            "matched_fragment": _last_word(line) if match else None,
        }

    return dynascope_matcher  # type: ignore[no-any-return]


def completions(magic: str, typed: str, namespace: dict[str, Any]) -> list[str]:
    """The completions at the end of `typed`, the text that follows the magic's name on its line."""
    word = _last_word(typed)
    previous = (typed[: len(typed) - len(word)].split() or [""])[-1]
    options = {flag: f for f in fields(OBSERVE if magic == "observe" else None) for flag in flags_of(f)}
    flag, equals, start = word.partition("=")
    if flag.startswith("--") and equals:
        return [f"{flag}={v}" for v in _values(options[flag], namespace) if v.startswith(start)] if flag in options else []
    option = options.get(previous)
    if option and option.metadata["kind"] != SWITCH and option.metadata["bare"] is None:
        return [v for v in _values(option, namespace) if v.startswith(word)]
    if word and not word.startswith("-"):
        return []
    flags = [option_flag(f) for f in options.values()] + (["--fresh"] if magic == "observe" else [])
    opposites = {option_flag(f): f"--no-{option_flag(f)[2:]}" for f in options.values() if f.metadata["kind"] == SWITCH}
    both = [text for flag in dict.fromkeys(flags) for text in (flag, opposites.get(flag)) if text is not None]
    return [text for text in both if text.startswith(word or "--")]


def _last_word(line: str) -> str:
    return re.split(r"\s", line)[-1]


def _values(f: Field, namespace: dict[str, Any]) -> list[str]:
    """The values to offer for an option."""
    import torch

    if f.metadata["choices"]:
        return list(f.metadata["choices"])
    if f.name == "backend":
        from dynascope.compiler.capture.torch_private import config

        return [str(name) for name in config.backends()]
    if f.name == "device":
        return ["cpu", "cuda", "meta", "mps", "xpu"]
    kinds = {"function": (FunctionType, torch.nn.Module), "inputs": (list, tuple)}.get(f.name, ())
    return [name for name, value in namespace.items() if not name.startswith("_") and isinstance(value, kinds)]
