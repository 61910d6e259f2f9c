"""Puts edited source into the running process, and takes it out again.

The edited text is compiled under the file's own name.  Each existing function of the file gets the code object of the same
function in the new text; its identity, references, closure and decorators stay the same.  A statement that an edit adds to the
module (a helper, an import) is run in the namespace of the file's functions; one that it changes is not run again.  A
decorator that an edit adds is applied to the object bound to the function's name.  The code of a function that holds a cell's
own statements is made from the edited cell by the maker registered for it (`code_from_text`); of the statements that an edit
adds to such a cell, only imports are run.  Everything is undone exactly, also after an interrupt, and the compiler forgets
the code.
"""

from __future__ import annotations

import ast
import contextlib
import linecache
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from types import CodeType, FunctionType, ModuleType
from typing import Any

from msgspec import structs

from dynascope.compiler.capture.torch_private import caches, tensors
from dynascope.compiler.lab.fix.candidate import Candidate
from dynascope.compiler.lab.fix.text_edits import NotApplicable
from dynascope.compiler.parsing import errors_as
from dynascope.compiler.patching import ABSENT, interrupts_deferred, own, put
from dynascope.compiler.source import edited
from dynascope.compiler.source.code import nested_code
from dynascope.compiler.source.code_swap import FUTURE_FLAGS, Swaps, code_from_text, functions_of, recompiled
from dynascope.compiler.source.lines import split_lines
from dynascope.compiler.source.syntax import DEFINITIONS, bound_names

#: (qualified name, index among the functions with that name)
Place = tuple[str, int]
_IMPORT = "import torch\n"
_IMPORTS = (ast.Import, ast.ImportFrom)
_IS_FUNCTION = 0x2  # CO_NEWLOCALS: code of a function, not of a class or module


@contextlib.contextmanager
def in_force(before: Mapping[str, str], after: Mapping[str, str], helpers: Mapping[str, Any] | None = None) -> Iterator[None]:
    """Run the texts `after` instead of `before` (file -> text) for the duration.

    `helpers`: names that are added to the namespaces of the changed files.  Raises NotApplicable if an edit cannot be applied.
    """
    undo = ExitStack()
    changed = [_FileChange(file, before[file], after[file], undo) for file in after if after[file] != before[file]]
    try:
        for change in changed:
            change.apply(helpers or {})
        yield
    finally:
        with interrupts_deferred():
            undo.close()


class _FileChange:
    """The replacement of one file's text."""

    def __init__(self, file: str, before: str, after: str, undo: ExitStack) -> None:
        self.file, self.after, self.undo = file, after, undo
        self.functions = _live_functions(file)
        if not self.functions:
            raise NotApplicable("none of the file's functions exists any more")
        self.located = {id(function): edited.located(function) for function in self.functions}
        self.flags = self.functions[0].__code__.co_flags & FUTURE_FLAGS
        with errors_as(NotApplicable, "the edited text is not valid Python: ", (SyntaxError, ValueError)):
            self.old_tree, self.new_tree = ast.parse(before, file), ast.parse(after, file)
            self.old, self.new = (recompiled(tree, file, self.flags) for tree in (self.old_tree, self.new_tree))
        #: the code that the compiler has to forget
        self.added = [self.new]
        #: whether the file's own statements are compiled, as a cell's can be; then only imports are run here
        self.is_compiled_itself = any(function in code_from_text for function in self.functions)

    def apply(self, helpers: Mapping[str, Any]) -> None:
        self.undo.callback(lambda: caches.forget_resumes([inner for code in self.added for inner in nested_code(code)]))
        self.undo.callback(put, linecache.cache, self.file, linecache.cache.get(self.file, ABSENT))
        # no modification time: linecache then does not compare the entry with the file
        linecache.cache[self.file] = (len(self.after), None, split_lines(self.after), self.file)
        self._swap()
        for namespace in {id(f.__globals__): f.__globals__ for f in self.functions}.values():
            for name, value in helpers.items():
                self.undo.callback(put, namespace, name, own(namespace, name))
                put(namespace, name, value)
            self._run_added(self.old_tree.body, self.new_tree.body, namespace, namespace)

    def _swap(self) -> None:
        """Give each existing function the code object of the same function in the new text."""
        places, both = _by_position(self.old), (self.old, self.new)
        names = [Counter(name for (name, _), _ in _functions_in(module)) for module in both]
        # without the functions with a name that does not occur equally often in both texts
        new = {place: code for place, code in _functions_in(self.new) if names[0][place[0]] == names[1][place[0]]}
        is_found, swaps = False, Swaps()
        self.undo.callback(swaps.undo)
        for function in self.functions:
            old, at = function.__code__, self.located[id(function)]
            make, place = code_from_text.get(function), (at and places.get((at.co_name, at.co_firstlineno))) or ("", 0)
            code = new.get(place) if make is None else make(self.after)
            if code is None:
                continue
            is_found = True
            if _is_same(old, code):
                continue
            if code.co_freevars != old.co_freevars:
                raise NotApplicable(f"{place[0]} would need other variables of the functions around it")
            if make is not None:  # it is no part of `self.new`
                self.added.append(code)
            swaps.put(function, code)
        if not is_found:
            raise NotApplicable("the loaded functions are not found in its text")

    def _run_added(self, old: list[ast.stmt], new: list[ast.stmt], namespace: dict[str, Any], owner: Any) -> None:
        """Run new statements of a module, and apply new decorators."""
        known, kept = set(_dumps(old)), set(_dumps(new))
        edited = [statement for statement in old if ast.dump(statement) not in kept]
        defined = {s.name: s for s in old if isinstance(s, DEFINITIONS)}
        for statement in new:
            if ast.dump(statement) in known:
                continue
            before = defined.get(getattr(statement, "name", ""))
            if isinstance(statement, ast.ClassDef) and isinstance(before, ast.ClassDef):
                inner = own(owner, statement.name)
                if isinstance(inner, type):
                    self._run_added(before.body, statement.body, namespace, inner)
            elif isinstance(statement, ast.FunctionDef) and isinstance(before, ast.FunctionDef):
                self._decorate(before, statement, namespace, owner)
            elif owner is namespace:
                runs = isinstance(statement, _IMPORTS) or not self.is_compiled_itself
                if runs and not _stands_for(statement, edited):
                    if hasattr(statement, "body") and not isinstance(statement, DEFINITIONS):
                        raise NotApplicable("it changes a block of the module that has already run")
                    self._execute(statement, namespace)
            elif not isinstance(statement, ast.Expr):  # a docstring, for example, changes nothing here
                raise NotApplicable(f"it changes the class {owner.__name__} itself")

    def _decorate(self, old: ast.FunctionDef, new: ast.FunctionDef, namespace: dict[str, Any], owner: Any) -> None:
        defaults = [[*node.args.defaults, *filter(None, node.args.kw_defaults)] for node in (old, new)]
        (given, new_given), (before, after) = map(_dumps, defaults), map(_dumps, (old.decorator_list, new.decorator_list))
        if given != new_given:
            raise NotApplicable(f"it changes the defaults of {new.name}")
        added = len(after) - len(before)
        if before == after:
            return
        if added <= 0 or after[added:] != before:
            raise NotApplicable(f"it changes the decorators of {new.name}")
        value = own(owner, new.name)
        for decorator in reversed(new.decorator_list[:added]):
            code = compile(ast.Expression(decorator), self.file, "eval", self.flags, dont_inherit=True)
            with _added():
                value = eval(code, namespace)(value)
            self.undo.callback(tensors.unregister, value)
        self.undo.callback(put, owner, new.name, own(owner, new.name))
        put(owner, new.name, value)

    def _execute(self, statement: ast.stmt, namespace: dict[str, Any]) -> None:
        names = bound_names([statement])
        for name in names:
            self.undo.callback(put, namespace, name, own(namespace, name))
        code = recompiled(ast.Module([statement], []), self.file, self.flags)
        self.added.append(code)
        with _added():
            exec(code, namespace)
        for name in names:
            self.undo.callback(tensors.unregister, namespace.get(name))


