"""Makes candidates that change settings, from the message of a graph break or the guards that failed before a recompile."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from dynascope.compiler.lab.fix.candidate import Candidate, Problem
from dynascope.compiler.lab.fix.patch import marked_calls
from dynascope.compiler.lab.fix.plan import DYNAMO, MARK
from dynascope.compiler.lab.fix.rewrites.reading import number_of
from dynascope.compiler.lab.fix.variations import EMPTY
from dynascope.compiler.parsing import parsed
from dynascope.compiler.report import Recompile, Report, listed

_SCALARS = re.compile(r"capture_scalar_outputs|\.item\(\)|GuardOnDataDependent|scalar|Dynamic slicing", re.I)
_SHAPES = re.compile(r"capture_dynamic_output_shape_ops|dynamic (output )?shape|nonzero", re.I)
_LOGGER = re.compile(r"logging\.Logger|ignore_logg")
_IGNORED = re.compile(r"ignore_logg\w+")
#: a setting that a break's message may name -> title of the candidate that switches it on
_SWITCHES = {"allow_rnn": "Capture recurrent layers", "trace_autograd_ops": "Capture torch.autograd.grad and backward()"}
_AFTER = (
    "The lines come after the graph has run, not between its operations; they may be lost if an operation raises an exception, "
    "if another graph break follows, or, as the setting is for all code, where other compiled code calls a function that prints"
)
#: settings with which graphs compute with Python numbers whose values are not known
_CAPTURING = (DYNAMO + "capture_scalar_outputs", DYNAMO + "capture_dynamic_output_shape_ops")
#: a number that comes out of a tensor, in a node's dtype: `Sym(u0)`
_UNKNOWN = re.compile(r"\bz?uf?\d")
#: targets of nodes that do the same as Python for every number
_EXACT = re.compile(
    r"(\w+\.|_operator_)*(item|tolist|getitem|add|sub|mul|neg|pos|abs|eq|ne|[lg][te]|and_|or_|not_|size|numel"
    r"|sym_(size|float|not|ite)|_assert_scalar)(\.\w+)?"
)
#: a symbol in an expression
_SYMBOL = re.compile(r"\b[a-z]+\d+\b")
#: in a node's code: division by a constant other than 0
_BY_CONSTANT = re.compile(r"[/%] [\d.]*[1-9][\d.]*$")
_ARITHMETIC = "No arithmetic on captured numbers raises an exception, such as a division by zero, or meets a NaN"
#: in a node's code: the expression that it checks; one that bounds a size, and so never fails, or, from above, also a number
_CHECK, _OF_SIZES = re.compile(r"expression (.+) on node"), re.compile(r"expression (u\d+) (>= 0|<= \d+) on node")


def candidates(problem: Problem) -> list[Candidate]:
    """Settings that may remove the break, in the order in which they are tried."""
    text = f"{problem.kind} {problem.reason}"
    found: list[Candidate] = []
    if any(word in text for word in ("reorderable_logging_functions", "print", "warn")):
        found += _reorderable(problem)
    # under Python 3.11, a comprehension that does so is a function of its own, and what it iterates over breaks
    takes_scalars = _SCALARS.search(text) or any(map(number_of, _calls(problem)))
    if takes_scalars:
        captured = _dynamo("Capture numbers that come out of tensors", capture_scalar_outputs=True)
        found += [captured, *(_together(captured, one) for one in _reorderable(problem))]
    if _SHAPES.search(text):
        found.append(_dynamo("Capture operations whose sizes depend on values", capture_dynamic_output_shape_ops=True))
    if takes_scalars or _SHAPES.search(text):
        both = {"capture_scalar_outputs": True, "capture_dynamic_output_shape_ops": True}
        found.append(_dynamo("Capture numbers, and sizes that depend on values", **both))
    found += [_dynamo(title, **{name: True}) for name, title in _SWITCHES.items() if name in text]
    if "Data-dependent branching" not in text and _LOGGER.search(text):
        named = _IGNORED.search(text)  # torch 2.9 calls the setting ignore_logger_methods
        found += _ignored(problem, named[0] if named else "ignore_logging_functions")
    return found


def assumptions(settings: Mapping[str, object], report: Report) -> list[str]:
    """What these settings assume about the numbers and tensors in a report's graphs."""
    nodes = [node for graph in report.graphs for node in graph.nodes if node.op != "placeholder"]
    numbers = [n for n in nodes if (n.dtype or "").startswith("Sym(") and _UNKNOWN.search(n.dtype or "")]
    inexact = any(not _EXACT.fullmatch(n.target) and not _BY_CONSTANT.search(n.code) for n in numbers)
    # compiled for a CPU, an LSTM may end the process where eager mode has an empty result
    fatal = DYNAMO + "allow_rnn" in settings and {"torch.lstm", "cpu"} <= {text for n in nodes for text in (n.target, n.device)}
    captures = any(name in settings for name in _CAPTURING)
    symbols = (s for f in report.frames if captures for s in f.symbols if ".item()" in str(s.source))
    fixed = dict.fromkeys(str(s.source) for s in symbols if any(c.value is not None for c in s.constraints))
    varies = [f"{listed(fixed, 3)} does not vary: the code is compiled again for each other value"] * bool(fixed)
    return [_ARITHMETIC] * (inexact and captures) + varies + [EMPTY] * fatal


