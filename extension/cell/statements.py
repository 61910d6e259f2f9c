"""Compiles the statements of a cell that defines no function and no `nn.Module` class, as functions.

    def __cell__(_in): global y, z; ...; return None, <the last expression>, _in

Every name that the cell binds is global, so callees, lambdas that run later and exception handlers see what they see in a plain
cell.  The cell's statements are taken in runs, each as long as possible, and each run is one such function (`next_run`).  A
statement that is in none runs uncompiled: one that would mean something else inside a function, that Dynamo cannot trace, that
makes a module or an optimizer, or that calls an optimizer or `backward` (`why_uncompiled`).

* Dynamo gives up on a frame that reads a global which did not exist when the frame began.  So names that are not bound yet are
  bound to a placeholder first.  Nothing may see it.  The run's own statements test for it where they read such a name, and
  raise NameError (`_CheckedReads`).  A name that a function of the notebook reads, too, gets no placeholder: its run ends with
  the statement that binds it.
* Dynamo skips frames that neither hold a tensor nor name a module of torch or numpy, and a resume function knows the cell's
  data only as globals.  So `_in` holds an empty tensor and lives to the end.
* What Dynamo skips (a loop with a graph break, for example) would run eagerly, and with it all that it calls in torch.  So a
  statement that may call a module or a function, and each one before it, has a check in front, `if not (is_dynamo_compiling()
  or repeated()): return <its number>`, which is a constant in a trace: from this statement on, the run's statements then run
  uncompiled instead.

The modules and functions that uncompiled statements call are compiled instead (`entry_points.EntryPoints`).

As always under torch.compile, names are bound when a graph has run.  So an error that only the running graph finds (a bad index
in the data, an attribute that a computed tensor lacks) loses the names bound before it in the same graph.  Errors found while
tracing lose nothing: the statements then run eagerly.
"""

from __future__ import annotations

import ast
import builtins
import copy
import gc
import inspect
import re
import weakref
from collections.abc import Sequence
from dataclasses import replace
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any, cast

from dynascope.cell.entry_points import EntryPoints, is_module
from dynascope.cell.interrupts import interruptible
from dynascope.cell.source import Cell, Namespace, compile_tree, reread, run_statement
from dynascope.cell.targets import definitions
from dynascope.compiler.capture.torch_private import config, marks
from dynascope.compiler.driver import Run
from dynascope.compiler.lab.fix.text_edits import NotApplicable
from dynascope.compiler.source.code import STATEMENTS, globals_used, map_constants, user_name
from dynascope.compiler.source.code_swap import code_from_text
from dynascope.compiler.source.syntax import bound_names, copied, dotted, generated, is_string, located, own_nodes
from dynascope.widgets.words import line_ranges

#: names of functions that read the frame they are called from or the notebook's namespace, or that act on IPython
_FRAME_READERS = ("locals", "globals", "vars", "dir", "eval", "exec", "super", "breakpoint")
_IPYTHONS = ("get_ipython", "exit", "quit")
#: in a trace `torch.compile` returns its argument, `set_stance` is refused, and the result of `re.compile` cannot be bound
_NOT_IN_A_TRACE = ("compile", "set_stance")
#: functions and methods that read values, to show them
_SHOW = frozenset(("print", "display", "item", "tolist", "numpy", "float", "int", "str", "format", "len"))
_SHOWN = (
    ast.Expr, ast.Call, ast.keyword, ast.Name, ast.Attribute, ast.Constant, ast.JoinedStr, ast.FormattedValue, ast.expr_context
)  # fmt: skip
#: kinds of syntax that no run has
_UNCOMPILED = {"Import": "import", "ImportFrom": "import", "AnnAssign": "annotated assignment", "TypeAlias": "type alias"}
#: matches settings of the compiler, such as `torch._dynamo.config.x = 1`: in a trace, they would come too late; and functions
#: that seed a generator or set something in torch: Dynamo breaks the graph at them, or fails
_SETTING = re.compile(
    r"\w+\._(dynamo|inductor|functorch)\.config\."
    r"|(\w+\.)+((manual_)?seed(_all)?|set_(num|default|float32|deterministic)\w+|use_deterministic_algorithms)$"
)
_QUALNAME_PREFIX = f"{STATEMENTS}.<locals>."
#: why a statement ran uncompiled
_SHOWS = "shows values"
_UNBOUND, _GIVEN_UP = "a function reads a name that is bound here", "the compiler gave up"
#: reasons that are worth no note
_NO_NOTE = ("import", "text", "del", "setting", _SHOWS, "")


