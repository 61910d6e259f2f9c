"""A branch on values becomes two functions and a call of `torch.cond`, which runs one of them."""

from __future__ import annotations

import libcst as cst

from dynascope.compiler.lab.fix.candidate import Candidate, Problem
from dynascope.compiler.lab.fix.rewrites.branch_parts import Refused, is_no_tensor, is_starred, targets, without_alias
from dynascope.compiler.lab.fix.syntax import conditions
from dynascope.compiler.lab.fix.syntax.effects import changes_argument, is_pure, looks_around
from dynascope.compiler.lab.fix.syntax.flow import bound_before, certainly_bound, read_later, small, statements
from dynascope.compiler.lab.fix.syntax.names import Uses, names_in_order, unused_name, uses
from dynascope.compiler.lab.fix.syntax.source_text import Change, Source, candidate, indented
from dynascope.compiler.lab.fix.syntax.torch_names import Torch

_ONE = (
    "The sides give tensors of the same shape and type, the result is a new tensor, "
    "and what is used only on the side not taken gets a gradient of zero instead of none."
)


def with_cond(problem: Problem, source: Source, branch: cst.If) -> list[Candidate]:
    torch = Torch(source, source.scope_of(branch))
    condition = conditions.as_tensor(source, torch, branch.test)
    if (
        condition is None
        or not is_pure(torch, branch.test, unknown=True)
        or not source.stands_alone(branch)
        or isinstance(branch.orelse, cst.If)
    ):
        return []
    yes, no = statements(branch.body), statements(branch.orelse)
    used = uses(*yes, *no)
    if any(not isinstance(j, cst.Return) for j in used.jumps) or not is_pure_block(torch, [*yes, *no]):
        return []
    if looks_around(*yes, *no):
        return []
    after: list[cst.CSTNode] = []
    if used.jumps:
        if branch.orelse is None:
            after = source.following(branch)
            no = after
            used = uses(*yes, *no)
        if not (_ends_with_return(yes) and _ends_with_return(no) and is_pure_block(torch, no)) or len(used.jumps) != 2:
            return []
        if not _alike(yes, no):
            return []
        outputs: list[str] = []
    else:
        later = read_later(source, branch)
        outputs = [n for n in _in_order(source, branch) if n in later]
        if not outputs:
            return []
    before = bound_before(source, branch)
    passed = [n for n in _in_order(source, branch, *after) if n in before]
    for side in (yes, no):
        if any(n not in before and n not in certainly_bound(side) for n in outputs):
            return []
    if (used.writes - set(passed)) & _maybe_bound(source, branch) or changes_argument(source, branch, branch, *after):
        return []
    return _cond(problem, source, torch, branch, condition, (yes, no, after), passed, outputs)


def is_pure_block(torch: Torch, block: list[cst.CSTNode]) -> bool:
    """Whether statements only compute values, bind names and jump; unknown functions may be called for their values."""
    if any(isinstance(s, cst.Expr) and isinstance(s.value, cst.Call) for s in small(block)):
        return False
    found = uses(*block)
    return not found.stores and all(is_pure(torch, c.func, c, unknown=True) for c in found.calls)


def _ends_with_return(block: list[cst.CSTNode]) -> bool:
    last = small(block)[-1:]
    return bool(last) and isinstance(last[0], cst.Return) and last[0].value is not None


def _alike(yes: list[cst.CSTNode], no: list[cst.CSTNode]) -> bool:
    """Whether two sides may return the same number of tensors."""
    values = [s.value for side in (yes, no) for s in small(side)[-1:] if isinstance(s, cst.Return)]
    lengths = [len(v.elements) if isinstance(v, cst.Tuple) else 1 if not isinstance(v, cst.Call) else 0 for v in values]
    parts = [e.value for v in values if isinstance(v, cst.Tuple) for e in v.elements] + [v for v in values if v is not None]
    return (lengths[0] == lengths[1] or 0 in lengths) and not any(
        is_starred(p) if isinstance(p, cst.Tuple) else is_no_tensor(p) for p in parts
    )


def _in_order(source: Source, *nodes: cst.CSTNode) -> list[str]:
    """Names that code binds, in the order of the text."""
    bound = uses(*nodes).writes
    return [n for n in names_in_order(source, *nodes) if n in bound]


def _maybe_bound(source: Source, branch: cst.If) -> set[str]:
    """Names that earlier statements of the function's own block bind on some paths to the branch, but not on all."""
    scope, start = source.scope_of(branch), source.start(branch)
    visitor = Uses()
    for one in statements(scope.body) if isinstance(scope, cst.FunctionDef) else list(scope.body):
        if source.start(one) < start and not source.is_inside(branch, one):
            one.visit(visitor)
    return visitor.writes - bound_before(source, branch)


