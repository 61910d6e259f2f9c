"""A number out of a tensor that only feeds comparisons and arithmetic stays a tensor, and so do the branches on it.

A number that numpy computes is a tensor for the compiler, and a branch on it depends on values: Python's `math` computes the
same number.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from dynascope.compiler.lab.fix.candidate import Candidate, Condition, Problem
from dynascope.compiler.lab.fix.rewrites import branches
from dynascope.compiler.lab.fix.rewrites.reading import as_tensor, grouped, number_of, uses
from dynascope.compiler.lab.fix.rewrites.source import (
    FUNCTIONS,
    Change,
    Source,
    Torch,
    candidate,
    dotted,
    importing,
    imports,
    parse,
)
from dynascope.compiler.lab.fix.text_edits import edits_between, with_edits

_PRECISION = "The number has the precision and the range of the tensor's dtype instead of Python's."
#: functions that numpy and `math` both have
_OF_MATH = ("lcm", "gcd", "prod", "sqrt", "exp", "log", "log2", "log10")
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


def of_numpy(problem: Problem) -> list[Candidate]:
    """`np.lcm(a, b)` as `math.lcm(a, b)`, in the function of the problem and in those of its file that it calls."""
    source = parse(problem.source)
    branch = None if source is None else source.innermost(problem, ast.stmt)
    if source is None or branch is None or not problem.kind.startswith("Data-dependent"):
        return []
    scope = source.scope_of(branch)
    called = {dotted(call.func).rpartition(".")[2] for call in source.inside(scope, ast.Call)}
    functions = [scope, *(f for f in source.inside(source.tree, ast.FunctionDef) if f.name in called and f is not scope)]
    known = imports(source, source.tree)
    names = [here for here, full in known.items() if full == "numpy"]
    found = [n for f in functions for n in source.inside(f, ast.Attribute) if n.attr in _OF_MATH and dotted(n.value) in names]
    changes = [(source.start(n.value), source.end(n.value), "math") for n in found]
    if changes and "math" not in known:
        changes.append(importing(source, "import math\n"))
    return candidate(problem, source, "Compute numbers with math instead of numpy", changes, "They are numbers of Python.")


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
    while (branch := _first_branch(Source(text), problem, name)) is not None:
        source = Source(text := _with_safe_divisors(Source(text), branch, name))
        test = (_first_branch(source, problem, name) or branch).test
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


def _first_branch(source: Source, problem: Problem, name: str) -> ast.If | ast.IfExp | None:
    """The first branch on the name, in the function of the problem."""
    scopes = [n for n in source.inside(source.tree, *FUNCTIONS) if n.lineno <= problem.line <= (n.end_lineno or 0)]
    found: list[ast.If | ast.IfExp] = [*source.inside(scopes[-1], ast.If), *source.inside(scopes[-1], ast.IfExp)]
    return min((b for b in found if name in uses(b.test).reads), key=source.start, default=None)


def _with_safe_divisors(source: Source, branch: ast.If | ast.IfExp, name: str) -> str:
    """The text with 1 for the number in divisors of the side not taken: both sides get gradients, and 0 * inf is not 0."""
    torch = Torch(source, source.scope_of(branch))
    condition, changes = as_tensor(source, torch, branch.test), list[Change]()
    for side, text in ((branch.body, f"{name}, 1"), (branch.orelse, f"1, {name}")):
        inner = [n for one in (side if isinstance(side, list) else [side]) for n in source.inside(one, ast.BinOp)]
        divisors = [n.right for n in inner if isinstance(n.op, ast.Div | ast.FloorDiv | ast.Mod)]
        for divisor in (d for d in divisors if isinstance(d, ast.Name) and d.id == name and condition is not None):
            changes.append((source.start(divisor), source.end(divisor), f"{torch('where')}({condition}, {text})"))
    return source.changed(0, len(source.text), changes)
