"""A number out of a tensor that only feeds comparisons and arithmetic stays a tensor, and so do the branches on it.

A number that numpy computes is a tensor for the compiler, and a branch on it depends on values: Python's `math` computes the
same number.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from functools import partial

from dynascope.compiler.lab.fix.candidate import Candidate, Condition, Problem
from dynascope.compiler.lab.fix.rewrites import branches
from dynascope.compiler.lab.fix.rewrites.reading import as_tensor, grouped, number_of, uses
from dynascope.compiler.lab.fix.rewrites.source import FUNCTIONS, Change, Rewrite, applicable, dotted, importing, parse, require
from dynascope.compiler.lab.fix.text_edits import edits_between, with_edits

_PRECISION = "The number has the precision and the range of the tensor's dtype instead of Python's."
_RAISES = " A failed assert on it raises RuntimeError, from inside the graph."
#: functions that numpy and `math` both have
_OF_MATH = ("lcm", "gcd", "prod", "sqrt", "exp", "log", "log2", "log10")
_ARITHMETIC = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.If, ast.IfExp, ast.AugAssign)


def candidates(problem: Problem) -> list[Candidate]:
    """`m = x.max().item()` as `m = x.max().detach()`, together with `torch.where` for each branch that asks about it.

    The problem is the number, or, where the compiler captures numbers, a branch on it.
    """
    source = parse(problem.source)
    branch = source.branch_at(problem, ast.If) or source.branch_at(problem, ast.IfExp)
    if branch is None:
        return [_kept(problem, require(source.innermost(problem, ast.Assign)))]
    asked = uses(branch.test).reads
    assigns = [a for a in source.inside(source.scope_of(branch), ast.Assign) if asked & uses(*a.targets).writes]
    return applicable(problem, *(partial(_kept, statement=one) for one in assigns))


def of_numpy(problem: Problem) -> list[Candidate]:
    """`np.lcm(a, b)` as `math.lcm(a, b)`, in the function of the problem and in those of its file that it calls."""
    require(problem.kind.startswith("Data-dependent"))
    source = parse(problem.source)
    scope = source.scope_of(require(source.innermost(problem, ast.stmt)))
    called = {dotted(call.func).rpartition(".")[2] for call in source.inside(scope, ast.Call)}
    functions = [scope, *(f for f in source.inside(source.tree, ast.FunctionDef) if f.name in called and f is not scope)]
    rewrite = Rewrite(problem, source.tree)
    names = [here for here, full in rewrite.imports.items() if full == "numpy"]
    found = [n for f in functions for n in source.inside(f, ast.Attribute) if n.attr in _OF_MATH and dotted(n.value) in names]
    changes = [(source.start(n.value), source.end(n.value), "math") for n in found]
    if changes and "math" not in rewrite.imports:
        changes.append(importing(source, "import math\n"))
    return [rewrite.candidate("Compute numbers with math instead of numpy", changes, "They are numbers of Python.")]


def _kept(problem: Problem, statement: ast.Assign) -> Candidate:
    """The candidate for a number that this statement takes out of a tensor, with `torch.where` for the branches on it."""
    rewrite, target, name = Rewrite(problem, statement), statement.targets[0], dotted(statement.targets[0])
    source, (number, function) = rewrite.source, require(number_of(statement.value))
    names = [n for n in source.inside(rewrite.scope, ast.Name) if n.id == name and n is not target]
    asserts = any(isinstance(around, ast.Assert) for n in names for around in source.ancestors(n))
    require(function in ("item", "float") and len(statement.targets) == 1 and isinstance(rewrite.scope, FUNCTIONS))
    require(names and all(isinstance(n.ctx, ast.Load) and isinstance(source.parent(n), _ARITHMETIC) for n in names))
    kept = grouped(number, source.text_of(number)) + ".detach()"
    # a part of a tensor may be written to later
    kept += ".clone()" * isinstance(number, ast.Name | ast.Attribute | ast.Subscript)
    changes = [(source.start(statement.value), source.end(statement.value), kept)]
    made = rewrite.candidate("Keep the number a tensor", changes, _PRECISION + _RAISES * asserts)
    text, tests, assumptions = with_edits(problem.source, made.edits), dict[Condition, None](), {made.assumption: None}
    while (branch := _first_branch(text, problem, name)) is not None:
        text = _with_safe_divisors(Rewrite(replace(problem, source=text), branch), branch, name)
        source, test = parse(text), (_first_branch(text, problem, name) or branch).test
        at = next(n for n in source.inside(test, ast.Name) if n.id == name)
        column = source.start(at) - source.line_start(at.lineno)
        place = replace(problem, source=text, line=at.lineno, end_line=at.lineno, column=column)
        chosen = require(next((c for c in branches.candidates(place) if c.title == branches.WHERE), None))
        text = with_edits(text, chosen.edits)
        tests |= dict.fromkeys(chosen.tests)
        assumptions[chosen.assumption] = None
    title = made.title + ("; choose with torch.where" if tests else "")
    edits = tuple(edits_between(problem.file, problem.source, text))
    return replace(made, title=title, edits=edits, assumption=" ".join(assumptions), tests=tuple(tests))


def _first_branch(text: str, problem: Problem, name: str) -> ast.If | ast.IfExp | None:
    """The first branch on the name, in the function of the problem."""
    source = parse(text)
    *_, scope = (n for n in source.inside(source.tree, *FUNCTIONS) if n.lineno <= problem.line <= (n.end_lineno or 0))
    found: list[ast.If | ast.IfExp] = [*source.inside(scope, ast.If), *source.inside(scope, ast.IfExp)]
    return min((b for b in found if name in uses(b.test).reads), key=source.start, default=None)


def _with_safe_divisors(rewrite: Rewrite, branch: ast.If | ast.IfExp, name: str) -> str:
    """The text with 1 for the number in divisors of the side not taken: both sides get gradients, and 0 * inf is not 0."""
    source, test, changes = rewrite.source, as_tensor(rewrite, branch.test), list[Change]()
    for side, text in ((branch.body, f"{name}, 1"), (branch.orelse, f"1, {name}")):
        for node in (n for one in (side if isinstance(side, list) else [side]) for n in source.inside(one, ast.BinOp)):
            if isinstance(node.op, ast.Div | ast.FloorDiv | ast.Mod) and dotted(node.right) == name:
                changes.append((source.start(node.right), source.end(node.right), f"{rewrite.torch('where')}({test}, {text})"))
    return source.changed(0, len(source.text), changes)
