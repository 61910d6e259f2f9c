"""A loop that runs while a condition on values holds becomes torch's `while_loop`."""

from __future__ import annotations

import libcst as cst

from dynascope.compiler.lab.fix.candidate import Candidate, Problem
from dynascope.compiler.lab.fix.syntax import conditions
from dynascope.compiler.lab.fix.syntax.effects import changes_argument, is_pure, looks_around
from dynascope.compiler.lab.fix.syntax.flow import bound_before, read_first, read_later, small, statements
from dynascope.compiler.lab.fix.syntax.names import names_in_order, unused_name, uses
from dynascope.compiler.lab.fix.syntax.source_text import Source, candidate, parse
from dynascope.compiler.lab.fix.syntax.torch_names import Torch

_ASSUMPTION = "Each iteration keeps the shapes and types of what it changes, and the results are new tensors."


def candidates(problem: Problem) -> list[Candidate]:
    """For `while x.sum() < 100:` and the like, if each assigned name whose value outlives a turn is bound before the loop."""
    source = parse(problem.source)
    if source is None:
        return []
    loop = source.innermost(problem, cst.While, lambda n: n.test)
    if loop is None or loop.orelse is not None or not isinstance(loop.body, cst.IndentedBlock) or not source.stands_alone(loop):
        return []
    torch = Torch(source, source.scope_of(loop))
    test = conditions.as_tensor(source, torch, loop.test)
    body = statements(loop.body)
    if looks_around(loop) or changes_argument(source, loop, loop):
        return []
    if test is None or not _computes(torch, body) or not is_pure(torch, loop.test):
        return []
    before, later = bound_before(source, loop), read_later(source, loop)
    written = uses(*body).writes
    carried = [n for n in names_in_order(source, loop) if n in written & (later | uses(loop.test).reads | read_first(body))]
    if not carried or any(n not in before for n in carried):
        return []
    return _while_loop(problem, source, torch, loop, test, carried)


def _while_loop(
    problem: Problem, source: Source, torch: Torch, loop: cst.While, test: str, carried: list[str]
) -> list[Candidate]:
    indent, unit = source.indent(loop), source.indent_unit
    body = statements(loop.body)
    inner = source.indent(body[0])
    more, turn = unused_name(source, "another_turn"), unused_name(source, "turn")
    names = ", ".join(carried)
    values = f"{names}," if len(carried) == 1 else names
    header = "".join(f"{indent}{c}\n" for c in source.comments(source.lines(loop)[0], source.lines(body[0])[0] - 1))
    lines = source.lines_text(*body, changes=conditions.not_in_place(source, *body))
    text = f"{header}{indent}def {more}({names}):\n{indent}{unit}return {conditions.in_one_statement(test)}\n"
    text += f"{indent}def {turn}({names}):\n{lines}{inner}return {values}\n"
    text += f"{indent}{values} = {torch('while_loop')}({more}, {turn}, ({values}))\n"
    start, end = source.whole_lines(loop)
    changes = [(start, end, text), *torch.changes()]
    assumption = _ASSUMPTION + conditions.precision(source, loop.test)
    return candidate(
        problem, source, "Loop with torch.while_loop", changes, assumption, conditions.parts(source, torch, loop.test)
    )


def _computes(torch: Torch, body: list[cst.CSTNode]) -> bool:
    """Whether the statements only assign values to names."""
    return bool(body) and all(
        (isinstance(s, cst.Assign | cst.AnnAssign) or (isinstance(s, cst.AugAssign) and isinstance(s.target, cst.Name)))
        and is_pure(torch, s, unknown=True)
        for s in small(body)
    )
