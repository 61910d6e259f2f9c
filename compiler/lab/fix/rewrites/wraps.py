"""Wraps around a function that Dynamo cannot trace: the graph calls it, and Dynamo does not look into it.

`nonstrict_trace` is enough for a function of tensors.  One that calls NumPy or the like becomes a custom operator.  The shape
and dtype of its result are guessed, simplest guess first: each guess is compared with what the function returns for several
sizes, and the wrong ones are refused.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable
from functools import partial

from dynascope.compiler.lab.fix.candidate import Candidate, Problem
from dynascope.compiler.lab.fix.rewrites.source import Rewrite, applicable, dotted, parse, require
from dynascope.compiler.source.code import first_line
from dynascope.compiler.source.code_swap import functions_of

_NONSTRICT = "_dynamo.nonstrict_trace"
#: packages some of whose functions Dynamo does not trace
_OUTSIDE = frozenset(("numpy", "scipy", "sklearn", "pandas", "cv2", "PIL", "skimage", "numba", "math"))
#: methods that give a tensor's values to other code than torch's
_LEAVES_TORCH = frozenset(("numpy", "tolist", "__array__"))
#: guesses of the result: (expression for the fake result, description); `{x}` is the first argument
_GUESSES = (
    ("torch.empty_like({x})", "a tensor like {x}"),
    ("{x}.new_empty(())", "one number"),
    ("{x}.new_empty({x}.shape[:1])", "one number for each row of {x}"),
    ("{x}.new_empty({x}.shape[:-1])", "one number for each row along the last dimension of {x}"),
    ("torch.empty_like({x}, dtype=torch.float64)", "a float64 tensor of the shape of {x}"),
    ("torch.empty_like({x}, dtype=torch.int64)", "an int64 tensor of the shape of {x}"),
    ("torch.empty_like({x}, dtype=torch.bool)", "a bool tensor of the shape of {x}"),
)


def of_the_function(problem: Problem) -> list[Candidate]:
    """The top-level function around the break as a custom operator, with each guess of its result, or decorated."""
    source = parse(problem.source)
    found = [n for n in source.tree.body if isinstance(n, ast.FunctionDef) and n.name == problem.function]
    rewrite = Rewrite(problem, source.tree)
    require(len(found) == 1 and not found[0].decorator_list and "torch" in rewrite.imports.values())
    [node], makers = found, list[Callable[[Problem], Candidate]]()
    schema, outside = _schema(node), {here for here, full in rewrite.imports.items() if full.partition(".")[0] in _OUTSIDE}
    used = {n.id for n in source.inside(node, ast.Name)} & outside
    if schema is not None and (used or {n.attr for n in source.inside(node, ast.Attribute)} & _LEAVES_TORCH):
        # the operator's name starts with the file's module, because another file may have a function of the same name
        module = next((str(f.__globals__.get("__name__")) for f in functions_of([problem.file])), "__main__")
        operator = node.name if module == "__main__" else re.sub(r"\W", "_", f"{module}_{node.name}")
        head = f'.custom_op("dynascope::{operator}", mutates_args=(), schema="{schema}")\n'
        makers = [partial(_custom_operator, node, head, *guess) for guess in _GUESSES]
    return applicable(problem, *makers, partial(_decorated, node))


def _decorated(node: ast.FunctionDef, problem: Problem) -> Candidate:
    rewrite = Rewrite(problem, node, "wrap")
    start = rewrite.source.line_start(node.lineno)
    changes = [(start, start, f"@{rewrite.torch(_NONSTRICT)}\n")]
    return rewrite.candidate(f"Trace {node.name} without looking into it", changes, _assumption(node.name))


def _assumption(name: str) -> str:
    return f"{name} changes no state, and what it reads besides its arguments stays the same"


def _custom_operator(node: ast.FunctionDef, head: str, guess: str, text: str, problem: Problem) -> Candidate:
    """The function as a custom operator; `head`: its decorator after the name of torch.library."""
    rewrite, names = Rewrite(problem, node, "wrap"), [argument.arg for argument in node.args.args]
    given = ast.unparse(ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, node.args.defaults))
    start, end = rewrite.source.whole_lines(node)
    words, fake = text.format(x=names[0]), guess.replace("torch.", rewrite.torch("")).format(x=names[0])
    tail = "" if rewrite.source.text[end - 1] == "\n" else "\n"
    tail += f"\n\n@{node.name}.register_fake\ndef {node.name}_fake({given}):\n    return {fake}\n"
    changes = [(start, start, f"@{rewrite.torch('library')}{head}"), (end, end, tail)]
    assumption = (
        f"What {node.name} returns has no gradient, shares no memory with its arguments, and is {words} for every input"
    )
    return rewrite.candidate(f"Make {node.name} a custom operator that returns {words}", changes, assumption)


def _schema(node: ast.FunctionDef) -> str | None:
    """The operator's schema; None if the signature cannot be expressed as one.

    Arguments without a default count as tensors; the others must have a bool, int, float or string literal as default.
    """
    args = node.args
    if args.vararg or args.kwarg or args.kwonlyargs or args.posonlyargs or not args.args:
        return None
    words = [f"Tensor {a.arg}" for a in args.args[: len(args.args) - len(args.defaults)]]
    for argument, default in zip(args.args[len(words) :], args.defaults, strict=True):
        value = default.value if isinstance(default, ast.Constant) else None
        if not isinstance(value, bool | int | float | str):
            return None
        shown = f"'{value}'" if isinstance(value, str) else value
        words.append(f"{type(value).__name__} {argument.arg}={shown}")
    return f"({', '.join(words)}) -> Tensor"


def of_what_is_called(problem: Problem) -> list[Candidate]:
    """A wrapper around the imported function that is called at the break; one that an earlier fix has made is used again."""
    source = parse(problem.source)
    calls = [c for c in source.inside(source.tree, ast.Call) if problem.line <= c.lineno <= problem.end_line and dotted(c.func)]
    if problem.column is not None:
        calls = [c for c in calls if source.start(c) - source.line_start(c.lineno) == problem.column]
    top = next((n for n in source.tree.body if n.lineno <= problem.line <= (n.end_lineno or 0)), None)
    require(len(calls) == 1)
    rewrite, function = Rewrite(problem, source.tree, "wrap"), calls[0].func
    name = dotted(function)
    first = name.partition(".")[0]
    require(first in rewrite.imports and "torch" in rewrite.imports.values())
    # results of Python's library vary between calls, or are no tensors; and a break may be asked for
    require(first not in sys.stdlib_module_names)
    require(not rewrite.full(function).startswith(("torch._dynamo.", "torch.compiler.")))
    helper, at = "_traced_" + name.replace(".", "_"), first_line(require(top))
    while at > 1 and source.text.startswith("#", source.line_start(at - 1)):
        at -= 1
    start, added = source.line_start(at), f"{helper} = {rewrite.torch(_NONSTRICT)}({name})\n"
    changes = [(source.start(function), source.end(function), helper)]
    changes += [] if added in source.text[:start] else [(start, start, f"{added}\n\n")]
    return [rewrite.candidate(f"Trace {name} without looking into it", changes, _assumption(name))]
