"""The helpers for syntax trees and code objects."""

from __future__ import annotations

import ast

import pytest

from dynascope.compiler.source.syntax import bound_names, copied, own_statements


def test_nodes_and_statements_of_any_depth_are_walked() -> None:
    """Python compiles deeper code than its recursion limit allows functions to follow."""
    assert bound_names(ast.parse("y = " + " + ".join(["a"] * 1500)).body) == ["y"]
    chain = ast.parse("if a: b = 1\n" + "".join(f"elif a{i}: c{i} = 1\n" for i in range(600)))
    assert len(list(own_statements(chain.body))) == 2 * 601


def test_a_copy_leaves_out_what_others_note_at_nodes_that_all_trees_share(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = ast.parse("a\nb")
    monkeypatch.setattr(tree.body[0].value.ctx, "parent", tree, raising=False)  # type: ignore[attr-defined]
    copy = copied(tree)
    assert ast.dump(copy, include_attributes=True) == ast.dump(tree, include_attributes=True)
    assert vars(copy.body[0].value.ctx) == {}
