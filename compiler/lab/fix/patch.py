"""Turns the chosen fixes into text (settings as statements, a diff that `git apply` takes), and writes them into the files."""

from __future__ import annotations

import ast
import difflib
import itertools
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from dynascope.compiler.lab.fix.plan import COMPILE, DYNAMO, MARK, Conditions, Plan
from dynascope.compiler.lab.fix.text_edits import NotApplicable, line_origins, with_edits
from dynascope.compiler.parsing import parsed
from dynascope.compiler.report import FixEdit, setting_lines
from dynascope.compiler.source.lines import CellResolver, split_lines
from dynascope.compiler.source.origin import is_users

_MARK = MARK.removeprefix("torch")
#: expressions whose parts may run never, later or repeatedly
_LATER = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
#: methods of a module that return the module itself
_ITSELF = ("to", "eval", "train", "cuda", "cpu", "half", "bfloat16", "float", "double", "requires_grad_")
_BYTE_ORDER_MARK = "\ufeff"
_CONDITION = "# holds under a condition: {}\n"
_HEADER, _HEADER_ALONE = "# dynascope: also needed: {}\n", "# dynascope: no file changes; needed: {}\n"


def final_texts(
    plan: Plan, settings_file: str | None, function: str, kind: str, known: Mapping[str, str], conditions: Conditions = ()
) -> dict[str, str]:
    """The final texts of all files that change.

    In `settings_file`, settings of Dynamo, arguments of torch.compile and marks before the calls of `function`, which is the
    `forward` of modules of class `kind` or "", are added to the plan's edits.  `function` is "" if which one needs them is not
    certain.  `known`: packages that the namespace of `settings_file` has -> their names there.  Each of the `conditions` is a
    comment above the first line that its change adds.
    """
    texts = dict(plan.texts)
    for before, after, condition in conditions:
        for file in after.texts if condition else ():
            if after.text(file) != before.text(file):
                texts[file] = _with_condition(texts[file], before.text(file), after.text(file), _CONDITION.format(condition))
    if settings_file is None:
        return texts
    text = before_settings = texts.get(settings_file) or plan.text(settings_file)
    for name, value in plan.settings.items():
        marks = plan.marks if name == MARK else []
        if marks or name in COMPILE:
            new = marked_calls(text, function, marks, known) if marks else _with_argument(text, function, kind, name, value)
            old, text = text, new or text
            for comment in _comments(conditions, name, []):
                text = _with_condition(text, old, new or text, comment)
    if values := {name: value for name, value in plan.settings.items() if name.startswith(DYNAMO)}:
        text = with_settings(text, values, known, conditions)
    return texts if text == before_settings else {**texts, settings_file: text}


def _comments(conditions: Conditions, name: str, above: list[str]) -> list[str]:
    """The conditions under which changes of this setting hold, without those that stand above it for another one."""
    found = [why for one, two, why in conditions if one.settings.get(name) != two.settings.get(name)]
    return [comment for why in found if why and (comment := _CONDITION.format(why)) not in above]


def _with_condition(text: str, before: str, after: str, comment: str) -> str:
    """`text`, which later changes have made of `after`, with the comment above the first statement that `before` lacks."""
    kept, origins = line_origins(before, after), line_origins(after, text)
    new = [n for n, line in enumerate(split_lines(text), 1) if line.strip() and origins.get(n, 0) not in {0, *kept}]
    statements = (n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.stmt))
    tops = ((min(one.lineno for one in (*getattr(n, "decorator_list", ()), n)), n.col_offset) for n in statements)
    line, column = max((top for top in tops if top[0] <= min(new, default=0)), default=(0, 0))
    if not line:
        return text
    lines = split_lines(text)
    lines.insert(line - 1, f"{' ' * column}{comment}")
    return "".join(lines)


