"""A number out of a tensor that only feeds comparisons and arithmetic stays a tensor, and so do the branches on it."""

from __future__ import annotations

import ast
from dataclasses import replace

from dynascope.compiler.lab.fix.candidate import Candidate, Condition, Problem
from dynascope.compiler.lab.fix.rewrites import branches
from dynascope.compiler.lab.fix.rewrites.reading import grouped, number_of, uses
from dynascope.compiler.lab.fix.rewrites.source import FUNCTIONS, Source, candidate, parse
from dynascope.compiler.lab.fix.text_edits import edits_between, with_edits

_PRECISION = "The number has the precision and the range of the tensor's dtype instead of Python's."
_ARITHMETIC = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.If, ast.IfExp, ast.AugAssign)


def candidates(problem: Problem) -> list[Candidate]:
    """`m = x.max().item()` as `m = x.max().detach()`, together with `torch.where` for each branch that asks about it.

    The problem is the number, or, where the compiler captures numbers, a branch on it.
    """
    source = parse(problem.source)
    if source is None:
        return []
    branch = source.branch_at(problem, ast.If) or source.branch_at(problem, ast.IfExp)
    asked = uses(branch.test).reads if branch is not None else set()
    here = branch or source.innermost(problem, ast.Assign)
    scope = None if here is None else source.scope_of(here)
    assigns = [a for a in source.inside(scope, ast.Assign) if asked & uses(*a.targets).writes] if scope and branch else [here]
    return [c for one in assigns if isinstance(one, ast.Assign) for c in _kept(problem, source, one)]


def _kept(problem: Problem, source: Source, statement: ast.Assign) -> list[Candidate]:
    """The candidate for a number that this statement takes out of a tensor."""
    number, target, scope = number_of(statement.value), statement.targets[0], source.scope_of(statement)
    if number is None or number[1] not in ("item", "float") or len(statement.targets) > 1 or not isinstance(target, ast.Name):
        return []
    names = [n for n in source.inside(scope, ast.Name) if n.id == target.id and n is not target]
    if not isinstance(scope, FUNCTIONS) or not names:
        return []
    if not all(isinstance(n.ctx, ast.Load) and isinstance(source.parent(n), _ARITHMETIC) for n in names):
        return []
    kept = grouped(number[0], source.text_of(number[0])) + ".detach()"
    # a part of a tensor may be written to later
    kept += ".clone()" * isinstance(number[0], ast.Name | ast.Attribute | ast.Subscript)
    changes = [(source.start(statement.value), source.end(statement.value), kept)]
    made = candidate(problem, source, "Keep the number a tensor", changes, _PRECISION)
    return [found for one in made if (found := _with_branches(problem, one, target.id)) is not None]


def _with_branches(problem: Problem, made: Candidate, name: str) -> Candidate | None:
    """The candidate with `torch.where` for the branches that ask about this name; None if one cannot be written so."""
    text, tests, assumptions = with_edits(problem.source, made.edits), list[Condition](), [made.assumption]
    while (test := _first_test(source := Source(text), problem, name)) is not None:
        column = source.start(test) - source.line_start(test.lineno)
        place = replace(problem, source=text, line=test.lineno, end_line=test.end_lineno or test.lineno, column=column)
        chosen = next((c for c in branches.candidates(place) if c.title == branches.WHERE), None)
        if chosen is None:
            return None
        text = with_edits(text, chosen.edits)
        tests += chosen.tests
        assumptions += [chosen.assumption] if chosen.assumption not in assumptions else []
    title = made.title + ("; choose with torch.where" if tests else "")
    edits = tuple(edits_between(problem.file, problem.source, text))
    return replace(made, title=title, edits=edits, assumption=" ".join(assumptions), tests=tuple(tests))


def _first_test(source: Source, problem: Problem, name: str) -> ast.expr | None:
    """The condition of the first branch on the name, in the function of the problem."""
    scopes = [n for n in source.inside(source.tree, *FUNCTIONS) if n.lineno <= problem.line <= (n.end_lineno or 0)]
    tests = [*(n.test for n in source.inside(scopes[-1], ast.If)), *(n.test for n in source.inside(scopes[-1], ast.IfExp))]
    return min((test for test in tests if name in uses(test).reads), key=source.start, default=None)
