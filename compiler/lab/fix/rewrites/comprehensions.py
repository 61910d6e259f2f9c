"""A comprehension that the compiler cannot trace by itself becomes a loop of the function around it.

Python 3.11 and earlier run a comprehension as a function of its own.  Where the function around it runs eagerly, the compiler
tries the comprehension alone, and cannot step through the iterator that it gets.
"""

from __future__ import annotations

import ast

from dynascope.compiler.lab.fix.candidate import Candidate, Problem
from dynascope.compiler.lab.fix.rewrites.reading import uses
from dynascope.compiler.lab.fix.rewrites.source import FUNCTIONS, Rewrite, parse, require
from dynascope.compiler.lab.fix.text_edits import NotApplicable

_Comprehension = ast.ListComp | ast.SetComp | ast.DictComp
_ITERATOR = ("tp_iternext", "Generator reconstruction")


def candidates(problem: Problem) -> list[Candidate]:
    """`x = [f(y) for y in ys]` as a loop that appends; likewise for sets and dicts, and in `return`."""
    require(any(words in problem.kind for words in _ITERATOR))
    source = parse(problem.source)
    listed = source.innermost(problem, ast.ListComp) or source.innermost(problem, ast.SetComp)
    made = listed or source.innermost(problem, ast.DictComp)
    statement = source.parent(made) if made is not None else None
    if made is None or not isinstance(statement, ast.Assign | ast.AnnAssign | ast.Return) or statement.value is not made:
        raise NotApplicable
    kinds = _Comprehension | ast.Lambda | ast.NamedExpr | ast.Await
    nested = [n for n in ast.walk(made) if isinstance(n, kinds) and n is not made]
    rewrite = Rewrite(problem, made)
    names = source.inside(made, ast.Name)  # Python 3.11 and earlier misplace those in some f-strings
    require(not nested and source.stands_alone(statement) and all(source.text_of(n) == n.id for n in names))
    require(isinstance(rewrite.scope, FUNCTIONS))
    taken = {name: source.unused_name(name) for g in made.generators for name in uses(g.target).writes}
    result = source.unused_name("made")

    def text(node: ast.expr) -> str:
        places = [(source.start(n), source.end(n), taken[n.id]) for n in source.inside(node, ast.Name) if n.id in taken]
        changed = source.changed(source.start(node), source.end(node), places)
        return f"({changed})" if "\n" in changed or (isinstance(node, ast.Tuple) and changed[0] != "(") else changed

    match made:
        case ast.ListComp():
            empty, add = "[]", f"{result}.append({text(made.elt)})"
        case ast.SetComp():
            empty, add = "set()", f"{result}.add({text(made.elt)})"
        case ast.DictComp():
            empty, add = "{}", f"{result}[{text(made.key)}] = {text(made.value)}"
    lines, depth = [f"{result} = {empty}"], ""
    for one in made.generators:
        for head in (f"for {text(one.target)} in {text(one.iter)}:", *(f"if {text(test)}:" for test in one.ifs)):
            lines.append(depth + head)
            depth += source.indent_unit
    ending = source.text[source.start(statement) : source.start(made)].rstrip("( \t\n") + f" {result}"
    change = source.in_place_of(statement, statement, [*lines, depth + add, ending])
    return [rewrite.candidate("Write the comprehension as a loop", [change])]
