"""Turns the chosen fixes into text (settings as statements, a diff that `git apply` takes), and writes them into the files."""

from __future__ import annotations

import ast
import difflib
import itertools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from dynascope.compiler.lab.fix.plan import COMPILE, DYNAMO, MARK, WARM_UP, Plan
from dynascope.compiler.lab.fix.text_edits import NotApplicable, line_origins, parsed, with_edits
from dynascope.compiler.report import FixEdit
from dynascope.compiler.source.lines import CellResolver, split_lines
from dynascope.compiler.source.origin import is_users

_MARK = MARK.removeprefix("torch")
#: expressions whose parts may run never, later or repeatedly
_LATER = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_BYTE_ORDER_MARK = "\ufeff"
_CONDITION = "holds under a condition"
_HEADER, _HEADER_ALONE = "# dynascope: also needed: {}\n", "# dynascope: no file changes; needed: {}\n"


def final_texts(
    plan: Plan,
    settings_file: str | None,
    function: str,
    known: Mapping[str, str],
    conditions: Sequence[tuple[Plan, Plan, str]] = (),
) -> dict[str, str]:
    """The final texts of all files that change.

    In `settings_file`, settings of Dynamo, arguments of torch.compile and marks before the calls of `function` are added to the
    plan's edits.  `known`: packages that the namespace of `settings_file` has -> their names there.  `conditions`: (plan
    before, plan with a change, the condition under which it holds); each is a comment above the first line that the change
    adds.
    """
    texts = dict(plan.texts)
    for before, after, condition in conditions:
        for file in after.texts if condition else ():
            if after.text(file) != before.text(file):
                texts[file] = _with_condition(texts[file], before.text(file), after.text(file), condition)
    if plan.marks and settings_file is not None:
        text = marked_calls(plan.text(settings_file), function, plan.marks, known)
        texts |= {settings_file: text} if text is not None else {}
    for name in COMPILE:
        if settings_file is not None and name in plan.settings:
            text = texts.get(settings_file) or plan.text(settings_file)
            texts |= {settings_file: done} if (done := _with_argument(text, function, name, plan.settings[name])) else {}
    values = {name: value for name, value in plan.settings.items() if name.startswith(DYNAMO)}
    if values and settings_file is not None:
        above = [
            f"# {_CONDITION}: {words}\n" for before, after, words in conditions if words and before.settings != after.settings
        ]
        texts[settings_file] = with_settings(texts.get(settings_file) or plan.text(settings_file), values, known, above)
    return texts


def _with_condition(text: str, before: str, after: str, condition: str) -> str:
    """`text`, which later changes have made of `after`, with a comment above the first statement that `before` lacks."""
    kept, origins = line_origins(before, after), line_origins(after, text)
    new = [n for n, line in enumerate(split_lines(text), 1) if line.strip() and origins.get(n, 0) not in {0, *kept}]
    starts = [
        (n.lineno, n.col_offset)
        for n in ast.walk(ast.parse(text))
        if isinstance(n, ast.stmt) and n.lineno <= min(new, default=0)
    ]
    if not new or not starts:
        return text
    line, column = max(starts)
    lines = split_lines(text)
    lines.insert(line - 1, f"{' ' * column}# {_CONDITION}: {condition}\n")
    return "".join(lines)


def _with_argument(text: str, function: str, name: str, value: object) -> str | None:
    """The text with this argument of the `torch.compile` that compiles a function.

    Without one that names the function, it is the only `torch.compile` of the text; None if there are none or several.
    """
    tree, torch = ast.parse(text), _imports(text)[0].get("torch")

    def is_compile(node: ast.AST) -> bool:
        return isinstance(node, ast.Attribute) and node.attr == "compile" and ast.unparse(node.value) == torch

    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and is_compile(n.func)]
    decorated = [(n.name, d) for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) for d in n.decorator_list]
    bare = [(named, d) for named, d in decorated if is_compile(d)]
    own = [n for n in calls if any(isinstance(a, ast.Name) and a.id == function for a in n.args) or (function, n) in decorated]
    found: list[ast.expr] = [*own, *(d for named, d in bare if named == function)] or [*calls, *(d for _, d in bare)]
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
    f.  None if that cannot be done safely: the text cannot be parsed, does not define exactly one such function, or never calls
    it; a call is in a lambda, a comprehension or a condition, or not in an expression statement, unannotated assignment or
    return that starts its line; or a call passes a marked argument as anything but a plain name.
    """
    if parsed(text) is None:
        return None
    text = text if "torch" in {**known, **_imports(text)[0]} else with_settings(text, {}, known)
    torch = {**known, **_imports(text)[0]}["torch"]
    tree, lines = ast.parse(text), split_lines(text)
    defined = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == function]
    names = {function, *_compiled_from(tree, function)}
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id in names]
    statements = [n for n in ast.walk(tree) if isinstance(n, (ast.Expr, ast.Assign, ast.AugAssign, ast.Return))]
    own = [(s, c) for s in statements for c in _direct_calls(s) if c in calls]
    if len(defined) != 1 or not calls or len(own) != len(calls):
        return None
    parameters = [p.arg for p in (*defined[0].args.posonlyargs, *defined[0].args.args)]
    for statement, call in sorted(own, key=lambda pair: -pair[0].lineno):
        indent = lines[statement.lineno - 1][: statement.col_offset]
        given = dict(zip(parameters, call.args, strict=False)) | {k.arg: k.value for k in call.keywords if k.arg}
        for name, dimension in (mark.split(", ") for mark in marks):
            value = given.get(name)
            if not isinstance(value, ast.Name) or indent.strip():
                return None
            lines.insert(statement.lineno - 1, f"{indent}{torch}{_MARK}({value.id}, {dimension})\n")
    return "".join(lines)


def _compiled_from(tree: ast.AST, function: str) -> Iterator[str]:
    """The names to which the compiled function is assigned: `c` for `c = torch.compile(f)`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute):
            given = [a.id for a in node.value.args if isinstance(a, ast.Name)]
            if node.value.func.attr == "compile" and given == [function]:
                yield from (target.id for target in node.targets if isinstance(target, ast.Name))


