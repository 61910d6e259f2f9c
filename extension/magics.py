"""`%%compile`, `%compile`, `%%observe`, `%observe` and `%fix`.

A cell magic reads its line into `Settings` and its cell into a `Cell`, and runs a `CellRun`.  `load` adds the magics, their
configuration and completion to a shell, and hooks before and after each cell; `unload` removes exactly what was added.
"""

from __future__ import annotations

import argparse
import difflib
import re
import shlex
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_cell_magic, line_magic, magics_class, no_var_expand, output_can_be_silenced
from IPython.core.magic_arguments import argument, magic_arguments
from traitlets import TraitError

from dynascope.cell import tracebacks
from dynascope.cell.source import Cell, read_cell, read_expression
from dynascope.compiler.driver import last
from dynascope.compiler.patching import own, put
from dynascope.compiler.report import encodable, label
from dynascope.compiler.settings import Settings
from dynascope.compiler.source import edited
from dynascope.compiler.validate import errors_as, with_suggestion
from dynascope.options import OBSERVE, command_line, config_traits, matcher_for, settings_from, with_arguments
from dynascope.runs import rerun
from dynascope.runs.cell_run import CellRun, history
from dynascope.shell import cell_number, raw_cell
from dynascope.widgets.features.fixes import fixes_summary, unplaced_settings


@magics_class
class DynascopeMagics(Magics):
    """Defaults for every later %%compile and %%observe: %config DynascopeMagics.backend = "eager"."""

    locals().update(config_traits())  # one for each option that %config can set

    @output_can_be_silenced
    @no_var_expand
    @line_cell_magic("compile")
    @magic_arguments("compile")
    @with_arguments()
    def run_compile(self, line: str = "", cell: str | None = None) -> Any:
        """Run a cell under torch.compile and show what the compiler did.

        %%compile [options] above a cell, or %compile [options] EXPRESSION.

        With -f, exactly the named functions, methods and modules are compiled. Otherwise, the functions and nn.Module
        classes that the cell defines are compiled where its own statements call them; if it defines none, its
        statements are compiled. Of statements that train, or that make modules or optimizers, what they call is
        compiled instead: modules, and functions of yours. Names, values, effects, output and errors are those of the
        plain cell. The value of the last expression is the cell's result.
        """
        name = "%compile" if cell is None else "%%compile"
        defaults = self.defaults()
        parsed, settings, _ = self._read(self.run_compile, name, line, cell)
        return CellRun(
            self.shell, parsed, settings, command_line=lambda other: command_line(name, other, defaults),
            raw=raw_cell(self.shell), attach=rerun.attach,
        )()  # fmt: skip

    @output_can_be_silenced
    @no_var_expand
    @line_cell_magic("observe")
    @magic_arguments("observe")
    @with_arguments(OBSERVE)
    @argument("--fresh", action="store_true", help="Trace again what the compiler already knows from earlier runs.")
    def run_observe(self, line: str = "", cell: str | None = None) -> Any:
        """Run a cell unchanged and show what happens in the compiled functions that it calls.

        %%observe [options] above a cell, or %observe [options] EXPRESSION.

        Code that was compiled before the recording runs from the compiler's cache: it is shown as cached, its
        breaks unknown. --fresh traces it again.
        """
        name = "%observe" if cell is None else "%%observe"
        parsed, settings, arguments = self._read(self.run_observe, name, line, cell)
        again = f"{name} --fresh traces it again"
        return CellRun(self.shell, parsed, settings, compiles=False, retraces=arguments.fresh, trace_again=again)()

    @line_magic("fix")  # type: ignore[arg-type]
    def put_fixed_cell(self, line: str = "") -> None:
        """Put the fixed cell of the latest report, made with --fix, into a new cell below this one; nothing is overwritten.

        `%fix --conditional`: with the fixes that hold only under a condition, too.
        """
        conditional = line.strip() == "--conditional"
        if line.strip() and not conditional:
            raise UsageError("%fix takes only --conditional: it uses the latest report")
        with errors_as(UsageError):
            report = last()
        fixes = report.fixes_to_apply(conditional=conditional)
        if fixes is None:
            raise UsageError("the latest report has no fixes: run the cell with %%compile --fix")
        *others, file = [*fixes.cells] or [""]
        if not file:
            print(encodable(fixes_summary(report)) or "The latest report has no graph break to fix.")
            if not conditional and report.conditional_fix_set is not None:
                print("%fix --conditional uses the fixes that hold under a condition, too")
        else:
            shell: Any = self.shell
            shell.set_next_input(fixes.cells[file], replace=False)
        for other in others:
            number = cell_number(other)
            name, before = label(other, number), raw_cell(self.shell, number or 0).splitlines()
            diff = difflib.unified_diff(before, fixes.cells[other].splitlines(), name, f"{name}, fixed", lineterm="")
            print(encodable("\n".join([f"{name} changes, too: edit it, and run it before the new cell", *diff])))
        changed = dict.fromkeys(edit.file for edit in fixes.edits if edit.file not in fixes.cells)
        if names := ", ".join(label(other, cell_number(other)) for other in changed):
            patch, fixed = (f"dynascope.last().{name}({'conditional=True' * conditional})" for name in ("patch", "fixed"))
            print(encodable(f"For {names}, print({patch}) has the diff; `with {fixed}:` has all fixes in force"))
        for statement in unplaced_settings(fixes):
            print(f"Not in the cell: {statement}")

    def defaults(self) -> Settings:
        """The settings that are in force unless a magic's line sets others."""
        return Settings(**{name: getattr(self, name) for name in config_traits()})

    def _read(self, magic: Any, name: str, line: str, cell: str | None) -> tuple[Cell, Settings, Any]:
        """The cell (for a line magic, its expression), the settings, and all parsed options."""
        options, expression = (line, "") if cell is not None else split_line(magic.parser, line)
        try:
            arguments = magic.parser.parse_args(shlex.split(options))
        except ValueError as error:  # quotes that do not close
            raise UsageError(f"cannot read the options {options!r}: {error}") from None
        except UsageError as error:
            raise UsageError(with_suggestion(str(error), magic.parser)) from None
        settings = settings_from(arguments, self.defaults())
        try:
            if cell is None:
                return read_expression(self.shell, expression, name), settings, arguments
            return read_cell(self.shell, cell, name, line), settings, arguments
        except SyntaxError as error:
            tracebacks.show_trimmed(self.shell, error)
            raise