class CellStatements:
    """The statements of one cell, and what happens to each of them."""

    def __init__(self, shell: Any, cell: Cell, run: Run, called: EntryPoints) -> None:
        """`called` compiles what uncompiled statements call."""
        self.shell, self.cell = shell, cell
        self.namespace: Namespace = shell.user_ns
        self._run, self._called = run, called
        #: for each run so far: the names that were bound when it began, and those that it binds
        self._runs: list[tuple[set[str], set[str]]] = []
        #: statements that ran uncompiled, with the reason why, and the names of what each of them called compiled
        self._uncompiled: list[tuple[ast.stmt, str, list[str]]] = []

    def __call__(self) -> Any:
        """Run the cell; returns the value of its last expression."""
        value, left = None, self.cell.statements
        while left:
            bound, self._run.calls.outer = set(self.namespace), None
            run, placeholders = next_run(left, self.namespace, bound)
            if run:
                self._runs.append((bound, set(bound_names(run))))
                done, value = self._run_compiled(run, placeholders)
                uncompiled, reason = run[done:], _GIVEN_UP if config.compiles_nothing() is None else ""
            else:
                uncompiled = left[:1]
                reason = why_uncompiled(left[0], self.namespace) or (_SHOWS if _shows(left[0]) else _UNBOUND)
            left = left[len(run) or 1 :]
            for statement in uncompiled:
                self._called.called = []
                self._uncompiled.append((statement, reason, self._called.called))
                value = run_statement(self.shell, self.cell, statement, self._called)
        return value

    def notes(self) -> list[str]:
        """What the report says about statements that ran uncompiled."""
        noted = [uncompiled for uncompiled in self._uncompiled if uncompiled[1] not in _NO_NOTE]
        if not noted:
            return []
        numbers = {n for statement, *_ in noted for n in range(statement.lineno, (statement.end_lineno or 0) + 1)}
        uncompiled = {id(statement) for statement, *_ in self._uncompiled}
        shared = any(s.lineno in numbers for s in self.cell.statements if id(s) not in uncompiled)  # `y = f(x); y.backward()`
        lines = "parts of " * shared + line_ranges(numbers)
        reasons = dict.fromkeys(part for _, reason, _ in noted for part in reason.split(", "))
        called = ", ".join(dict.fromkeys(name for *_, names in noted for name in names))
        called = called and f"; calls of {called} there went to torch.compile"
        return [f"{lines} ran uncompiled ({', '.join(reasons)}){called}."]

    def _run_compiled(self, run: list[ast.stmt], unbound: set[str]) -> tuple[int, Any]:
        """Run these statements compiled, as one function.

        Returns how many of them ran, and the value of the cell's last expression if it is one of these. The others are left if
        Dynamo gave up on them.
        """
        import torch

        live = [True]
        function = FunctionType(self._code(self.cell, run, unbound), self.namespace, STATEMENTS)
        function.__module__ = self.namespace.get("__name__", "__main__")
        number = len(self._runs) - 1
        me = weakref.proxy(self)  # which leads to the function by the run's calls: neither would ever go
        code_from_text[function] = lambda text: me._code(*me._edited(text, number))
        self.namespace.update(dict.fromkeys(unbound, _placeholder))
        try:
            given = torch.compiler.is_dynamo_compiling, lambda: not live, _placeholder, torch.empty(0, device="cpu")
            self._run.retrace(function)  # so that nothing of it stays in Dynamo's tables
            stopped, value, _ = interruptible(self._run.entry_point(function, self.namespace), given)
        finally:
            live.clear()
            for name in unbound:
                if self.namespace.get(name) is _placeholder:
                    del self.namespace[name]
        return len(run) if stopped is None else stopped, value

    def _edited(self, text: str, number: int) -> tuple[Cell, list[ast.stmt], set[str]]:
        """The cell with another text, its run of this number, and the names that have a placeholder in it.

        Raises NotApplicable if that text defines a function or a module, or if its runs bind other names.
        """
        edited = reread(self.shell, replace(self.cell, text=text))
        if definitions(edited, self.namespace):
            how = "put the statements into a function first"
            raise NotApplicable(f"the change defines a function, and then the cell compiles only that: {how}")
        left = edited.statements
        runs: list[tuple[list[ast.stmt], set[str]]] = []
        while left:
            bound, _ = self._runs[min(len(runs), len(self._runs) - 1)]
            run, placeholders = next_run(left, self.namespace, bound)
            runs += [(run, placeholders)] if run else []
            left = left[len(run) or 1 :]
        if [set(bound_names(run)) for run, _ in runs] != [binds for _, binds in self._runs]:
            raise NotApplicable("the cell would bind other names")
        return edited, *runs[number]

    def _code(self, cell: Cell, run: list[ast.stmt], unbound: set[str]) -> CodeType:
        """The code of a function that holds these statements; `unbound`: the names that have a placeholder at first."""
        bound, first, last = bound_names(run), run[0], run[-1]
        used = {n.id for s in run for n in ast.walk(s) if isinstance(n, ast.Name)}
        local = "_in"
        while local in used or local in bound:
            local += "_"
        function: Any = generated(f"def {STATEMENTS}({local}): pass", first)
        function.body = [located(ast.Global(names=bound), first)] if bound else []
        unsure = set(unbound)
        calling = [number for number, statement in enumerate(run) if _may_call_target(statement, self.namespace)]
        for number, statement in enumerate(run):
            if number <= max(calling, default=-1):
                check = f"if not ({local}[0]() or {local}[1]()):\n return {number}, None, {local}"
                function.body.append(generated(check, statement))
            if unsure & {n.id for n in ast.walk(statement) if isinstance(n, ast.Name)}:
                statement = _CheckedReads(unsure, f"{local}[2]").visit(copied(statement))
            function.body += [] if isinstance(statement, ast.Global) else [statement]  # all names of the function are global
            if isinstance(statement, ast.Assign):
                unsure -= set(bound_names(statement.targets))
        end: Any = generated(f"def f(): return None, None, {local}", last)
        if last is cell.last_expression:
            end.body[0].value.elts[1] = function.body.pop().value
        function.body += end.body
        module = compile_tree(self.shell, cell, ast.Module(body=[function], type_ignores=[]), "exec")
        return map_constants(next(c for c in module.co_consts if isinstance(c, CodeType)), _at_module_level)