def _with_argument(text: str, function: str, kind: str, name: str, value: object) -> str | None:
    """The text with this argument of the `torch.compile` that compiles a function, or a module of class `kind`.

    None unless exactly one does for certain: it decorates the function, or its first argument is the function, or a module that
    the text makes.  A name that the text binds more than once is not followed.
    """
    nodes, torch = list(ast.walk(ast.parse(text))), _imports(text)[0].get("torch")
    bound: Counter[str] = Counter()

    def is_compile(node: ast.AST) -> bool:
        return isinstance(node, ast.Attribute) and node.attr == "compile" and ast.unparse(node.value) == torch

    def is_compiled(argument: ast.expr) -> bool:
        while isinstance(argument, ast.Call) and isinstance(argument.func, ast.Attribute) and argument.func.attr in _ITSELF:
            argument = argument.func.value
        made = argument.func if isinstance(argument, ast.Call) else None
        return getattr(made, "id", None) in own & {kind} or getattr(argument, "id", None) in own - {kind}

    for n in nodes:
        match n:
            case ast.FunctionDef(name=one) | ast.ClassDef(name=one) | ast.arg(arg=one) | ast.Name(id=one, ctx=ast.Store()):
                bound[one] += 1
            case ast.Assign(targets=[ast.Name(id=one)], value=ast.Call(func, [ast.Name(id=of)])) if one == of:
                bound[one] -= is_compile(func)  # after `f = torch.compile(f)`, it is still f
    own = {one for one in (function, kind) if bound[one] == 1}
    targets = [t for n in nodes if isinstance(n, ast.Assign) and is_compiled(n.value) for t in n.targets]
    own |= {target.id for target in targets if isinstance(target, ast.Name) and bound[target.id] == 1}
    calls = [n for n in nodes if isinstance(n, ast.Call) and is_compile(n.func) and any(map(is_compiled, n.args[:1]))]
    decorators = [d for n in nodes if isinstance(n, ast.FunctionDef) and n.name in own for d in n.decorator_list]
    found = [*calls, *(d for d in decorators if is_compile(getattr(d, "func", d)))]
    if len(found) != 1:
        return None
    [node] = found
    starts = list(itertools.accumulate((len(line.encode()) for line in split_lines(text)), initial=0))

    def end(of: ast.AST) -> int:
        return starts[of.end_lineno - 1] + of.end_col_offset  # type: ignore[attr-defined, no-any-return]

    start = stop = end(node)
    new = f"({name}={value!r})"
    if isinstance(node, ast.Call):
        given = [*node.args, *(k.value for k in node.keywords)]
        same = [k.value for k in node.keywords if k.arg == name]
        start = stop = max(map(end, given), default=stop - 1)
        new = f", {name}={value!r}" if given else new[1:-1]
        if same:
            start, stop, new = starts[same[0].lineno - 1] + same[0].col_offset, end(same[0]), repr(value)
    return (text.encode()[:start] + new.encode() + text.encode()[stop:]).decode()


