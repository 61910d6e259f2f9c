"""Reasons of recompiles, in words."""

from __future__ import annotations

import pytest

from dynascope.compiler.assembling.guardtext import reason_words


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("0/0: 2 <= x.size()[0]", "x.size()[0] was at least 2 when it was compiled, and is not now"),
        ("0/0: 2 <= x.size()[0] <= 8  #   # in pool", "x.size()[0] was between 2 and 8 when it was compiled, and is not now"),
        ("0/0: G['___unnamed_scope_1403_c0']['factor'] == 2", "factor was 2 when it was compiled, and is not now"),
    ],
)
def test_reasons_in_words(reason: str, words: str) -> None:
    assert reason_words(reason) == words
