"""The chosen fixes as text: settings as statements, and a unified diff that `git apply` takes."""

from __future__ import annotations

import ast
import difflib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from dynascope.compiler.fixes.candidate import Edit
from dynascope.compiler.fixes.plan import DYNAMO, Plan
from dynascope.compiler.fixes.text_edits import NotApplicable, with_edits
from dynascope.compiler.report import FixEdit
from dynascope.compiler.source.lines import CellResolver
from dynascope.compiler.source.origin import is_users

_HEADER = "# dynascope: also set {}\n"


def final_texts(plan: Plan, settings_file: str | None, known: Mapping[str, str]) -> dict[str, str]:
    """The texts of all files with the edits, and the settings of Dynamo as statements in `settings_file`.

    `known`: packages that need no import there, with their names.
    """
    texts = dict(plan.texts)
    values = {name: value for name, value in plan.settings.items() if name.startswith(DYNAMO)}
    if values and settings_file is not None:
        texts[settings_file] = with_settings(plan.text(settings_file), values, known)
    return texts


def with_settings(text: str, settings: Mapping[str, object], known: Mapping[str, str]) -> str:
    """The text with these settings made after its first imports."""
    lines = text.splitlines(keepends=True)
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
    return "".join([*lines[:line], *added, *blank, *statements, *after, *lines[line:]])


def _imports(text: str) -> tuple[dict[str, str], int]:
    """Packages that the text imports at its beginning with their names there, and the last line of that part."""
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
    """How many lines of comments the text begins with."""
    count = 0
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        count += 1
    return count


def unified(plan: Plan, texts: Mapping[str, str], settings_file: str | None, cells: CellResolver | None) -> str:
    """A diff of all files; what is no statement of any file stands above it as a comment.  "" if no file changes."""
    if not texts:
        return ""
    above = {n: v for n, v in plan.settings.items() if settings_file is None or not n.startswith(DYNAMO)}
    words = [f"{n} = {v!r}" if n.startswith(DYNAMO) else f"torch.compile(..., {n}={v!r})" for n, v in above.items()]
    parts = [_HEADER.format(setting) for setting in words]
    for file, text in texts.items():
        before = plan.originals.get(file) or plan.with_texts({}).text(file)
        parts.append(_diff(file, before, text, cells))
    return "".join(parts)


def apply(edits: Iterable[FixEdit]) -> list[str]:
    """Write edits of original texts into their files; returns the files.

    Raises NotApplicable, before anything is written, if a file is a library's or not what it was.
    """
    by_file: dict[str, list[Edit]] = {}
    for e in edits:
        by_file.setdefault(e.file, []).append(Edit(e.file, e.first_line, e.last_line, e.before, e.after))
    texts: dict[str, str] = {}
    for file, own in by_file.items():
        if not is_users(file) or not os.path.isfile(file):
            raise NotApplicable(f"{file} is not a file of yours: apply the patch where you keep it")
        before = Path(file).read_bytes().decode().replace("\r\n", "\n")
        before += "" if before.endswith("\n") else "\n"
        texts[file] = on_disk(file, with_edits(before, own), like=before)
    for file, text in texts.items():
        Path(file).write_bytes(text.encode())
    return list(texts)


def _diff(file: str, before: str, after: str, cells: CellResolver | None) -> str:
    number = cells(file) if cells is not None else None
    name = f"In[{number}]" if number is not None else _path(file)
    old, new = on_disk(file, before), on_disk(file, after, like=before)
    lines = difflib.unified_diff(old.splitlines(keepends=True), new.splitlines(keepends=True), f"a/{name}", f"b/{name}")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def on_disk(file: str, text: str, like: str | None = None) -> str:
    """The text with the line ends that the file has; `like`: the text that the file is known to have."""
    try:
        raw = Path(file).read_bytes().decode()
    except (OSError, UnicodeDecodeError, ValueError):
        return text
    if (like if like is not None else text).splitlines() != raw.replace("\r\n", "\n").split("\n")[: _count(raw)]:
        return text
    if "\r\n" in raw:
        text = text.replace("\n", "\r\n")
    ended = raw.endswith("\n")
    return text if ended else text.rstrip("\r\n")


def _count(raw: str) -> int:
    return raw.count("\n") + (not raw.endswith("\n"))


def _path(file: str) -> str:
    """The file as seen from its repository, from the working directory, or its name alone."""
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