def _direct_calls(node: ast.AST) -> Iterator[ast.Call]:
    """The calls in a statement that are made once and under no condition."""
    if isinstance(node, ast.Call):
        yield node
    for child in _always_evaluated(node):
        yield from _direct_calls(child)


def _always_evaluated(node: ast.AST) -> Iterable[ast.AST]:
    if isinstance(node, ast.BoolOp):
        return node.values[:1]
    if isinstance(node, ast.IfExp):
        return [node.test]
    return () if isinstance(node, _LATER) else ast.iter_child_nodes(node)


def with_settings(text: str, settings: Mapping[str, object], known: Mapping[str, str], comments: Sequence[str] = ()) -> str:
    """The text with these settings, the comments above them and the imports that they need, after its first imports."""
    lines = split_lines(text)
    imports, line = _imports(text)
    imports = {**known, **imports}
    torch = imports.get("torch")
    added = [] if torch is not None else ["import torch\n"]
    statements: list[str] = []
    for name, value in settings.items():
        place = name.replace("torch", torch or "torch", 1)
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
    return "".join([*lines[:line], *added, *blank, *comments, *statements, *after, *lines[line:]])


def _imports(text: str) -> tuple[dict[str, str], int]:
    """The packages imported at the top of the text, with their local names, and the line after which more can be added.

    That is the last line of the leading imports, else of the module docstring, else of the leading comments.
    """
    names: dict[str, str] = {}
    last = 0
    for number, node in enumerate(ast.parse(text).body):
        if isinstance(node, ast.Import):
            names |= {a.name: a.asname or a.name for a in node.names if "." not in a.name or a.asname}
            names |= {a.name.partition(".")[0]: a.name.partition(".")[0] for a in node.names if not a.asname}
        elif not isinstance(node, ast.ImportFrom) and not (number == 0 and _is_docstring(node)):
            break
        last = node.end_lineno or node.lineno
    return names, last or _comments(text)


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _comments(text: str) -> int:
    """The number of comment lines at the beginning of the text."""
    count = 0
    for line in split_lines(text):
        if not line.startswith("#"):
            break
        count += 1
    return count


def unified(plan: Plan, texts: Mapping[str, str], settings_file: str | None, cells: CellResolver | None) -> str:
    """A diff of all files.

    Settings and marks that are not written into a file, such as arguments of torch.compile, come first, as comments.
    """
    above = {n: v for n, v in plan.settings.items() if settings_file is None or not n.startswith(DYNAMO)}
    above.pop(MARK, None)
    above.pop(WARM_UP, None)
    above = {
        n: v for n, v in above.items() if not any(_adds(f"{n}={v!r}", text, plan.text(file)) for file, text in texts.items())
    }
    words = [f"{n} = {v!r}" if n.startswith(DYNAMO) else f"torch.compile(..., {n}={v!r})" for n, v in above.items()]
    if not any(_adds(_MARK, text, plan.text(file)) for file, text in texts.items()):
        words += [f"{MARK}({mark})" for mark in plan.marks]
    if WARM_UP in plan.settings:
        words.append(f'with {WARM_UP}("{plan.settings[WARM_UP]}"): ...  # the recorded calls, before the first compiled one')
    parts = [(_HEADER if texts else _HEADER_ALONE).format(setting) for setting in words]
    for file, text in texts.items():
        before = plan.originals.get(file) or plan.text(file)
        parts.append(_diff(file, before, text, cells))
    return "".join(parts)


def _adds(words: str, text: str, before: str) -> bool:
    return text.count(words) > before.count(words)


def apply(edits: Iterable[FixEdit]) -> list[str]:
    """Write edits of the original texts into their files; returns the files.

    Raises NotApplicable, before anything is written, if a file is not one of the user's on disk, or if lines to replace have
    changed.
    """
    by_file: dict[str, list[FixEdit]] = {}
    for edit in edits:
        by_file.setdefault(edit.file, []).append(edit)
    texts: dict[str, str] = {}
    for file, own in by_file.items():
        if not is_users(file) or not os.path.isfile(file):
            what = "is not one of your files on disk (a library's file, or a cell): apply the patch there by hand"
            raise NotApplicable(f"{file} {what}")
        before = _as_read(Path(file).read_bytes().decode())
        before += "" if before.endswith("\n") else "\n"
        texts[file] = with_file_line_ends(file, with_edits(before, own), like=before)
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
    for folder in filter(None, [top, Path(os.getcwd())]):
        if path.is_relative_to(folder):
            return path.relative_to(folder).as_posix()
    parts = path.parts
    for packages in ("site-packages", "dist-packages"):
        if packages in parts:
            return "/".join(parts[parts.index(packages) + 1 :])
    return path.name
