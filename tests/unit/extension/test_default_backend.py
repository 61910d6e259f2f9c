"""DYNASCOPE_BACKEND: the default backend where a machine has no C++ compiler."""

from __future__ import annotations

import dataclasses

import pytest

from dynascope.compiler.settings import Settings
from dynascope.options import config_traits, default_of


@pytest.mark.parametrize(("given", "expected"), [(None, "inductor"), ("", "inductor"), ("aot_eager", "aot_eager")])
def test_the_default_backend_comes_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, given: str | None, expected: str
) -> None:
    if given is None:
        monkeypatch.delenv("DYNASCOPE_BACKEND", raising=False)
    else:
        monkeypatch.setenv("DYNASCOPE_BACKEND", given)
    (field,) = [f for f in dataclasses.fields(Settings) if f.name == "backend"]
    assert default_of(field) == expected
    assert config_traits()["backend"].default_value == expected
