"""Private names of torch stand in `compiler/capture/torch_private` only, and where one is missing the report says so."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from dynascope.compiler.capture import torch_private
from dynascope.compiler.capture.torch_private import caches, config, marks
from dynascope.compiler.compiling import region

FOLDERS = ("compiler", "widgets", "extension")
ALLOWED = "compiler/capture/torch_private/"
#: attributes that torch leaves on functions and modules, however they are reached
MARKS = re.compile(r"^_torchdynamo_\w+$|^_compiled_call_impl$|^_is_torch_compile$|^dynamo_ctx$")


def private_names(tree: ast.AST) -> Iterator[str]:
    """Imports and attributes below `torch` that begin with an underscore, and the names of torch's marks."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names if is_private(a.name))
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (name for a in node.names if is_private(name := f"{node.module}.{a.name}"))
        elif isinstance(node, ast.Attribute) and is_private(ast.unparse(node)):
            yield ast.unparse(node)
        elif isinstance(node, ast.Attribute) and MARKS.match(node.attr):
            yield node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and MARKS.match(node.value):
            yield node.value


def is_private(dotted: str) -> bool:
    root, *parts = dotted.split(".")
    return root == "torch" and any(p.startswith("_") and not p.endswith("__") for p in parts)


def test_private_names_of_torch_stand_in_one_folder(root: Path) -> None:
    found = {
        path.relative_to(root).as_posix(): sorted(set(private_names(ast.parse(path.read_text()))))
        for folder in FOLDERS
        for path in (root / folder).rglob("*.py")
    }
    using = {name: names for name, names in found.items() if names}
    inside = {name for name in using if name.startswith(ALLOWED)}
    assert f"{ALLOWED}hooks.py" in inside
    assert {name: names for name, names in using.items() if name not in inside} == {}


def test_what_this_torch_lacks_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_private, "missing", {})
    monkeypatch.delattr(torch._dynamo, "error_on_graph_break")
    with pytest.raises(RuntimeError, match="regions need torch 2"):
        region(error_on_graph_break=True)
    monkeypatch.delattr(torch._dynamo.exc, "UserError")
    assert torch._dynamo.exc.Unsupported in config.refusals()
    monkeypatch.setattr(marks, "_COMPILED_CALL", "_no_such_name")
    marks.compiled_call(torch.nn.Linear(1, 1))
    assert torch_private.missing == {
        "error_on_graph_break": "not in this torch",
        "the compiler's exceptions": "no UserError",
        "compiled modules": "no _no_such_name: a module named by -f runs as it is",
    }


def test_a_compile_that_torch_does_not_name_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    metrics = [SimpleNamespace(compile_id="0/0", co_name=name) for name in ("f", None)]
    monkeypatch.setattr("torch._dynamo.utils.get_compilation_metrics", lambda: metrics)
    assert caches.latest_compiles(2) == [("0/0", "f", "")]