def _cond(
    problem: Problem,
    source: Source,
    torch: Torch,
    branch: cst.If,
    condition: str,
    blocks: tuple[list[cst.CSTNode], list[cst.CSTNode], list[cst.CSTNode]],
    passed: list[str],
    outputs: list[str],
) -> list[Candidate]:
    """The candidate: the two functions, and the call that chooses between them."""
    yes, no, after = blocks
    indent = source.indent(branch)
    when_true, when_false = unused_name(source, "when_true"), unused_name(source, "when_false")
    first = _function(source, branch, when_true, yes, passed, outputs)
    second = _function(source, branch, when_false, no, passed, outputs, deeper=bool(after))
    if first is None or second is None:
        return []
    operands = f", ({', '.join(passed)}{',' if len(passed) == 1 else ''})" if passed else ""
    call = f"{torch('cond')}({condition}, {when_true}, {when_false}{operands})"
    result = f"{', '.join(outputs)} = {call}" if outputs else f"return {call}"
    header = [] if _one_line(branch) else source.comments(source.lines(branch)[0], source.lines(branch)[0])
    text = "".join(f"{indent}{c}\n" for c in header) + first + second + f"{indent}{result}\n"
    start, end = source.whole_lines(branch, *after[-1:])
    changes: list[Change] = [(start, end, text), *torch.changes()]
    title = "Choose with torch.cond"
    assumption = _ONE + conditions.precision(source, branch.test)
    return candidate(problem, source, title, changes, assumption, conditions.parts(source, torch, branch.test))


def _one_line(branch: cst.If) -> bool:
    return isinstance(branch.body, cst.SimpleStatementSuite)


def _function(
    source: Source,
    branch: cst.If,
    name: str,
    side: list[cst.CSTNode],
    passed: list[str],
    outputs: list[str],
    deeper: bool = False,
) -> str | None:
    """A side of the branch as a function; None if its lines cannot be moved.

    `deeper`: whether the side consists of the statements after the branch, which must be indented.
    """
    indent = source.indent(branch)
    inner = indent + source.indent_unit
    body = ""
    if side and not isinstance(side[0], cst.BaseSmallStatement):
        inner = source.indent(side[0]) + (source.indent_unit if deeper else "")
        text: str | None = _block_text(source, side)
        text = indented(text, source.indent_unit) if deeper and text is not None else text
        if text is None:
            return None
        body = text
    elif side:
        body = "".join(f"{inner}{_in_one_line(source, s)}\n" for s in side)
    if outputs:
        last = {t: v for s in small(side) for t, v in _last_values(s)}
        values = [
            f"{n}.clone()" if n not in uses(*side).writes else without_alias(last[n], n) if n in last else n for n in outputs
        ]
        body += f"{inner}return {', '.join(values)}\n"
    elif (returned := small(side)[-1]) and isinstance(returned, cst.Return) and returned.value is not None:
        fresh = _fresh_return(source, returned.value)
        if fresh is not None:
            old = source.text_of(returned)
            at = body.rfind(old)
            if at < 0:  # a return over several lines, which are indented differently in the function
                return None
            body = body[:at] + f"return {fresh}" + body[at + len(old) :]
    return f"{indent}def {name}({', '.join(passed)}):\n{body}"


def _block_text(source: Source, side: list[cst.CSTNode]) -> str:
    """The lines of a side, with the comments above its first statement."""
    leading = getattr(side[0], "leading_lines", ())
    above = "".join(f"{source.indent(side[0])}{c.comment.value}\n" for c in leading if c.comment is not None)
    return above + source.lines_text(*side, changes=conditions.not_in_place(source, *side))


def _in_one_line(source: Source, one: cst.CSTNode) -> str:
    """The text of a statement on the same line as its `if`, with `x = x + 1` for `x += 1`."""
    changes = conditions.not_in_place(source, one)
    return changes[0][2] if changes else source.text_of(one)


def _last_values(one: cst.CSTNode) -> list[tuple[str, cst.BaseExpression]]:
    try:
        return [(name, value) for name, (value, _) in targets(one)]
    except Refused:
        return []


def _fresh_return(source: Source, value: cst.BaseExpression) -> str | None:
    """What a side returns, with the clones that `without_alias` adds; None if there are none."""
    parts = [e.value for e in value.elements] if isinstance(value, cst.Tuple) else [value]
    texts = [source.argument(p) for p in parts]
    fresh = [without_alias(p, text) for p, text in zip(parts, texts, strict=True)]
    single = "," if isinstance(value, cst.Tuple) and len(parts) == 1 else ""
    return ", ".join(fresh) + single if fresh != texts else None
