"""A comprehension that the compiler cannot trace by itself becomes a loop of the function around it.

Python 3.11 and earlier run a comprehension as a function of its own.  Where the function around it runs eagerly, the compiler
tries the comprehension alone, and cannot step the iterator that it is given.
"""

from __future__ import annotations

import ast

from dynascope.compiler.lab.fix.candidate import Candidate, Problem
from dynascope.compiler.lab.fix.rewrites.reading import uses
from dynascope.compiler.lab.fix.rewrites.source import FUNCTIONS, Change, Source, candidate, parse

_KINDS = (ast.ListComp, ast.SetComp, ast.DictComp)
_ITERATOR = ("tp_iternext", "Generator reconstruction")


def candidates(problem: Problem) -> list[Candidate]:
    """`x = [f(y) for y in ys]` as a loop that appends; likewise for sets and dicts, and in `return`."""
    source = parse(problem.source)
    if source is None or not any(words in problem.kind for words in _ITERATOR):
        return []
    found = source.innermost(problem, ast.ListComp) or source.innermost(problem, ast.SetComp)
    made = found or source.innermost(problem, ast.DictComp)
    if made is None or not isinstance(source.scope_of(made), FUNCTIONS):
        return []
    statement = source.parent(made)
    if not isinstance(statement, ast.Assign | ast.AnnAssign | ast.Return) or statement.value is not made:
        return []
    nested = [n for n in ast.walk(made) if isinstance(n, (*_KINDS, ast.Lambda, ast.NamedExpr, ast.Await)) and n is not made]
    names = source.inside(made, ast.Name)  # Python 3.11 and earlier misplace those in some f-strings
    if nested or not source.stands_alone(statement) or any(source.text_of(n) != n.id for n in names):
        return []
    return candidate(problem, source, "Write the comprehension as a loop", [_loop(source, statement, made)])


def _loop(source: Source, statement: ast.stmt, made: ast.ListComp | ast.SetComp | ast.DictComp) -> Change:
    taken = {name: source.unused_name(name) for g in made.generators for name in uses(g.target).writes}
    result, indent = source.unused_name("made"), source.indent(statement)

    def text(node: ast.expr) -> str:
        names = [n for n in source.inside(node, ast.Name) if n.id in taken]
        places = [(source.start(n), source.end(n), taken[n.id]) for n in names]
        changed = source.changed(source.start(node), source.end(node), places)
        is_bare = isinstance(node, ast.Tuple) and not changed.startswith("(")
        return f"({changed})" if is_bare or "\n" in changed else changed

    empty, add = "set()", f"{result}.add({{}})"
    if isinstance(made, ast.ListComp):
        empty, add = "[]", f"{result}.append({{}})"
    elif isinstance(made, ast.DictComp):
        empty = "{}"
    lines, depth = [f"{result} = {empty}"], ""
    for generator in made.generators:
        heads = [f"for {text(generator.target)} in {text(generator.iter)}:", *(f"if {text(test)}:" for test in generator.ifs)]
        for head in heads:
            lines.append(depth + head)
            depth += source.indent_unit
    if isinstance(made, ast.DictComp):
        lines.append(f"{depth}{result}[{text(made.key)}] = {text(made.value)}")
    else:
        lines.append(depth + add.format(text(made.elt)))
    lines.append(source.text[source.start(statement) : source.start(made)].rstrip("( \t\n") + f" {result}")
    comments = source.comments(statement.lineno, statement.end_lineno or 0)
    return (*source.whole_lines(statement), "".join(f"{indent}{line}\n" for line in [*comments, *lines]))
