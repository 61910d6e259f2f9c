"""Makes the flags of the magics, the traits for `%config` and the completion of a line from the fields of `Settings`.

No option is declared here: a new field brings its flag, default, choices and help text.
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import os
import re
import shlex
from collections.abc import Callable
from types import FunctionType
from typing import Any

import traitlets
from IPython.core.completer import CompletionContext, SimpleCompletion, context_matcher
from IPython.core.error import UsageError
from IPython.core.magic_arguments import argument

from dynascope.compiler.settings import CHOICE, NUMBER, PAIRS, REPEAT, SWITCH, Settings, option_flag

Field = dataclasses.Field[Any]

#: the environment variable that names the default backend: for machines without a C++ compiler, and for CI
BACKEND = "DYNASCOPE_BACKEND"

#: the settings of `%%observe`, which compiles nothing
OBSERVE = ("output", "save", "view")


def fields(names: tuple[str, ...] | None = None) -> list[Field]:
    """The fields of `Settings`, in order; only those in `names`, if given."""
    return [f for f in dataclasses.fields(Settings) if names is None or f.name in names]


def default_of(f: Field) -> Any:
    """An option's default; DYNASCOPE_BACKEND sets that of `backend`."""
    if f.name == "backend":
        return os.environ.get(BACKEND) or f.default
    return f.default if f.default_factory is dataclasses.MISSING else f.default_factory()


def is_bool(f: Field) -> bool:
    """Whether the option's value is a bool: it is a switch, or its choices are true and false."""
    return bool(f.metadata["kind"] == SWITCH or f.metadata["choices"] == ("true", "false"))


def with_arguments(names: tuple[str, ...] | None = None) -> Callable[[Any], Any]:
    """A decorator that gives a magic the flags of these settings."""

    def decorate(magic: Any) -> Any:
        for f in reversed(fields(names)):
            flags = [option_flag(f), *(f"-{short}" for short in filter(None, [f.metadata["short"]]))]
            magic = argument(*flags, dest=f.name, default=None, **_keywords(f))(magic)
        return magic

    return decorate


def _keywords(f: Field) -> dict[str, Any]:
    """The arguments of `add_argument` for an option."""
    meta, kind, default = f.metadata, f.metadata["kind"], default_of(f)
    keywords: dict[str, Any] = {"help": meta["help"].replace("%", "%%")}
    if kind == SWITCH:
        has_values = {"action": _Switch, "choices": meta["choices"]}
        return keywords | (has_values if meta["choices"] else {"action": argparse.BooleanOptionalAction})
    if kind in (REPEAT, PAIRS):
        return keywords | {"action": "append", "metavar": meta["metavar"]}
    if default is not None:
        keywords["help"] += f" Default: {default}."
    if kind == CHOICE:
        return keywords | {"choices": meta["choices"]}
    keywords["metavar"] = meta["metavar"]
    if kind == NUMBER:
        keywords["type"] = float if f.type.startswith("float") else int
    return keywords if meta["bare"] is None else keywords | {"nargs": "?", "const": meta["bare"]}


