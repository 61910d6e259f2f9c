"""The helpers for syntax trees, code objects and patches."""

from __future__ import annotations

import ast
import os
import textwrap

import pytest

from dynascope.cell import tracebacks
from dynascope.cell.syntax import bound_names, generated, is_generator, own_statements
from dynascope.compiler.patching import patched
from dynascope.compiler.source.code import code_key, first_line, map_constants, nested_code


def parse(text: str) -> list[ast.stmt]:
    return ast.parse(textwrap.dedent(text)).body


def test_names_that_statements_bind_in_their_own_scope() -> None:
    statements = parse("""
        import a.b, c as d
        e = [f for f in (g := range(3))]
        with open(h) as i: pass
        def j(k): m = 1
        for n in []: o.p = q = 1
        try: pass
        except E as r: pass
        s = lambda t: (u := 1)
        del v
        @(w := one)
        def x(y, z=(aa := 1), *, ab=(ac := 2)): ad = 1
        class ae((af := object), metaclass=(ag := type)): ah = 1
        lambda ai=(aj := 1): (ak := 2)
    """)
    own = ["a", "d", "e", "g", "i", "j", "n", "q", "r", "s", "v", "x", "ac", "aa", "w", "ae", "af", "ag", "aj"]
    assert bound_names(statements) == own


def test_statements_of_a_level_and_first_lines() -> None:
    statements = parse("""
        if x:
            a = 1
        else:
            @one
            @two
            def f():
                yield 1
        try: b = 1
        finally: c = 1
    """)
    own = list(own_statements(statements))
    assert [type(s).__name__ for s in own] == ["If", "Assign", "FunctionDef", "Try", "Assign", "Assign"]
    function = own[2]
    assert isinstance(function, ast.FunctionDef)
    assert (function.lineno, first_line(function)) == (7, 5)
    assert is_generator(function)
    module = compile(ast.Module(body=statements, type_ignores=[]), "<cell>", "exec")
    assert ("f", 5) in [code_key(code) for code in nested_code(module)]


def test_generated_code_has_no_lines_of_its_own() -> None:
    at = parse("\n\n  \nx = 1")[0]
    places = {(n.lineno, n.end_lineno) for n in ast.walk(generated("if a:\n b = 1", at)) if isinstance(n, (ast.stmt, ast.expr))}
    assert places == {(4, 4)}


def test_constants_are_replaced_at_any_depth_and_unchanged_code_is_the_same_object() -> None:
    code = compile("def f():\n return lambda: 'mark'", "<cell>", "exec")
    assert map_constants(code, lambda constant: constant) is code
    changed = map_constants(code, lambda constant: 5 if constant == "mark" else constant)
    space: dict[str, object] = {}
    exec(changed, space)
    assert space["f"]()() == 5  # type: ignore[operator]


def test_a_patch_restores_the_very_object_or_its_absence() -> None:
    class Parent:
        inherited = 1

    class Owner(Parent):
        own = object()

    before = dict(vars(Owner))
    names: dict[str, object] = {"a": 1}
    environment = dict(os.environ)
    with (
        patched(Owner, {"own": 2, "inherited": 3}),
        patched(names, {"a": 2, "b": 3}),
        patched(os.environ, {"PATH": "c", "D": "e"}),
    ):
        assert (Owner.own, Owner.inherited, names) == (2, 3, {"a": 2, "b": 3})
        assert (os.environ["PATH"], os.environ["D"]) == ("c", "e")
    assert dict(vars(Owner)) == before
    assert names == {"a": 1}
    assert os.environ == environment


def test_nodes_and_statements_of_any_depth_are_walked() -> None:
    """Python compiles deeper code than its recursion limit allows functions to follow."""
    total = ast.parse("y = " + " + ".join(["a"] * 1500))
    assert bound_names(total.body) == ["y"]
    chain = ast.parse("if a: b = 1\n" + "".join(f"elif a{i}: c{i} = 1\n" for i in range(600)))
    assert len(list(own_statements(chain.body))) == 2 * 601


def test_files_that_inductor_wrote_are_no_code_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "/scratch/cache")
    files = [
        "/tmp/torchinductor_me/ab/c.py",
        "/scratch/cache/ab/c.py",
        "/home/me/torchinductor-notes/a.py",
        "/scratch/cache.py",
    ]
    assert [tracebacks._is_library(file) for file in files] == [True, True, False, False]
