"""Turns a user's function that calls NumPy or the like into a custom operator, which a graph calls and Dynamo does not trace.

The shape and dtype of the result are guessed, simplest guess first.  The proof compares each guess with what the function
returns for several sizes, and refuses the wrong ones.
"""

from __future__ import annotations

import ast
import re

from dynascope.compiler.lab.fix.candidate import Candidate, Problem
from dynascope.compiler.lab.fix.text_edits import parsed
from dynascope.compiler.lab.fix.wraps import name_of_torch
from dynascope.compiler.report import FixEdit
from dynascope.compiler.source.functions import functions_of
from dynascope.compiler.source.lines import split_lines

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
    ("{x}.new_empty({x}.shape[-1:])", "one number for each position in the last dimension of {x}"),
    ("torch.empty_like({x}, dtype=torch.float64)", "a float64 tensor of the shape of {x}"),
    ("torch.empty_like({x}, dtype=torch.int64)", "an int64 tensor of the shape of {x}"),
    ("torch.empty_like({x}, dtype=torch.bool)", "a bool tensor of the shape of {x}"),
)
_TYPES = {bool: "bool", int: "int", float: "float", str: "str"}


def candidates(problem: Problem) -> list[Candidate]:
    """Candidates that make the top-level function around the break a custom operator, one for each guess of its result."""
    tree = parsed(problem.source)
    if tree is None:
        return []
    torch = name_of_torch(tree)
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == problem.function]
    if torch is None or len(functions) != 1 or not _leaves_torch(functions[0], tree):
        return []
    schema = _schema(functions[0])
    return [] if schema is None else [_candidate(problem, functions[0], torch, schema, *guess) for guess in _GUESSES]


def _candidate(problem: Problem, node: ast.FunctionDef, torch: str, schema: str, guess: str, words: str) -> Candidate:
    lines = [line.rstrip("\n") for line in split_lines(problem.source)]
    first, last = lines[node.lineno - 1], lines[(node.end_lineno or node.lineno) - 1]
    names = [argument.arg for argument in node.args.args]
    signature = ast.unparse(ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, node.args.defaults))
    decorator = (
        f'@{torch}.library.custom_op("dynascope::{_operator(problem.file, node.name)}", mutates_args=(), schema="{schema}")'
    )
    fake = (
        f"\n\n@{node.name}.register_fake\n"
        f"def {node.name}_fake({signature}):\n"
        f"    return {guess.replace('torch.', f'{torch}.').format(x=names[0])}\n"
    )
    if node.lineno == node.end_lineno:
        edits: tuple[FixEdit, ...] = (FixEdit(problem.file, node.lineno, node.lineno, first, f"{decorator}\n{first}\n{fake}"),)
    else:
        end = node.end_lineno or node.lineno
        edits = (
            FixEdit(problem.file, node.lineno, node.lineno, first, f"{decorator}\n{first}\n"),
            FixEdit(problem.file, end, end, last, f"{last}\n{fake}"),
        )
    return Candidate(
        "wrap", f"Make {node.name} a custom operator that returns {words.format(x=names[0])}", edits,
        assumption=f"What {node.name} returns has no gradient, shares no memory with its arguments, and is "
        f"{words.format(x=names[0])} for every input",
    )  # fmt: skip


def _operator(file: str, function: str) -> str:
    """The operator's name, which starts with the file's module, because another file may have a function of the same name."""
    module = next((str(f.__globals__.get("__name__")) for f in functions_of([file])), "__main__")
    return function if module == "__main__" else re.sub(r"\W", "_", f"{module}_{function}")


def _leaves_torch(node: ast.FunctionDef, tree: ast.Module) -> bool:
    """Whether an undecorated function uses one of `_OUTSIDE` or `_LEAVES_TORCH`; a decorated one may be an operator already."""
    imports = [n for n in tree.body if isinstance(n, (ast.Import, ast.ImportFrom))]
    outside = {
        (a.asname or a.name).partition(".")[0]
        for n in imports
        for a in n.names
        if (n.module or "" if isinstance(n, ast.ImportFrom) else a.name).partition(".")[0] in _OUTSIDE
    }
    used = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} | {
        n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute) and n.attr in _LEAVES_TORCH
    }
    return not node.decorator_list and bool(used & (outside | _LEAVES_TORCH))


def _schema(node: ast.FunctionDef) -> str | None:
    """The operator's schema; None if the signature cannot be expressed as one.

    Arguments without a default count as tensors; the others must have a bool, int, float or string literal as default.
    """
    args = node.args
    if args.vararg or args.kwarg or args.kwonlyargs or args.posonlyargs or not args.args:
        return None
    defaults = [None] * (len(args.args) - len(args.defaults)) + list(args.defaults)
    words = []
    for argument, default in zip(args.args, defaults, strict=True):
        if default is None:
            words.append(f"Tensor {argument.arg}")
            continue
        kind = _TYPES.get(type(default.value)) if isinstance(default, ast.Constant) else None
        if kind is None or not isinstance(default, ast.Constant):
            return None
        value = str(default.value) if not isinstance(default.value, str) else f"'{default.value}'"
        words.append(f"{kind} {argument.arg}={value}")
    return f"({', '.join(words)}) -> Tensor"