# -- dividing the cell ------------------------------------------------------------------------------------


def next_run(statements: Sequence[ast.stmt], namespace: Namespace, bound: set[str]) -> tuple[list[ast.stmt], set[str]]:
    """The statements that can be compiled as one function, from the first one on, and the names that need a placeholder there.

    There are none if the first one cannot.  `bound`: the names that are bound before them.
    """
    run: list[ast.stmt] = []
    unbound: set[str] = set()
    read_later = _read_by_functions(statements, namespace)
    for statement in statements:
        new = set(bound_names([statement])) - bound
        names = {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        if why_uncompiled(statement, namespace) or new & read_later & names:
            break
        run.append(statement)
        unbound |= new - read_later
        if new & read_later:
            break
    return ([], set()) if all(map(_shows, run)) else (run, unbound)


def _read_by_functions(statements: Sequence[ast.stmt], namespace: Namespace) -> set[str]:
    """The names that functions of the notebook, and lambdas in these statements, use.

    Functions are also found in the notebook's classes, in closures and below decorators.
    """
    lambdas = [ast.Expression(n) for s in statements for n in ast.walk(s) if isinstance(n, ast.Lambda)]
    names = {name for node in lambdas for name in globals_used(compile(node, "", "eval"))}
    todo, seen = list(namespace.values()), set[int]()
    while todo:
        value = todo.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        kind = type(value)
        if kind is FunctionType:
            if value.__globals__ is namespace and user_name(value.__code__.co_name) != user_name(STATEMENTS):
                names.update(globals_used(value.__code__))
            todo += [*(value.__closure__ or ()), *vars(value).values()]
        elif kind in (MethodType, staticmethod, classmethod, property, CellType):
            todo += gc.get_referents(value)
        elif issubclass(kind, type):
            todo += vars(value).values() if vars(value).get("__module__") == namespace.get("__name__") else ()
        else:
            todo.append(kind)
    return names


def _shows(statement: ast.stmt) -> bool:
    """Whether the statement does no more than to show values."""
    nodes = list(ast.walk(statement))
    names = [getattr(n.func, "id", getattr(n.func, "attr", "")) for n in nodes if isinstance(n, ast.Call)]
    return all(isinstance(n, _SHOWN) for n in nodes) and _SHOW.issuperset(names)


def _placeholder(name: str) -> Any:
    """The value of names that are not bound yet; called where such a name is read."""
    raise NameError(f"name {name!r} is not defined")


class _CheckedReads(ast.NodeTransformer):
    """Makes reads of some names raise NameError where the name still has the placeholder."""

    def __init__(self, names: set[str], placeholder: str) -> None:
        self.names, self.placeholder = names, placeholder

    def _checked(self, name: ast.Name, value: ast.expr) -> ast.expr:
        text = f"0 if {name.id} is not {self.placeholder} else {self.placeholder}({name.id!r})"
        expression = cast(ast.IfExp, ast.parse(text, mode="eval").body)
        for node in ast.walk(expression):
            ast.copy_location(node, name)
        expression.body = value
        return expression

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._checked(node, node) if node.id in self.names and isinstance(node.ctx, ast.Load) else node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AugAssign:
        self.generic_visit(node)
        if isinstance(node.target, ast.Name) and node.target.id in self.names:
            node.value = self._checked(node.target, node.value)
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.Lambda:
        self.visit(node.args)  # the names in its body are read later
        return node


def why_uncompiled(statement: ast.stmt, namespace: Namespace) -> str | None:
    """Why this statement is in no run; None if it may be in one."""
    if is_string(statement):
        return "text"  # sets __doc__
    if isinstance(statement, ast.Delete) and any(isinstance(target, ast.Name) for target in statement.targets):
        return "del"
    called = [statement.value.func] if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) else []
    places = statement.targets if isinstance(statement, ast.Assign) else called
    if any(_SETTING.match(dotted(place)) for place in places):
        return "setting"
    return ", ".join(dict.fromkeys(filter(None, (_why_uncompiled(node, namespace) for node in own_nodes(statement))))) or None