_WORD = re.compile(r"""(?:"[^"]*"|'[^']*'|\S)+""")


def split_line(parser: Any, line: str) -> tuple[str, str]:
    """Split a line: `--backend eager f("a  b")` into `--backend eager ` and `f("a  b")`; `--` ends the options."""
    nargs: Any = 0  # of the option before
    for word in _WORD.finditer(line):
        if nargs is None or (nargs == "?" and word[0][0].isdigit()):  # `--profile 5 f(x)`, but `--profile f(x)`
            nargs = 0
        elif word[0] == "--" or not word[0].startswith("-"):
            return line[: word.start()], line[word.start() :].removeprefix("--").strip()
        else:
            nargs = 0 if "=" in word[0] else _nargs(parser, word[0])
    return line, ""


def _nargs(parser: Any, flag: str) -> Any:
    """argparse's `nargs` of a flag, which may be abbreviated: None means one value; 0 for an unknown flag."""
    options = parser._option_string_actions
    action = options.get(flag) or next((action for option, action in options.items() if option.startswith(flag)), None)
    # a switch takes a value after = only
    return 0 if action is None or isinstance(action, argparse.BooleanOptionalAction) else action.nargs


# -- %load_ext and %unload_ext ---------------------------------------------------------------------


_EVENTS = (
    ("pre_run_cell", rerun.before_cell),
    ("post_run_cell", rerun.after_cell),
    ("post_run_cell", tracebacks.after_cell),
    ("post_run_cell", lambda result=None: edited.note_loaded()),
)


def _configured(shell: Any) -> DynascopeMagics:
    """The magics, configured by IPython; if the configuration has a value that they cannot take, all of it is ignored."""
    try:
        return DynascopeMagics(shell)
    except TraitError as error:
        shell.configurables[:] = [c for c in shell.configurables if not isinstance(c, DynascopeMagics)]
        shell.config.pop(DynascopeMagics.__name__)
        print(f"dynascope: the configuration is ignored: {error}", file=sys.stderr)
        return DynascopeMagics(shell)


#: what removes the extension from a shell, by the shell's id
_loaded: dict[int, Callable[[], None]] = {}


def load(shell: Any) -> None:
    """Add the magics, their configuration, their completion and the hooks for cells; a second call changes nothing."""
    if id(shell) in _loaded:
        return
    table = shell.magics_manager.magics
    replaced = {(kind, name): own(table[kind], name) for kind in ("line", "cell") for name in ("compile", "observe", "fix")}
    magics = _configured(shell)
    shell.register_magics(magics)
    matcher = matcher_for(magics)
    shell.Completer.custom_matchers.append(matcher)
    for event, hook in _EVENTS:
        shell.events.register(event, hook)
    edited.note_loaded()
    _loaded[id(shell)] = partial(_undo, shell, replaced, magics, matcher)


def _undo(shell: Any, replaced: dict[tuple[str, str], Any], magics: DynascopeMagics, matcher: Any) -> None:
    manager = shell.magics_manager
    for (kind, name), before in replaced.items():
        if getattr(manager.magics[kind].get(name), "__self__", None) is magics:  # else something else has replaced it
            put(manager.magics[kind], name, before)
    if manager.registry.get(type(magics).__name__) is magics:
        del manager.registry[type(magics).__name__]
    for added, to in ((magics, shell.configurables), (matcher, shell.Completer.custom_matchers)):
        if added in to:
            to.remove(added)
    for event, hook in _EVENTS:
        if hook in shell.events.callbacks[event]:
            shell.events.unregister(event, hook)
    tracebacks.after_cell()
    rerun.switch_off()
    history.clear()


def unload(shell: Any) -> None:
    """Remove what `load` added."""
    _loaded.pop(id(shell), lambda: None)()