def marked_calls(text: str, function: str, marks: Iterable[str], known: Mapping[str, str] = MappingProxyType({})) -> str | None:
    """The text with these marks (as in `plan.MARK`) on the lines before each call of a function that the text defines.

    `import torch` is added if neither the text nor `known` has it.  After `c = torch.compile(f)`, calls of c count as calls of
    f.  None if that cannot be done safely: the text cannot be parsed, does not define exactly one such function, never calls
    it, or has its name elsewhere, too; a call is in a lambda, a comprehension or a condition, or not in an expression
    statement, unannotated assignment or return that starts its line; or a marked argument has a default, or is not passed as a
    plain name.
    """
    if parsed(text) is None:
        return None
    text = text if "torch" in {**known, **_imports(text)[0]} else with_settings(text, {}, known)
    torch = {**known, **_imports(text)[0]}["torch"]
    tree, lines = ast.parse(text), split_lines(text)
    nodes, names = list(ast.walk(tree)), [function]
    defined = [n for n in nodes if isinstance(n, ast.FunctionDef) and n.name == function]
    for node in nodes:
        match node:
            case ast.Assign([ast.Name(id=c)], ast.Call(ast.Attribute(attr="compile"), [ast.Name(id=f)])) if f == function:
                names.append(c)
    calls = [n for n in nodes if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id in names]
    used = [n for n in nodes if isinstance(n, (ast.Name, ast.arg)) and getattr(n, "id", getattr(n, "arg", "")) in names]
    statements = [n for n in nodes if isinstance(n, (ast.Expr, ast.Assign, ast.AugAssign, ast.Return))]
    own = [(s, c) for s in statements for c in _direct_calls(s) if c in calls]
    # a name that is used elsewhere, too, may be of another function there, or its calls are not all known
    if len(defined) != 1 or not calls or len(own) != len(calls) or len(used) != len(calls) + 2 * len(names[1:]):
        return None
    parameters = [p.arg for p in (*defined[0].args.posonlyargs, *defined[0].args.args)]
    optional = parameters[len(parameters) - len(defined[0].args.defaults) :]
    for statement, call in sorted(own, key=lambda pair: -pair[0].lineno):
        indent = lines[statement.lineno - 1][: statement.col_offset]
        given = dict(zip(parameters, call.args, strict=False)) | {k.arg: k.value for k in call.keywords if k.arg}
        for name, dimension in (mark.split(", ") for mark in marks):
            value = given.get(name)
            if not isinstance(value, ast.Name) or name in optional or indent.strip():
                return None
            lines.insert(statement.lineno - 1, f"{indent}{torch}{_MARK}({value.id}, {dimension})\n")
    return "".join(lines)


def _direct_calls(node: ast.AST) -> Iterator[ast.Call]:
    """The calls in a statement that are made once and under no condition."""
    parts: Iterable[ast.AST] = () if isinstance(node, _LATER) else ast.iter_child_nodes(node)
    match node:
        case ast.Call():
            yield node
        case ast.BoolOp():
            parts = node.values[:1]
        case ast.IfExp():
            parts = [node.test]
    for child in parts:
        yield from _direct_calls(child)


def with_settings(text: str, settings: Mapping[str, object], known: Mapping[str, str], conditions: Conditions = ()) -> str:
    """The text with these settings, each below its conditions, and the imports that they need, after its first imports."""
    lines = split_lines(text)
    imports, line = _imports(text)
    imports = {**known, **imports}
    torch = imports.get("torch")
    added = [] if torch is not None else ["import torch\n"]
    statements: list[str] = []
    for name, value in settings.items():
        place = name.replace("torch", torch or "torch", 1)
        statements += _comments(conditions, name, statements)
        if not isinstance(value, list):
            statements.append(f"{place} = {value!r}\n")
            continue
        for function in map(str, value):
            package = function.partition(".")[0]
            if package != "builtins" and package not in imports and f"import {package}\n" not in added:
                added.append(f"import {package}\n")
            here = function.replace(package, imports.get(package, package), 1).removeprefix("builtins.")
            statements.append(f"{place}.add({here})\n")
    if line and not lines[line - 1].endswith("\n"):
        lines[line - 1] += "\n"
    blank = ["\n"] if line else []
    after = ["\n"] if line < len(lines) and lines[line].strip() else []
    return "".join([*lines[:line], *added, *blank, *statements, *after, *lines[line:]])


def _imports(text: str) -> tuple[dict[str, str], int]:
    """The packages imported at the top of the text, with their local names, and the line after which more can be added.

    That is the last line of the leading imports, else of the module docstring, else of the leading comments.
    """
    names: dict[str, str] = {}
    tree, last = ast.parse(text), 0
    for number, node in enumerate(tree.body):
        if isinstance(node, ast.Import):
            names |= {a.name: a.asname or a.name for a in node.names if "." not in a.name or a.asname}
            names |= {a.name.partition(".")[0]: a.name.partition(".")[0] for a in node.names if not a.asname}
        elif not isinstance(node, ast.ImportFrom) and (number or ast.get_docstring(tree, clean=False) is None):
            break
        last = node.end_lineno or node.lineno
    return names, last or len(list(itertools.takewhile(lambda line: line.startswith("#"), split_lines(text))))