def _why_uncompiled(node: ast.AST, namespace: Namespace) -> str | None:
    import torch

    if isinstance(node, ast.ClassDef):
        return f"class {node.name}"
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Del):
        return "del of a name"  # Dynamo does not trace the deletion of a global: it would skip the whole function
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        if node.id in _IPYTHONS or (node.id in _FRAME_READERS and node.id not in namespace):  # else, the user's own
            return "a magic or shell command" if node.id == "get_ipython" else f"{node.id}()"
        return "a DataLoader" if issubclass(type(namespace.get(node.id)), torch.utils.data.DataLoader) else None
    if not isinstance(node, ast.Call):
        return _UNCOMPILED.get(type(node).__name__)
    trains = torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler, torch.amp.GradScaler
    name, called = dotted(node.func), getattr(node.func, "attr", None)
    owner, _, attribute = name.rpartition(".")
    if attribute in _NOT_IN_A_TRACE:
        return f"{name}()"
    made = _value(name, namespace)
    if (type(made) is FunctionType or is_module(made)) and (marks.is_compiled(made) or marks.is_compiled_in_place(made)):
        return "calls of compiled code"  # a trace would go into it, without its own settings
    for base in (torch.nn.Module, torch.nn.Parameter, torch.utils.data.DataLoader, *trains):
        if isinstance(made, type) and issubclass(made, base):
            return f"a new {base.__name__}"
    if called in ("state_dict", "load_state_dict") or made is copy.deepcopy:
        return "states of modules and copies"  # in a trace, a copy of a module's state is empty
    is_training = called == "backward" or made is torch.autograd.grad or issubclass(type(_value(owner, namespace)), trains)
    return "backward or optimizer calls" if is_training else None


def _value(name: str, namespace: Namespace) -> Any:
    """The object of a dotted name, found without running any code of its owners; None if there is none."""
    root, *attributes = name.split(".")
    value = namespace.get(root)
    for attribute in attributes:
        value = inspect.getattr_static(value, attribute, None)
    return value


def _may_call_target(statement: ast.stmt, namespace: Namespace) -> bool:
    """Whether the statement may call something that would be compiled if the statement ran uncompiled."""
    names = [dotted(node.func) for node in own_nodes(statement) if isinstance(node, ast.Call)]
    values = [getattr(builtins, name, None) or _value(name, namespace) for name in names]
    return any(value is None or type(value) is FunctionType or is_module(value) for value in values)


def _at_module_level(constant: Any) -> Any:
    """A constant of the function as it is in a plain cell: a lambda is called `<lambda>`, not `__cell__.<locals>.<lambda>`."""
    if isinstance(constant, str):
        return constant.removeprefix(_QUALNAME_PREFIX)
    if isinstance(constant, CodeType) and hasattr(constant, "co_qualname"):
        qualname: dict[str, Any] = {"co_qualname": constant.co_qualname.removeprefix(_QUALNAME_PREFIX)}
        return constant.replace(**qualname)
    return constant
