"""Reasons of recompiles, in words."""

from __future__ import annotations

import pytest

from dynascope.compiler.builder.compile_records import CompileRecord
from dynascope.compiler.builder.dynamo_texts import failed_guard
from dynascope.compiler.builder.guards import Version
from dynascope.widgets.features.recompiles import guard_words


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("0/0: 2 <= x.size()[0]", "x.size()[0] was at least 2 when it was compiled, and is not now"),
        ("0/0: 2 <= x.size()[0] <= 8  #   # in pool", "x.size()[0] was between 2 and 8 when it was compiled, and is not now"),
        ("0/0: G['___unnamed_scope_1403_c0']['factor'] == 2", "factor was 2 when it was compiled, and is not now"),
        ("0/0: L['s'] == {1, 2}     # def f(x, s):", "s was {1, 2} when it was compiled, and is not now"),
        ("0/0: L['s'] == 'a b'     # def f(x, s):", "s was 'a b' when it was compiled, and is not now"),
        ("0/0: L['options']['lr'] == 'low'", "options['lr'] was 'low' when it was compiled, and is not now"),
        (
            "0/0: L['self'].param_groups[0]['lr'] == 0.1",
            "self.param_groups[0]['lr'] was 0.1 when it was compiled, and is not now; as a float tensor, where the "
            "optimizer takes one, it may change without a recompile",
        ),
        ("0/0: L['s'] == 'a  # b'     # def f(x, s):", "s was 'a  # b' when it was compiled, and is not now"),
        # no values, but expressions
        ("0/0: L['m'] == L['n']", "this guard failed: m == n"),
        ("0/0: L['n'] == 1 + L['m']", "this guard failed: n == 1 + m"),
        ("0/0: L['n'] <= 1.0", "this guard failed: n <= 1.0"),
        ("0/0: 3 <= L['m'] + L['n']", "this guard failed: 3 <= m + n"),
        ("0/0: not L['d']     # def f(x, d):", "d was empty when it was compiled, and is not now"),
        (
            "0/0: not dict(type(L['m']).__dict__)['act'].__closure__[0].cell_contents",
            "dict(type(m).__dict__)['act'].__closure__[0].cell_contents was empty when it was compiled, and is not now",
        ),
        ("0/0: len(L['l']) == 2", "l had length 2 when it was compiled, and has another length now"),
        (
            "1/0: ___tuple_iterator_len(___stack0) == 2",
            "(value 1 passed on at the break) had length 2 when it was compiled, and has another length now",
        ),
        # Dynamo's own dicts of modules print what was found, not what was expected
        (
            "0/0: len(L['self']._modules['layers']._modules) != 2",
            "self.layers._modules had length 2 when it was compiled, and has another length now",
        ),
        (
            "4/0: len(L['self'].state[list(dict.keys(L['self'].state))[0]]) != 0",
            "self.state[list(dict.keys(self.state))[0]] had length 0 when it was compiled, and has another length now",
        ),
        ("0/0: list(dict.keys(L['d']))[0] == 'a'", "list(dict.keys(d))[0] was 'a' when it was compiled, and is not now"),
        ("1/0: ___check_torch_function_mode_stack()", "a global setting of torch changed: torch_function_mode_stack"),
        ("0/0: KeyError on L['cache'][(1, 'w')]", "cache[(1, 'w')] was there when it was compiled, and is not now"),
        (  # it may be None now
            "0/0: KeyError on L['self']._modules['act']",
            "self.act was there when it was compiled, and is not now, or is None or kept elsewhere",
        ),
        ("0/0: tensor 'x' requires_grad mismatch. expected requires_grad=0", "x required no gradient before, and does now"),
        ("0/0: tensor 'x' requires_grad mismatch. expected requires_grad=1", "x required a gradient before, and does not now"),
        (
            "tensor 'x' dispatch key set mismatch. expected DispatchKeySet(A, B, C), actual DispatchKeySet(A, D). Guard failed",
            "x had other dispatch keys: B only before, C only before, D only now",
        ),
        ("0/0: tensor 'x' Tensor device index mismatch. Expected device index to be 0, actual 1", "x was on another device"),
        ("0/0: expected type of 'L['x']' to be a tensor type, ' but found <class 'm.P'>", "x is of another class now: m.P"),
        ("0/0: CodeGuardAccessor: Not a function on L['act'].__code__", "act had another type"),
        (
            "0/0: ClosureGuardAccessor: Not a function on L['act'].__closure__",
            "act.__closure__ was there when it was compiled, and is not now, or is None or kept elsewhere",
        ),
        (
            "0/0: ___check_obj_id(L['mode'], 139812407854736), type=<class '__main__.Mode'>  # return x if mode is A",
            "mode was another object when it was compiled: that version is for it alone",
        ),
        ("1/0: ___stack0 == 3.0  # x*n", "(value 1 passed on at the break) was 3.0 when it was compiled, and is not now"),
        ("0/2: 96 == (2*L['x'].size()[0])", "this guard failed: 96 == (2*x.size()[0])"),
        ("0/0: not ___dict_contains('k', L['cache'])", "this guard failed: 'k' not in cache"),
        (
            "0/0: not ___dict_contains((5, device(type='cpu')), L['cache'])",
            "this guard failed: (5, device(type='cpu')) not in cache",
        ),
        (
            "0/0: tensor '___from_numpy(L['n'])' dtype mismatch. expected Double, actual Int",
            "n had another dtype: Double before, Int now",
        ),
        ("0/0: Duplicate tensors found: ['x', 'y']", "this guard failed: Duplicate tensors found: ['x', 'y']"),
        # in compiled autograd
        ("!1/0/0: len(L['sizes']) == 2", "sizes had length 2 when it was compiled, and has another length now"),
        (
            "2/0: Cache line invalidated because L['self'] got deallocated",
            "self was another object, now gone, when it was compiled: that version was for it alone",
        ),
        (
            "0/0: Unexpected recompilation: runtime guards failed even though they passed during",
            "no reason found: all guards held when Dynamo looked for it (as when threads compile at the same time)",
        ),
    ],
)
def test_reasons_in_words(reason: str, words: str) -> None:
    assert guard_words(failed_guard(reason)) == words


