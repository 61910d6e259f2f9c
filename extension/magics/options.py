"""The settings as IPython sees them: flags of the magics, and traits for `%config`.

Nothing is declared here: every flag, default, choice and help text comes from the fields of `Settings`.
"""

from __future__ import annotations

import ast
import dataclasses
import os
import shlex
from collections.abc import Callable
from typing import Any

import traitlets
from IPython.core.error import UsageError
from IPython.core.magic_arguments import argument

from dynascope.compiler.settings import CHOICE, NUMBER, PAIRS, REPEAT, SWITCH, Settings, option_flag

Field = dataclasses.Field[Any]

#: the variable that names the default backend: for machines without a C++ compiler, and for CI
BACKEND = "DYNASCOPE_BACKEND"

#: what `%%observe` takes of it: it compiles nothing
OBSERVE = ("output", "save", "view")


def fields(names: tuple[str, ...] | None = None) -> list[Field]:
    """The options, in order; only those named, if any are."""
    return [f for f in dataclasses.fields(Settings) if names is None or f.name in names]


def default_of(f: Field) -> Any:
    """An option's default.  That of `backend` is taken from the environment where DYNASCOPE_BACKEND is set."""
    if f.name == "backend":
        return os.environ.get(BACKEND) or f.default
    if f.default_factory is not dataclasses.MISSING:
        return f.default_factory()
    return f.default


def with_arguments(names: tuple[str, ...] | None = None) -> Callable[[Any], Any]:
    """A decorator that gives a magic the flags of these settings."""

    def decorate(magic: Any) -> Any:
        for f in reversed(fields(names)):
            for arguments, keywords in reversed(_flags(f)):
                magic = argument(*arguments, **keywords)(magic)
        return magic

    return decorate


def _flags(f: Field) -> list[tuple[list[str], dict[str, Any]]]:
    meta, flag = f.metadata, option_flag(f)
    names = ([f"-{meta['short']}"] if meta["short"] else []) + [flag]
    help = meta["help"].replace("%", "%%")
    common: dict[str, Any] = {"dest": f.name, "default": None}
    if meta["kind"] == SWITCH:
        off = f"--no-{flag[2:]}"
        return [
            (names, {**common, "action": "store_const", "const": True, "help": help}),
            ([off], {**common, "action": "store_const", "const": False, "help": f"The opposite of {flag}."}),
        ]
    if meta["kind"] in (REPEAT, PAIRS):
        return [(names, {**common, "action": "append", "metavar": meta["metavar"], "help": help})]
    default = default_of(f)
    if default is not None:
        help += f" Default: {default}."
    if meta["kind"] == CHOICE:
        return [(names, {**common, "choices": meta["choices"], "help": help})]
    keywords: dict[str, Any] = {**common, "metavar": meta["metavar"], "help": help}
    if meta["kind"] == NUMBER:
        keywords["type"] = int
    if meta["bare"] is not None:
        keywords |= {"nargs": "?", "const": meta["bare"]}
    return [(names, keywords)]


def settings_from(arguments: Any, defaults: Settings) -> Settings:
    """The settings of one run: what the magic's line says, else the defaults.

    Raises UsageError, in one line, for a value that cannot be read.
    """
    changes: dict[str, Any] = {}
    for f in fields():
        given = getattr(arguments, f.name, None)
        if given is None:
            continue
        if f.metadata["kind"] == PAIRS:
            given = dict(_pair(text, option_flag(f)) for text in given)
        elif f.metadata["kind"] == CHOICE and f.metadata["choices"] == ("true", "false"):
            given = given == "true"
        elif f.name in ("fullgraph", "error_on_graph_break") and given is not True:
            given = False
        changes[f.name] = given
    return defaults.replace(**changes)


def _pair(text: str, flag: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise UsageError(f"{flag} {text}: write it as KEY=VALUE")
    if value.lower() in ("true", "false"):
        return key, value.lower() == "true"
    try:
        return key, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return key, value


def command_line(magic: str, settings: Settings, defaults: Settings) -> str:
    """The magic's line that gives these settings where these defaults are in force."""
    words = [magic]
    for f in fields():
        value, flag, kind = getattr(settings, f.name), option_flag(f), f.metadata["kind"]
        if value == getattr(defaults, f.name) or callable(value):
            continue
        if kind == SWITCH:
            words.append(flag if value else f"--no-{flag[2:]}")
        elif kind == REPEAT:
            words += [w for item in value for w in (flag, shlex.quote(str(item)))]
        elif kind == PAIRS:
            words += [w for key, item in value.items() for w in (flag, shlex.quote(f"{key}={item}"))]
        elif value is not None:
            text = str(value).lower() if isinstance(value, bool) else str(value)
            words += [flag, shlex.quote(text)]
    return " ".join(words)


def config_traits() -> dict[str, Any]:
    """A trait for every option that can have a default for all later cells."""
    return {f.name: _trait(f).tag(config=True) for f in fields() if f.metadata["config"]}


def _trait(f: Field) -> Any:
    meta = f.metadata
    default: Any = default_of(f)
    traits: Any = traitlets  # whether None is allowed is known at run time only, which its overloads cannot say
    if meta["kind"] == SWITCH:
        return traits.Bool(default, allow_none=default is None, help=meta["help"])
    if meta["kind"] == CHOICE and meta["choices"] == ("true", "false"):
        return traits.Bool(default, allow_none=True, help=meta["help"])
    if meta["kind"] == CHOICE:
        return traits.Enum(meta["choices"], default, allow_none=default is None, help=meta["help"])
    if meta["kind"] == PAIRS:
        return traits.Dict(help=meta["help"])
    if meta["kind"] == REPEAT:
        return traits.List(traits.Unicode(), help=meta["help"])
    if meta["kind"] == NUMBER:
        return traits.Int(default, allow_none=default is None, help=meta["help"])
    return traits.Unicode(default, allow_none=default is None, help=meta["help"])


def describe_defaults(magics: Any) -> str:
    """One line for each default: its name, its value, where it comes from."""
    configured = magics.config.get(type(magics).__name__, {})
    rows = []
    for f in fields():
        if not f.metadata["config"]:
            continue
        value = getattr(magics, f.name)
        if f.name in configured:
            source = "%config, or IPython's configuration"
        elif f.name == "backend" and os.environ.get(BACKEND) and value == os.environ[BACKEND]:
            source = f"the environment variable {BACKEND}"
        else:
            source = "default" if value == default_of(f) else "set in Python"
        rows.append((f.name, repr(value), source))
    widths = [max(len(row[i]) for row in rows) for i in (0, 1)]
    lines = [f"{name:<{widths[0]}}  {value:<{widths[1]}}  {source}" for name, value, source in rows]
    return "\n".join([*lines, "", "Change one with %config DynascopeMagics.NAME = VALUE."])
