"""A parsed source text: where its nodes are, which node a problem is about, and edits of whole lines.

libcst only parses: edits change the text itself, so whatever they do not touch stays exactly the same.
"""

from __future__ import annotations

import ast
import bisect
import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

import libcst as cst
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider

from dynascope.compiler.lab.fix.candidate import Candidate, Condition, Problem
from dynascope.compiler.report import FixEdit
from dynascope.compiler.source.lines import split_lines

Node = TypeVar("Node", bound=cst.CSTNode)
#: start offset, end offset, and the text that replaces what lies between them
Change = tuple[int, int, str]
Statement = cst.SimpleStatementLine | cst.BaseCompoundStatement
STATEMENTS = (cst.SimpleStatementLine, cst.BaseCompoundStatement)

_LINE_END = re.compile(r"\r\n?|\n")


class Source:
    """A file's text and its syntax tree. Offsets count characters of the text; places are (line from 1, column from 0)."""

    def __init__(self, text: str) -> None:
        self.text = text
        wrapper = MetadataWrapper(cst.parse_module(text), unsafe_skip_copy=True)
        self.module = wrapper.module
        self._ranges = wrapper.resolve(PositionProvider)
        self._line_starts = [0, *(m.end() for m in _LINE_END.finditer(text))]
        self._parents: dict[cst.CSTNode, cst.CSTNode] = {}
        #: nodes of each type in the order of the text, and for each node the numbers of itself and of the last node inside it
        self._by_type: dict[type[cst.CSTNode], list[cst.CSTNode]] = {}
        self._numbers: dict[cst.CSTNode, tuple[int, int]] = {}
        self._types: dict[tuple[type[cst.CSTNode], ...], list[list[cst.CSTNode]]] = {}
        self._scopes: dict[cst.CSTNode, cst.FunctionDef | cst.Module] = {}
        self._number_nodes()
        ends = _LINE_END.search(text)
        self.newline = ends.group() if ends else "\n"
        self.indent_unit = self.module.default_indent

    def _number_nodes(self) -> None:
        count = 0
        pending: list[tuple[cst.CSTNode, int | None]] = [(self.module, None)]
        while pending:
            node, entered = pending.pop()
            if entered is not None:
                self._numbers[node] = (entered, count - 1)
                continue
            self._by_type.setdefault(type(node), []).append(node)
            self._numbers[node] = (count, count)
            pending.append((node, count))
            count += 1
            for child in reversed(node.children):
                self._parents[child] = node
                pending.append((child, None))

    # where nodes are

    def range(self, node: cst.CSTNode) -> CodeRange:
        """The node's place, without the parentheses around an expression."""
        return self._ranges[node]

    def start(self, node: cst.CSTNode) -> int:
        """Offset of the node's first character."""
        at = self.range(node).start
        return self._line_starts[at.line - 1] + at.column

    def end(self, node: cst.CSTNode) -> int:
        """Offset after the node's last character; a block ends with its last statement."""
        at = self.range(node).end
        return self._line_starts[at.line - 1] + at.column

    def text_of(self, node: cst.CSTNode) -> str:
        """The node's own text, with `\\n` as line ends."""
        return _LINE_END.sub("\n", self.text[self.start(node) : self.end(node)])

    def argument(self, value: cst.BaseExpression) -> str:
        """The text of a value as an argument of a call, or an element of a tuple."""
        text = self.text_of(value)
        return f"({text})" if isinstance(value, cst.Tuple | cst.NamedExpr | cst.GeneratorExp) else text

    def line_of(self, offset: int) -> int:
        return bisect.bisect_right(self._line_starts, offset)

    def line_start(self, line: int) -> int:
        """Offset of the first character of a line; for the line after the last one, the end of the text."""
        return self._line_starts[line - 1] if line <= len(self._line_starts) else len(self.text)

    def lines(self, node: cst.CSTNode) -> tuple[int, int]:
        """The first and the last line of a node."""
        return self.line_of(self.start(node)), self.line_of(max(self.start(node), self.end(node) - 1))

    def first_line(self, statement: cst.CSTNode) -> int:
        """The first line of a statement, its decorators included."""
        return self.lines(next(iter(getattr(statement, "decorators", ())), statement))[0]

    def whole_lines(self, *nodes: cst.CSTNode) -> tuple[int, int]:
        """Offsets of the lines of consecutive nodes: the start of the first line, and the start of the line after the last."""
        return self.line_start(self.lines(nodes[0])[0]), self.line_start(self.lines(nodes[-1])[1] + 1)

    def indent(self, node: cst.CSTNode) -> str:
        """The indentation of a node's first line."""
        start = self.line_start(self.lines(node)[0])
        text = self.text[start:]
        return text[: len(text) - len(text.lstrip(" \t"))]

    def lines_text(self, *nodes: cst.CSTNode, changes: Iterable[Change] = ()) -> str:
        """The whole lines of the nodes, with these changes made; each line ends with `\\n`, also the last one."""
        start, end = self.whole_lines(*nodes)
        text = self.text[start:end]
        for low, high, new in sorted(changes, reverse=True):
            text = text[: low - start] + new + text[high - start :]
        text = _LINE_END.sub("\n", text)
        return text if text.endswith("\n") else text + "\n"

    def can_be_indented(self, statement: cst.CSTNode, indent: str) -> bool:
        """Whether a statement can move to lines with this indentation: not if that changes a text of several lines in it."""
        texts = [self.text_of(text) for text in self.inside(statement, cst.SimpleString, cst.FormattedString)]
        following = [line for text in texts for line in text.split("\n")[1:]]
        return not following or (self.indent(statement) == indent and all(line.startswith(indent) for line in following))

    def is_elif(self, branch: cst.CSTNode) -> bool:
        """Whether an `if` is the `elif` of another."""
        return isinstance(branch, cst.If) and isinstance(self.parent(branch), cst.If)

    def stands_alone(self, node: cst.CSTNode) -> bool:
        """Whether a statement has its lines to itself: no `;`, no `if x: statement`, no `elif`."""
        if self.is_elif(node) or (isinstance(node, cst.SimpleStatementLine) and len(node.body) != 1):
            return False
        before = self.text[self.line_start(self.lines(node)[0]) : self.start(node)]
        after = self.text[self.end(node) : self.line_start(self.lines(node)[1] + 1)].strip()
        return not before.strip() and (not after or after.startswith("#") or set(after.split("#")[0].strip()) <= {")"})

    # what is around a node

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        return self._parents.get(node)

    def ancestors(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        above = self._parents.get(node)
        while above is not None:
            yield above
            above = self._parents.get(above)

    def statement_of(self, node: cst.CSTNode) -> Statement | None:
        """The innermost simple statement line or compound statement that contains a node or is the node."""
        for one in (node, *self.ancestors(node)):
            if isinstance(one, STATEMENTS):
                return one
        return None

    def block_of(self, statement: cst.CSTNode) -> Sequence[cst.CSTNode]:
        """The statements of the block that contains a statement; none for `if x: statement`."""
        above = self.parent(statement)
        return above.body if isinstance(above, cst.IndentedBlock | cst.Module) else ()

    def following(self, statement: cst.CSTNode) -> list[cst.CSTNode]:
        """The statements after `statement` in the same block."""
        block = list(self.block_of(statement))
        return block[block.index(statement) + 1 :] if statement in block else []

    def scope_of(self, node: cst.CSTNode) -> cst.FunctionDef | cst.Module:
        """The innermost `def` around a node, or else the module."""
        if node not in self._scopes:
            above = self._parents.get(node, self.module)
            self._scopes[node] = above if isinstance(above, cst.FunctionDef | cst.Module) else self.scope_of(above)
        return self._scopes[node]

    def comments(self, first: int, last: int) -> list[str]:
        """The comments on lines `first` to `last`, in order."""
        found = [(self.start(n), n.value) for n in self.all_of(cst.Comment) if first <= self.range(n).start.line <= last]
        return [text for _, text in sorted(found)]

    def all_of(self, *kinds: type[Node]) -> Iterator[Node]:
        """All nodes of these types; nodes of the same type come in the order of the text."""
        return self.inside(self.module, *kinds)

    def inside(self, outer: cst.CSTNode, *kinds: type[Node]) -> Iterator[Node]:
        """All nodes of these types inside `outer`; nodes of the same type come in the order of the text."""
        first, last = self._numbers[outer]
        if kinds not in self._types:
            self._types[kinds] = [nodes for one, nodes in self._by_type.items() if issubclass(one, kinds)]
        for nodes in self._types[kinds]:
            low = bisect.bisect_right(nodes, first, key=self._number)
            high = bisect.bisect_right(nodes, last, key=self._number)
            yield from nodes[low:high]  # type: ignore[misc]

    def _number(self, node: cst.CSTNode) -> int:
        return self._numbers[node][0]

    def is_inside(self, node: cst.CSTNode, outer: cst.CSTNode) -> bool:
        """Whether a node is `outer` or a part of it."""
        first, last = self._numbers[outer]
        return first <= self._numbers[node][0] <= last

    @functools.cached_property
    def names(self) -> frozenset[str]:
        """All names in the text."""
        return frozenset(n.value for n in self.all_of(cst.Name))

    # what a problem is about

    def holds(self, node: cst.CSTNode, problem: Problem) -> bool:
        """Whether the node contains the start of the problem's expression, or, without a column, the problem's line."""
        first, last = self.lines(node)
        if problem.column is None:
            return first <= problem.line <= last
        place = self.line_start(problem.line) + problem.column
        return self.start(node) <= place < self.end(node)

    def branch_at(self, problem: Problem) -> cst.If | None:
        """The `if` that the problem is about: Python reports the place of its condition, or of the whole statement."""
        found = self.innermost(problem, cst.If, lambda n: n.test)
        if found is not None or problem.column is None:
            return found
        place = self.line_start(problem.line) + problem.column
        return next((n for n in self.all_of(cst.If) if self.start(n) == place), None)

    def innermost(
        self, problem: Problem, kind: type[Node], part: Callable[[Node], cst.CSTNode | None] | None = None
    ) -> Node | None:
        """The smallest node of a type that holds the problem.

        `part`: returns the part of a node that must hold the problem, or None to leave the node out.
        """
        if problem.line > len(self._line_starts):
            return None
        near = (n for n in self.all_of(kind) if self.range(n).start.line <= problem.line <= self.range(n).end.line)
        parts = ((n, part(n) if part else n) for n in near)
        found = [n for n, held in parts if held is not None and self.holds(held, problem)]
        return min(found, key=lambda n: self.end(n) - self.start(n), default=None)


@functools.lru_cache(maxsize=16)
def parse(text: str) -> Source | None:
    """The parsed text; None if libcst cannot parse it."""
    try:
        return Source(text)
    except Exception:  # libcst raises more than syntax errors
        return None


def candidate(
    problem: Problem,
    source: Source,
    title: str,
    changes: Iterable[Change],
    assumption: str = "",
    tests: tuple[Condition, ...] = (),
    settings: Mapping[str, object] | None = None,
) -> list[Candidate]:
    """The candidate that makes these changes, in a list; an empty list if the new text is invalid or equals the old one."""
    edits, text = line_edits(problem.file, source, changes)
    try:
        ast.parse(text)
    except (SyntaxError, ValueError):
        return []
    if not edits:
        return []
    return [Candidate("rewrite", title, edits, settings or {}, assumption, tests)]


def line_edits(file: str, source: Source, changes: Iterable[Change]) -> tuple[tuple[FixEdit, ...], str]:
    """Changes as edits of as few whole lines as possible, and the text that results."""
    edits: list[FixEdit] = []
    result, done = [], 0
    for group in _by_lines(source, sorted(changes)):
        first, last = source.line_of(group[0][0]), max(_last_line(source, c) for c in group)
        start, end = source.line_start(first), source.line_start(last + 1)
        before, after, at = source.text[start:end], [], start
        for low, high, new in group:
            after += [source.text[at:low], _LINE_END.sub("\n", new).replace("\n", source.newline)]
            at = high
        after.append(source.text[at:end])
        result += [source.text[done:start], *after]
        done = end
        edits += _smallest(file, source, first, before, "".join(after))
    return tuple(edits), "".join([*result, source.text[done:]])


def _last_line(source: Source, change: Change) -> int:
    low, high, _ = change
    return source.line_of(max(low, high - 1))


def _by_lines(source: Source, changes: list[Change]) -> Iterator[list[Change]]:
    """Groups of changes to the same or adjacent lines."""
    group: list[Change] = []
    for change in changes:
        if group and source.line_of(change[0]) > max(_last_line(source, c) for c in group) + 1:
            yield group
            group = []
        group.append(change)
    if group:
        yield group


def _smallest(file: str, source: Source, first: int, before: str, after: str) -> list[FixEdit]:
    """One edit that replaces as few lines as possible, but at least one; none if nothing changes."""
    if before == after:
        return []
    old, new = split_lines(before), split_lines(after)
    while old and new and old[0] == new[0]:
        old, new, first = old[1:], new[1:], first + 1
    while len(old) > 1 and new and old[-1] == new[-1]:
        old, new = old[:-1], new[:-1]
    if not old:  # only new lines: the edit also replaces the line that they follow, with itself
        line = split_lines(source.text)[first - 2]
        old, new, first = [line], [line, *new], first - 1
    return [FixEdit(file, first, first + len(old) - 1, "".join(old), "".join(new))]


def indented(text: str, by: str) -> str | None:
    """Lines moved to the right; None if they contain triple quotes or a line continued with a backslash."""
    return _each_line(text, lambda line: by + line if line.strip() else line)


def dedented(text: str, by: int) -> str | None:
    """Lines moved to the left by `by` characters; None if a line is indented less, or for the reasons of `indented`."""
    if any(line[:by].strip() for line in text.split("\n")):
        return None
    return _each_line(text, lambda line: line[by:])


def _each_line(text: str, move: Callable[[str], str]) -> str | None:
    if '"""' in text or "'''" in text or "\\\n" in text:
        return None
    return "\n".join(move(line) for line in text.split("\n"))