def conditions(report: Report, before: Report, text: Callable[[str], str]) -> dict[str, str]:
    """The checks in the graphs of a changed program that eager mode does not make: how it differs -> the sentence.

    `before`: the report of the unchanged program, whose own graphs may have checks; `text` returns the text of a file.
    """
    known = {node.code for graph in before.graphs for node in graph.nodes}
    every = [n for g in report.graphs for n in g.nodes]
    numbers = {(n.dtype or "")[4:-1] for n in every if n.target == "item"}
    sizes = {n.code for n in every if (s := _OF_SIZES.search(n.code)) and (s[2] == ">= 0" or s[1] not in numbers)}
    nodes = [n for n in every if n.code not in known | sizes]
    checks = [(n, c[1]) for n in nodes if "_assert" in n.target and (c := _CHECK.search(n.code)) and c[1] != "True"]
    # eager mode makes those of `torch._check(n > 2)`, too; they are in the graph at the line of `n`, as well, as `u0 >= 3`
    lines = [(c, text(n.file or "").split("\n")[(n.line or 1) - 1 :][:1]) for n, c in checks]
    own = [_SYMBOL.findall(c) for c, line in lines if "torch._check" in "".join(line)]
    if found := list(dict.fromkeys(c for _, c in checks if "Eq(" in c or _SYMBOL.findall(c) not in own)):
        checked = f"Captured numbers pass the checks of the version that runs ({listed(found, 3)}), or it raises RuntimeError"
        return {checked: checked}
    return {}


def for_recompile(recompile: Recompile, function: str, text: str) -> list[Candidate]:
    """Settings with which one compile may serve all calls.

    If the only guard that failed is for a size of a tensor with a plain name, marking that dimension is one of them.  The mark
    is tried before `dynamic=True`, as the smaller change, if it can be written into `text`, before the calls of `function`:
    "" if only compiled code calls it, because only arguments of repeated calls can be marked.
    """
    found: list[Candidate] = []
    guards = recompile.failed_guards
    every = Candidate("setting", "Compile for all sizes and numbers at once", settings={"dynamic": True})
    if any(guard.kind in ("size", "stride", "range", "minimum", "expression", "value") for guard in guards):
        found.append(every)
    if function and [guard.kind for guard in guards] == ["size"] and (guards[0].source or "").isidentifier():
        name, mark = guards[0].source, f"{guards[0].source}, {guards[0].dimension}"
        marked = Candidate("setting", f"Mark dimension {guards[0].dimension} of {name} as dynamic", settings={MARK: [mark]})
        found.insert(len(found) if marked_calls(text, function, [mark]) is None else 0, marked)
    # torch hints at it, too, for a module that is a global, whose integers stay static
    if any("allow_unspec_int_on_nn_module" in text and "G[" not in text.partition("  #")[0] for text in recompile.reasons):
        integers = _dynamo("Treat integer attributes of modules as inputs", allow_unspec_int_on_nn_module=True)
        found += [integers, _together(integers, every)]
    return found


def _dynamo(title: str, **values: object) -> Candidate:
    return Candidate("setting", title, settings={DYNAMO + name: value for name, value in values.items()})


def _together(one: Candidate, other: Candidate) -> Candidate:
    """One candidate with the settings of both: `print(f"{x.item():.3f}")` needs them."""
    title = f"{one.title}; {other.title[0].lower()}{other.title[1:]}"
    return replace(other, title=title, settings={**one.settings, **other.settings})


def _reorderable(problem: Problem) -> list[Candidate]:
    """Candidates that run print() and warnings.warn() after the graph."""
    names = ({"print": "builtins.print"}, _AFTER), ({"warn": "warnings.warn"}, f"{_AFTER}; a warning names another line")
    setting, title = "reorderable_logging_functions", "Run {}() after the graph"
    return [found for full, assumed in names for found in _for_calls(problem, setting, full, title, assumed)]


def _ignored(problem: Problem, setting: str) -> list[Candidate]:
    """Candidates that drop log records in compiled code, which is refused where anything is logged."""
    names = {name: f"logging.Logger.{name}" for name in ("debug", "info", "warning", "error", "critical", "log", "exception")}
    lost = "The log records of compiled code are lost"
    return _for_calls(problem, setting, names, "Drop what {} logs in compiled code", lost)


def _for_calls(problem: Problem, setting: str, names: Mapping[str, str], title: str, assumption: str) -> list[Candidate]:
    """A candidate for each function or method that is called on the lines of the break: its full name joins the setting."""
    found = dict.fromkeys(getattr(call.func, "attr", getattr(call.func, "id", "")) for call in _calls(problem))
    full = [names[name] for name in found if name in names]
    made = [_dynamo(title.format(name.removeprefix("builtins.")), **{setting: [name]}) for name in full]
    return [replace(candidate, assumption=assumption) for candidate in made]


def _calls(problem: Problem) -> list[ast.Call]:
    """The calls on the lines of the break."""
    calls = (node for node in ast.walk(parsed(problem.source) or ast.Module([], [])) if isinstance(node, ast.Call))
    return [call for call in calls if call.lineno <= problem.end_line and (call.end_lineno or 0) >= problem.line]
