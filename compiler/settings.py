# ruff: noqa: RUF009
"""Every option of dynascope, declared once.

The magics' flags, `%config DynascopeMagics`, the Python API, the help text and the documentation are all derived from the
fields of `Settings`.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

MODES = ("default", "reduce-overhead", "lite", "max-autotune", "max-autotune-no-cudagraphs")
VIEWS = ("auto", "widget", "static", "text", "none")
SAVE_SUFFIXES = (".html", ".json", ".svg", ".dot", ".txt")

#: kinds of options, which decide how an option is written as a flag
SWITCH, CHOICE, TEXT, NUMBER, REPEAT, PAIRS = "switch", "choice", "text", "number", "repeat", "pairs"


_USUAL = {"group": "compile", "choices": (), "metavar": None, "short": None, "config": True, "bare": None}


def _option(default: Any, help: str, kind: str = TEXT, **more: Any) -> Any:
    """Declare an option: a field of Settings.

    `group`: "compile" (passed to the compiler), "run" (how the cell runs) or "view" (what is shown).
    `choices`: the values of a choice; for a switch, those that it takes besides True and False.
    `config`: whether `%config` can set it for all later cells.  `bare`: the value if the flag is given without an argument.
    """
    metadata = {"help": help, "kind": kind, **_USUAL, **more}
    if isinstance(default, (list, dict)):
        return field(default_factory=lambda: type(default)(default), metadata=metadata)
    return field(default=default, metadata=metadata)


#: settings that apply to a notebook cell only; the Python functions do not take them
CELL_SETTINGS = ("function", "region", "keep", "output", "view")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All settings of a run: how to compile, how to run, what to show."""

    fullgraph: bool = _option(
        False, "Fail at the first graph break: what is compiled is one graph each. Wins over --error-on-graph-break.", SWITCH
    )
    error_on_graph_break: bool | None = _option(
        None, "Fail at a graph break, unless a region allows it. More than one graph is still possible.", SWITCH
    )
    backend: str | Callable[..., Any] = _option(
        "inductor", "Compiler backend: inductor, eager, aot_eager, ... (torch.compiler.list_backends()).", metavar="NAME"
    )
    mode: str | None = _option(None, "Inductor's mode.", CHOICE, choices=MODES)
    dynamic: bool | None = _option(
        None, "Always (true) or never (false) trace with dynamic shapes; if not given, the compiler decides.", CHOICE,
        choices=("true", "false"),
    )  # fmt: skip
    options: dict[str, Any] = _option({}, "An option for the backend, as KEY=VALUE. Repeatable.", PAIRS, metavar="KEY=VALUE")
    nested_graph_breaks: bool | None = _option(
        None, "After a break deep in a call, resume all callers at once (torch._dynamo.config.nested_graph_breaks).", SWITCH
    )
    cache: bool = _option(True, "Use Inductor's and AOTAutograd's caches on disk; --no-cache compiles from scratch.", SWITCH)

    device: str | None = _option(None, "Default device of new tensors while the cell runs.", group="run", metavar="DEVICE")
    function: list[str] = _option(
        [], "Compile exactly this function, method or module, wherever the run calls it. Dotted names; repeatable.",
        REPEAT, group="run", short="f", metavar="NAME", config=False,
    )  # fmt: skip
    region: list[str] = _option(
        [], "Set error_on_graph_break for one place: TARGET=error or TARGET=allow; TARGET is a function, a dotted path "
        "into a library, or lines of the cell (9 or 9-12). Repeatable.",
        REPEAT, group="run", metavar="TARGET=error|allow", config=False,
    )  # fmt: skip
    bytecode: bool = _option(False, "Keep the bytecode of resume functions in the report.", SWITCH, group="view")
    keep: bool = _option(
        False, "Leave compiled functions and modules bound to their names after the cell, with what is compiled for them, but "
        "not its statements; not with --region. (The next call compiles again after --device, and where one function that "
        "it compiles calls another.)",
        SWITCH, group="run",
    )  # fmt: skip
    profile: int | None = _option(
        None, "Afterwards repeat the last compiled call N times under torch.profiler, restoring what it changes, and show "
        "where its time goes and what each break costs; 10 times if no number is given. 0: not, whatever %config says.",
        NUMBER, group="run", metavar="N", bare=10,
    )  # fmt: skip
    inputs: Any = _option(
        None, "With --profile: also call the compiled function with each element of this list, and show which of them "
        "recompile and what that costs. An element is one argument, a tuple of arguments, or a dict of keyword arguments.",
        group="run", metavar="NAME", config=False,
    )  # fmt: skip
    check: bool | str = _option(
        False, "Compare with eager: the last compiled call is repeated, compiled and eagerly, and values, gradients and "
        "in-place effects must agree. With =where, also search for the line at which a difference begins.",
        SWITCH, group="run", choices=("where",),
    )  # fmt: skip
    second_call: bool = _option(
        False, "Afterwards trace the calls again from the state that they have left, without the backend, and show which graph "
        "breaks only a first call has (lazy imports, caches that are filled, warnings shown once), and, in one trace each, "
        "what settings do that the compiler's hints name, if they change nothing else. --fix verifies more.",
        SWITCH, group="run",
    )  # fmt: skip
    fix: bool = _option(
        False, "Try fixes for each graph break on copies of the recorded calls, and show those that are verified to do the "
        "same as eager code.", SWITCH, group="run",
    )  # fmt: skip
    fix_seconds: float | None = _option(
        None, "Time limit of --fix; by default, ten times the time that compiling took, and at least 60.",
        NUMBER, group="run", metavar="SECONDS",
    )  # fmt: skip
    expect: str | None = _option(
        None, "Fail the cell unless these counts hold: graphs=2,breaks<=1,unexpected=0 (=, <= or >=).",
        group="run", metavar="COUNTS", config=False,
    )  # fmt: skip
    output: str | None = _option(None, "Bind the report to this name.", group="view", short="o", metavar="NAME", config=False)
    save: str | None = _option(
        None, "Save the report: .html, .json, .svg, .dot or .txt.", group="view", metavar="PATH", config=False
    )
    view: str = _option(
        "auto", "What to show: the widget, a static picture, text, nothing, or whichever fits the front end.", CHOICE,
        group="view", choices=VIEWS,
    )  # fmt: skip

    def __post_init__(self) -> None:
        """Set `profile` to None if it is 0: both mean that nothing is measured."""
        object.__setattr__(self, "profile", self.profile or None)

    def replace(self, **changes: Any) -> Settings:
        """A copy with these settings changed."""
        return dataclasses.replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """The settings as JSON-ready data; a backend that is a callable is given by its name."""
        data = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        if callable(self.backend):
            data["backend"] = getattr(self.backend, "__qualname__", type(self.backend).__name__)
        if not isinstance(self.inputs, (str, type(None))):
            data["inputs"] = f"{len(self.inputs)} inputs"  # the user's tensors are not kept
        data["options"] = {k: v if isinstance(v, (int, float, str, type(None))) else repr(v) for k, v in self.options.items()}
        return data

    def conflicts(self) -> str | None:
        """One line on an invalid value or settings that cannot be combined; None if it finds none (`validate` finds more)."""
        for f in dataclasses.fields(self):
            value, kind, choices = getattr(self, f.name), f.metadata["kind"], f.metadata["choices"]
            if value is None and f.default is None:
                continue
            if (kind == SWITCH or choices == ("true", "false")) and not isinstance(value, bool):
                values = list(map(repr, choices)) if kind == SWITCH else []
                if repr(value) not in values:
                    return f"{f.name} takes {', '.join(['True', *values])} or False, not {value!r}"
            if kind == CHOICE and choices not in (MODES, ("true", "false")) and value not in choices:
                return f"unknown {f.name} {value!r}: use one of {', '.join(choices)}"
            if kind == NUMBER and (isinstance(value, bool) or not isinstance(value, (int, float))):
                return f"{f.name} takes a number, not {value!r}"
            if kind == PAIRS and not isinstance(value, dict):
                return f"{f.name} takes a dict, not {value!r}"
        if self.mode is not None and self.options:
            return "give --mode or --options, not both (torch.compile takes either)"
        if self.inputs is not None and self.profile is None:
            return "--inputs requires --profile"
        return None


def option_flag(f: dataclasses.Field[Any]) -> str:
    """The flag of an option: `--error-on-graph-break` for the field `error_on_graph_break`."""
    return "--" + f.name.replace("_", "-")


def closest_name(name: str, candidates: Iterable[Any]) -> str | None:
    """The candidate that is spelled most like `name`, private names excluded; None if none is close."""
    names = [c for c in candidates if isinstance(c, str) and not c.startswith("_")]
    return next(iter(difflib.get_close_matches(name, names, n=1)), None)