class _Switch(argparse.BooleanOptionalAction):
    """A switch that also takes values: `--check`, `--no-check` and `--check=where`."""

    def __init__(self, *args: Any, choices: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self.nargs, self.choices = "?", choices

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        setattr(namespace, self.dest, values or not str(option_string).startswith("--no-"))


def settings_from(arguments: Any, defaults: Settings) -> Settings:
    """The settings of one run: those on the magic's line, and the defaults for all others.

    Raises UsageError, with a one-line message, for a value that cannot be read.
    """
    changes: dict[str, Any] = {}
    for f in fields():
        given = getattr(arguments, f.name, None)
        if given is None:
            continue
        if f.metadata["kind"] == PAIRS:
            given = dict(_pair(text, option_flag(f)) for text in given)
        elif f.metadata["choices"] == ("true", "false"):
            given = given == "true"
        changes[f.name] = given
    return defaults.replace(**changes)


def _pair(text: str, flag: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise UsageError(f"{flag} {text}: write it as KEY=VALUE")
    return key, _value(value)


def _value(text: str) -> Any:
    """What the text of a value means: True or False, another Python literal, or else the text."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return text


def command_line(magic: str, settings: Settings, defaults: Settings) -> str:
    """The magic's line that gives these settings under these defaults; callables and empty containers are left out.

    It is "" if no line can: where %config has given an option a default, no flag sets the option back to None.
    """
    words = [magic]
    for f in fields():
        value, flag, kind = getattr(settings, f.name), option_flag(f), f.metadata["kind"]
        if value == getattr(defaults, f.name) or callable(value):
            continue
        if value is None:
            return ""
        if kind == SWITCH:
            words.append(f"{flag}={value}" if isinstance(value, str) else flag if value else f"--no-{flag[2:]}")
            continue
        if kind == PAIRS:
            values = [f"{key}={item if _value(str(item)) == item else repr(item)}" for key, item in value.items()]
        elif kind == REPEAT:
            values = [str(item) for item in value]
        else:
            text = str(value).lower() if isinstance(value, bool) else str(value)
            values = [text.removesuffix(".0") if isinstance(value, float) else text]
        words += [word for item in values for word in (flag, shlex.quote(item))]
    return " ".join(words)


def config_traits() -> dict[str, Any]:
    """A trait for every option that can have a default for all later cells."""
    return {f.name: _trait(f).tag(config=True) for f in fields() if f.metadata["config"]}


def _trait(f: Field) -> Any:
    kind, help, default = f.metadata["kind"], f.metadata["help"], default_of(f)
    traits: Any = traitlets  # the overloads of traitlets must know statically whether None is allowed
    if kind == PAIRS:
        return traits.Dict(help=help)
    if kind == CHOICE and not is_bool(f):
        return traits.Enum(f.metadata["choices"], default, allow_none=default is None, help=help)
    if kind == SWITCH and f.metadata["choices"]:
        return traits.Union([traits.Bool(), traits.Enum(f.metadata["choices"])], default_value=default, help=help)
    number = traits.Float if f.type.startswith("float") else traits.Int
    trait = traits.Bool if is_bool(f) else number if kind == NUMBER else traits.Unicode
    return trait(default, allow_none=default is None, help=help)


# -- Tab completion --------------------------------------------------------------------------------


_LINE = re.compile(r"^\s*%{1,2}(compile|observe)\s(.*)$", re.S)


def matcher_for(magics: Any) -> Callable[[CompletionContext], Any]:
    """The matcher to register with IPython's completer."""

    @context_matcher()
    def dynascope_matcher(context: CompletionContext) -> Any:
        line = context.line_with_cursor[: context.cursor_position]
        match = _LINE.match(line)
        texts = completions(getattr(magics, f"run_{match[1]}").parser, match[2], magics.shell.user_ns) if match else []
        return {
            "completions": [SimpleCompletion(text=t, type="param") for t in texts],
            "suppress": bool(texts),
            "matched_fragment": _last_word(line) if match else None,
        }

    return dynascope_matcher  # type: ignore[no-any-return]


def completions(parser: Any, typed: str, namespace: dict[str, Any]) -> list[str]:
    """The completions at the end of `typed`, the text that follows the magic's name on its line; `parser`: the magic's."""
    word = _last_word(typed)
    previous = (typed[: len(typed) - len(word)].split() or [""])[-1]
    options = parser._option_string_actions
    flag, equals, start = word.partition("=")
    if flag.startswith("--") and equals:
        return [f"{flag}={v}" for v in _values(options[flag], namespace) if v.startswith(start)] if flag in options else []
    if previous in options and options[previous].nargs is None:  # it needs a value
        return [v for v in _values(options[previous], namespace) if v.startswith(word)]
    start = "--" if word in ("", "-") else word
    return [text for text in options if text.startswith(start)] if start.startswith("-") else []


def _last_word(line: str) -> str:
    return re.split(r"\s", line)[-1]


def _values(option: argparse.Action, namespace: dict[str, Any]) -> list[str]:
    """The values to offer for an option."""
    import torch

    if option.choices:
        return list(option.choices)
    if option.dest == "backend":
        from dynascope.compiler.capture.torch_private import config

        return [str(name) for name in config.backends()]
    if option.dest == "device":
        return ["cpu", "cuda", "meta", "mps", "xpu"]
    kinds = {"function": (FunctionType, torch.nn.Module), "inputs": (list, tuple)}.get(option.dest, ())
    return [name for name, value in namespace.items() if not name.startswith("_") and isinstance(value, kinds)]