def unified(
    plan: Plan, texts: Mapping[str, str], settings_file: str | None, cells: CellResolver | None, conditions: Conditions
) -> str:
    """A diff of all files.

    Settings and marks that are not written into a file, such as arguments of torch.compile, come first, as comments, each below
    its condition.
    """

    def is_written(words: str) -> bool:
        return any(text.count(words) > plan.text(file).count(words) for file, text in texts.items())

    parts, header = list[str](), _HEADER if texts else _HEADER_ALONE
    for name, value in plan.settings.items():
        is_placed = settings_file is not None and name.startswith(DYNAMO)
        if not is_placed and not is_written(_MARK if name == MARK else f"{name}={value!r}"):
            parts += [*_comments(conditions, name, parts), *map(header.format, setting_lines({name: value}))]  # type: ignore[dict-item]
    diffs = [_diff(file, plan.originals.get(file) or plan.text(file), text, cells) for file, text in texts.items()]
    return "".join([*parts, *diffs])


def apply(edits: Iterable[FixEdit]) -> list[str]:
    """Write edits of the original texts into their files; returns the files.

    Raises NotApplicable, before anything is written, if a file is not one of the user's on disk, or if lines to replace have
    changed.
    """
    edits, texts = list(edits), dict[str, str]()
    for file in dict.fromkeys(edit.file for edit in edits):
        if not is_users(file) or not os.path.isfile(file):
            what = "is not one of your files on disk (a library's file, or a cell): apply the patch there by hand"
            raise NotApplicable(f"{file} {what}")
        before = _as_read(Path(file).read_bytes().decode())
        before += "" if before.endswith("\n") else "\n"
        texts[file] = with_file_line_ends(file, with_edits(before, [e for e in edits if e.file == file]), like=before)
    for file, text in texts.items():
        Path(file).write_bytes(text.encode())
    return list(texts)


def _diff(file: str, before: str, after: str, cells: CellResolver | None) -> str:
    number = cells(file) if cells is not None else None
    name = f"In[{number}]" if number is not None else _display_path(file)
    old, new = with_file_line_ends(file, before), with_file_line_ends(file, after, like=before)
    lines = difflib.unified_diff(split_lines(old), split_lines(new), f"a/{name}", f"b/{name}")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def with_file_line_ends(file: str, text: str, like: str | None = None) -> str:
    """The text with the file's line ends, with a byte order mark if it has one, and without a final line end if it has none.

    A line of the file keeps its line end; other lines get the most frequent one.  If the file cannot be read, or no longer
    holds `like` (default: `text`), `text` is returned unchanged.
    """
    try:
        raw = Path(file).read_bytes().decode()
    except (OSError, ValueError):
        return text
    before, as_read = text if like is None else like, _as_read(raw)
    if before not in (as_read, f"{as_read}\n"):
        return text
    ends = [line[len(line.rstrip("\r\n")) :] for line in split_lines(raw)]
    usual, origins = max(("\n", "\r\n"), key=ends.count), line_origins(before, text)
    lines = [line.removesuffix("\n") for line in split_lines(text)]
    own = [(ends[origins[number] - 1] if number in origins else "") or usual for number in range(1, len(lines) + 1)]
    if own and not as_read.endswith("\n"):
        own[-1] = ""
    mark = _BYTE_ORDER_MARK if raw.startswith(_BYTE_ORDER_MARK) else ""
    return mark + "".join(line + end for line, end in zip(lines, own, strict=True))


def _as_read(raw: str) -> str:
    """The text of a file as Python reads it: without a byte order mark, and with the line end `\\n`."""
    return raw.removeprefix(_BYTE_ORDER_MARK).replace("\r\n", "\n")


def _display_path(file: str) -> str:
    """The file's path relative to its repository, the working directory or `site-packages`; else its name."""
    path = Path(file).absolute()
    top = next((folder for folder in path.parents if (folder / ".git").exists()), None)
    packages = [folder for folder in path.parents if folder.name in ("site-packages", "dist-packages")]
    for folder in filter(None, [top, Path(os.getcwd()), *packages]):
        if path.is_relative_to(folder):
            return path.relative_to(folder).as_posix()
    return path.name
