"""A parsed source text: where its nodes are, which node a problem is about, how torch is named in it, and edits of the text.

Edits change the text itself, so whatever they do not touch stays exactly the same.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import io
import itertools
import re
import tokenize
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal, TypeVar

from dynascope.compiler.lab.fix.candidate import Candidate, Condition, Problem
from dynascope.compiler.lab.fix.text_edits import NotApplicable, edits_between
from dynascope.compiler.parsing import parsed
from dynascope.compiler.source.code import first_line
from dynascope.compiler.source.lines import split_lines
from dynascope.compiler.source.syntax import FUNCTIONS as FUNCTIONS
from dynascope.compiler.source.syntax import dotted as dotted
from dynascope.compiler.source.syntax import is_string

Node = TypeVar("Node", bound=ast.AST)
Value = TypeVar("Value")
#: start offset, end offset, and the text that replaces what lies between them
Change = tuple[int, int, str]
Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Module


class Source:
    """A file's text and its syntax tree.  Offsets count characters of the text; lines count from 1."""

    def __init__(self, text: str) -> None:
        self.text, self.tree = text, ast.parse(text)
        self._lines = split_lines(text)
        self._starts = [0, *itertools.accumulate(map(len, self._lines))]
        self._parents = {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    # where nodes are

    def _offset(self, line: int, column: int) -> int:
        """The offset of a place; `column` counts bytes, as everywhere in `ast`."""
        return self._starts[line - 1] + len(self._lines[line - 1].encode()[:column].decode()) if line <= len(self._lines) else 0

    def start(self, node: Any) -> int:
        """Offset of the node's first character, without the parentheses around an expression."""
        return self._offset(node.lineno, node.col_offset)

    def end(self, node: Any) -> int:
        """Offset after the node's last character; a block ends with its last statement."""
        return self._offset(node.end_lineno, node.end_col_offset)

    def text_of(self, node: ast.AST) -> str:
        return self.text[self.start(node) : self.end(node)]

    def argument(self, value: ast.expr, *loose: type[ast.expr]) -> str:
        """The text of a value as an argument of a call, or an element of a tuple; in parentheses if it is `loose`."""
        text = self.text_of(value)
        is_loose = isinstance(value, (ast.NamedExpr, *loose)) or (isinstance(value, ast.Tuple) and not text.startswith("("))
        return f"({text})" if is_loose else text

    def line_start(self, line: int) -> int:
        """Offset of the first character of a line; for the line after the last one, the end of the text."""
        return self._starts[line - 1] if line <= len(self._starts) else len(self.text)

    def whole_lines(self, first: Any, last: Any = None) -> tuple[int, int]:
        """Offsets of the lines of consecutive nodes: the start of the first line, and the start of the line after the last."""
        return self.line_start(first.lineno), self.line_start((last or first).end_lineno + 1)

    def indent(self, node: Any) -> str:
        """The indentation of a node's first line."""
        line: str = self._lines[node.lineno - 1]
        return line[: len(line) - len(line.lstrip(" \t"))]

    @functools.cached_property
    def indent_unit(self) -> str:
        """How much deeper the file indents a block."""
        blocks = ((n, n.body[0]) for n in ast.walk(self.tree) if isinstance(n, ast.stmt) and hasattr(n, "body"))
        inner = (self.indent(first).removeprefix(self.indent(n)) for n, first in blocks if first.lineno > n.lineno)
        return next(filter(None, inner), "    ")

    def changed(self, start: int, end: int, changes: Iterable[Change]) -> str:
        """A part of the text, with these changes made."""
        text = self.text[start:end]
        for low, high, new in sorted(changes, reverse=True):
            text = text[: low - start] + new + text[high - start :]
        return text

    def lines_text(self, block: list[ast.stmt], changes: Iterable[Change] = ()) -> str:
        """The lines of statements, with the comments above the first one; the last one ends with `\\n`, too."""
        first = block[0].lineno
        while first > 1 and self._lines[first - 2].strip().startswith("#"):
            first -= 1
        text = self.changed(self.line_start(first), self.whole_lines(block[-1])[1], changes)
        return text if text.endswith("\n") else text + "\n"

    def stands_alone(self, node: Any) -> bool:
        """Whether a statement has its lines to itself: no `;`, no `if x: statement`, no `elif`."""
        before = self.text[self.line_start(node.lineno) : self.start(node)]
        after = self.text[self.end(node) : self.line_start(node.end_lineno + 1)].strip(" \t\n)")
        return not self.is_elif(node) and not before.strip() and (not after or after.startswith("#"))

    def is_elif(self, branch: ast.AST) -> bool:
        return isinstance(branch, ast.If) and self.text.startswith("elif", self.start(branch))

    @functools.cached_property
    def _comments(self) -> list[tuple[int, str]]:
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        return [(token.start[0], token.string) for token in tokens if token.type == tokenize.COMMENT]

    def comments(self, first: int, last: int) -> list[str]:
        """The comments on lines `first` to `last`, in order."""
        return [text for line, text in self._comments if first <= line <= last]

    def in_place_of(self, first: ast.stmt, last: ast.stmt, lines: Iterable[str], kept: str = "", until: int = 0) -> Change:
        """The change that puts these lines, and whole lines that are kept, in place of whole statements.

        Comments on the lines `until` there, which are otherwise lost, come first; 0: all of them.
        """
        indent, lines = self.indent(first), [*self.comments(first.lineno, until or last.end_lineno or 0), *lines]
        if self.is_elif(first):
            lines = ["else:", *(self.indent_unit + line for line in lines)]
        return (*self.whole_lines(first, last), "".join(f"{indent}{line}\n" for line in lines) + kept)

    # what is around a node

    def parent(self, node: ast.AST) -> ast.AST | None:
        return self._parents.get(node)

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        while (above := self._parents.get(node)) is not None:
            yield (node := above)

    def block_of(self, statement: ast.AST) -> list[ast.stmt]:
        """The statements of the block that contains a statement."""
        blocks = [getattr(self.parent(statement), name, None) for name in ("body", "orelse", "finalbody")]
        return next((block for block in blocks if isinstance(block, list) and statement in block), [])

    def following(self, statement: ast.stmt) -> list[ast.stmt]:
        """The statements after `statement` in the same block."""
        block = self.block_of(statement)
        return block[block.index(statement) + 1 :] if block else []

    def scope_of(self, node: ast.AST) -> Scope:
        """The innermost `def` around a node, or else the module."""
        return next((a for a in self.ancestors(node) if isinstance(a, FUNCTIONS)), self.tree)

    def inside(self, outer: ast.AST, *kinds: type[Node]) -> list[Node]:
        """The nodes of these types in `outer`, itself included, in the order of the text."""
        return sorted((n for n in ast.walk(outer) if isinstance(n, kinds)), key=self.start)

    @functools.cached_property
    def names(self) -> frozenset[str]:
        """All identifiers in the text."""
        return frozenset(re.findall(r"[^\W\d]\w*", self.text))

    def unused_name(self, wish: str, *others: str) -> str:
        """The name `wish`, with a number (`wish_2`) if the file or `others` already have it."""
        names = itertools.chain([wish], (f"{wish}_{number}" for number in itertools.count(2)))
        return next(name for name in names if name not in self.names and name not in others)

    # what a problem is about

    def place(self, problem: Problem) -> int:
        return self._starts[min(problem.line, len(self._starts)) - 1] + (problem.column or 0)

    def is_at(self, problem: Problem, node: Any) -> bool:
        """Whether a node holds the problem's expression, or, without a column, its line."""
        if problem.column is None:
            return bool(node.lineno <= problem.line <= node.end_lineno)
        return self.start(node) <= self.place(problem) < self.end(node)

    def branch_at(self, problem: Problem, kind: type[Node]) -> Node | None:
        """The `if` that the problem is about: Python reports the place of its condition, or of the whole statement."""
        found = self.innermost(problem, kind, lambda n: n.test)  # type: ignore[attr-defined]
        if found is not None or problem.column is None:
            return found
        return next((n for n in self.inside(self.tree, kind) if self.start(n) == self.place(problem)), None)

    def innermost(self, problem: Problem, kind: type[Node], part: Callable[[Node], Any] = lambda n: n) -> Node | None:
        """The smallest node of a type of which this part is at the problem."""
        found = [n for n in self.inside(self.tree, kind) if self.is_at(problem, part(n))]
        return min(found, key=lambda n: self.end(n) - self.start(n), default=None)


@functools.lru_cache(maxsize=16)
def parse(text: str) -> Source:
    """The parsed text, which is valid Python: problems have no other."""
    return Source(text)


def require(value: Value | None) -> Value:
    """The value; raises NotApplicable if it is None or false."""
    if not value:
        raise NotApplicable
    return value


def applicable(problem: Problem, *makers: Callable[[Problem], Candidate]) -> list[Candidate]:
    """The candidates of those makers that apply to a problem; the others raise NotApplicable."""
    found: list[Candidate] = []
    for make in makers:
        with contextlib.suppress(NotApplicable):
            found.append(make(problem))
    return found


def moved(text: str, by: str, of: str = "") -> str:
    """Lines with the indentation `by` for `of`.

    Raises NotApplicable if a line has less, or for texts or lines that go over several lines.
    """
    lines = text.split("\n")
    require(not any(part in text for part in ('"""', "'''", "\\\n")))
    require(all(line.startswith(of) or not line.strip() for line in lines))
    return "\n".join(by + line.removeprefix(of) if line.strip() else line for line in lines)


def imports(source: Source, scope: Scope) -> dict[str, str]:
    """Names that imports of the module and of this scope bind -> their full dotted names."""
    found: dict[str, str] = {}
    for alias in source.inside(source.tree, ast.alias):
        node = source.parent(alias)
        if source.scope_of(alias) not in (source.tree, scope):
            continue
        if isinstance(node, ast.ImportFrom):
            found[alias.asname or alias.name] = f"{'.' * bool(node.level)}{node.module or ''}.{alias.name}"
        else:
            full = alias.name if alias.asname else alias.name.partition(".")[0]
            found[alias.asname or full] = full
    return found


def importing(source: Source, line: str) -> Change:
    """The change that adds an import above the first statement, below the docstring and `from __future__`."""
    first = next((one for one in source.tree.body if not is_string(one) and getattr(one, "module", "") != "__future__"), None)
    start = source.line_start(1 if first is None else first_line(first))
    return start, start, line


class Rewrite:
    """A change of a problem's file as it is made: its source, how the scope of a node names torch, and what it assumes."""

    def __init__(self, problem: Problem, node: ast.AST, kind: Literal["wrap", "rewrite"] = "rewrite") -> None:
        self.problem, self.source, self.kind = problem, parse(problem.source), kind
        self.scope = self.source.scope_of(node)
        self.imports, self._needs_import = imports(self.source, self.scope), False
        #: the conditions that the change takes over, and sentences of what it assumes about them
        self.tests: dict[Condition, None] = {}
        self.assumptions: dict[str, None] = {}
        #: names that the function binds itself, other than by importing them
        self._local: set[str] = set()
        if isinstance(self.scope, FUNCTIONS):
            self._local = {a.arg for a in self.source.inside(self.scope, ast.arg)}
            self._local |= {n.id for n in self.source.inside(self.scope, ast.Name) if isinstance(n.ctx, ast.Store)}

    def torch(self, name: str) -> str:
        """How the code names this function: for "where", `torch.where`, `th.where` or `where`, as imported."""
        known = {full: here for here, full in reversed(self.imports.items()) if here not in self._local}
        if "torch" in known or f"torch.{name}" not in known:
            # a `torch` in the code, not only in `from torch import nn`, is bound somewhere, perhaps in an earlier cell
            is_used = any(n.id == "torch" for n in self.source.inside(self.source.tree, ast.Name))
            self._needs_import |= "torch" not in known and (not is_used or "torch" in self._local)
            return f"{known.get('torch', 'torch')}.{name}"
        return known[f"torch.{name}"]

    def full(self, function: ast.AST) -> str:
        """The full dotted name of a function, as far as imports show it: `torch.nn.functional.relu`; "" for no name."""
        first, dot, rest = dotted(function).partition(".")
        return self.imports.get(first, first) + dot + rest

    def candidate(
        self, title: str, changes: Iterable[Change], assumption: str = "", settings: Mapping[str, object] = {}
    ) -> Candidate:
        """The candidate that makes these changes; raises NotApplicable if the new text is invalid or equals the old one."""
        source = self.source
        imported = [importing(source, "import torch\n")] if self._needs_import else []
        text = source.changed(0, len(source.text), dict.fromkeys([*changes, *imported]))
        edits = edits_between(self.problem.file, source.text, text)
        require(edits and parsed(text) is not None)
        words = " ".join(filter(None, [assumption, *self.assumptions]))
        return Candidate(self.kind, title, tuple(edits), settings, words, tuple(self.tests))