def test_two_classes_of_one_name_are_not_said_to_be_one() -> None:
    guard = failed_guard("0/0: ___check_type_id(L['fn'], 1)")
    guard.before, guard.now = "m.A", "m.A"
    assert guard_words(guard) == "fn had another type"
    guard.now = "m.B"
    assert guard_words(guard) == "fn was m.A when it was compiled, and is m.B now"


def test_a_dtype_and_a_size_end_before_the_sentence_does() -> None:
    guard = failed_guard("tensor 'w' size mismatch at index 0. expected 4, actual 2. Guard failed on a parameter, set a.b = 1.")
    assert (guard.kind, guard.before, guard.now, guard.hint) == ("size", "4", "2", "set a.b = 1")
    guard = failed_guard("0/0: tensor 'x' dtype mismatch. expected Float, actual Double. It was cast")
    assert (guard.kind, guard.before, guard.now, guard.hint) == ("dtype", "Float", "Double", None)


def test_conditions_on_sizes_are_guards_on_the_users_data_and_lambdas_in_the_tree_are_not() -> None:
    text = """TREE_GUARD_MANAGER:
+- RootGuardManager
| +- LAMBDA_GUARD: torch._functorch.aot_autograd.utils.top_saved_tensors_hooks ids == None  # _dynamo/output_graph.py:688
| +- GuardManager: source=L['x'], accessed_by=FrameLocalsGuardAccessor(key='x', framelocals_idx=0), type=<class 'Tensor'>
| | +- TYPE_MATCH: ___check_type_id(L['x'], 1)
+- LAMBDA_GUARD: 2 <= L['x'].size()[0]  # return x * x.shape[0]  # a.py:5 in f
"""
    for printed in (text, text.replace("LAMBDA_GUARD: 2", "SYMBOLIC_SHAPE_GUARD: 2")):
        sites = Version(CompileRecord(None, guard_text=printed), lambda file: None).sites
        assert [guard.text for site in sites for guard in site.guards] == ["2 <= x.size()[0]"]