def _dumps(nodes: Iterable[ast.AST]) -> list[str]:
    return [ast.dump(node) for node in nodes]


@contextlib.contextmanager
def _added() -> Iterator[None]:
    """Raise NotApplicable if added code raises an exception, such as ImportError."""
    try:
        yield
    except Exception as error:
        raise NotApplicable(f"what it adds raises {type(error).__name__}: {error}") from error


def without_known_import(candidate: Candidate) -> Candidate:
    """The candidate without its `import torch`, where the functions of the file have torch already (from another cell)."""
    edits = [
        e
        if e.before.startswith(_IMPORT)
        or not any(isinstance(f.__globals__.get("torch"), ModuleType) for f in _live_functions(e.file))
        else structs.replace(e, after=e.after.removeprefix(_IMPORT))
        for e in candidate.edits
    ]
    return replace(candidate, edits=tuple(edit for edit in edits if edit.before != edit.after))


def _live_functions(file: str) -> list[FunctionType]:
    """Functions whose code is from this file, in the order of their lines."""
    return sorted(functions_of([file]), key=lambda f: f.__code__.co_firstlineno)


def _functions_in(module: CodeType) -> Iterator[tuple[Place, CodeType]]:
    """Every function in the code of a module, with its place."""
    seen: dict[str, int] = defaultdict(int)

    def visit(code: CodeType, prefix: str) -> Iterator[tuple[Place, CodeType]]:
        for inner in code.co_consts:
            if isinstance(inner, CodeType):
                name = prefix + inner.co_name
                is_function = bool(inner.co_flags & _IS_FUNCTION)
                if is_function:
                    yield (name, seen[name]), inner
                    seen[name] += 1
                yield from visit(inner, f"{name}.<locals>." if is_function else f"{name}.")

    return visit(module, "")


def _by_position(module: CodeType) -> dict[tuple[str, int], Place | None]:
    """(name, first line) -> place; None where two functions have the same name and first line."""
    places: dict[tuple[str, int], Place | None] = {}
    for place, code in _functions_in(module):
        key = (code.co_name, code.co_firstlineno)
        places[key] = None if key in places else place
    return places


def _is_same(one: CodeType, other: CodeType) -> bool:
    """Whether two code objects do the same on the same lines; constants are compared by `repr`, nested code recursively."""
    if one.co_code != other.co_code or one.co_names != other.co_names or one.co_firstlineno != other.co_firstlineno:
        return False
    if list(one.co_lines()) != list(other.co_lines()) or len(one.co_consts) != len(other.co_consts):
        return False
    pairs = zip(one.co_consts, other.co_consts, strict=True)
    return all(_is_same(a, b) if isinstance(a, CodeType) and isinstance(b, CodeType) else repr(a) == repr(b) for a, b in pairs)


def _stands_for(statement: ast.stmt, edited: list[ast.stmt]) -> bool:
    """Whether a new statement replaces one that has already run (a call, a loop, a binding); removes that one from `edited`.

    The two are of the same type and bind the same names.
    """
    names = bound_names([statement])
    before = next((one for one in edited if type(one) is type(statement) and bound_names([one]) == names), None)
    if before is not None:
        edited.remove(before)
    return before is not None
