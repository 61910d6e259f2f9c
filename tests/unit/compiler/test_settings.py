"""Unknown settings, and paths at which nothing can be saved."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from dynascope.compiler.validate import did_you_mean, settings_from_keywords, why_not_savable


def test_a_misspelt_setting_is_answered_with_the_nearest_one() -> None:
    with pytest.raises(TypeError, match=r"unknown setting 'fulgraph' \(did you mean fullgraph\?\)"):
        settings_from_keywords({"fulgraph": True})
    with pytest.raises(TypeError, match="keep is a setting of %%compile"):
        settings_from_keywords({"keep": True})
    assert [did_you_mean(name, ["block", "_block", 3]) for name in ("blok", "other")] == [" (did you mean block?)", ""]


def test_a_folder_that_may_not_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As for a user below another user's home; the tests may run as root, who may read everything."""
    stat = os.stat

    def refuse(path: Any, *args: Any, **kwargs: Any) -> Any:
        if str(path).startswith(str(tmp_path / "home")):
            raise PermissionError(13, "Permission denied", str(path))
        return stat(path, *args, **kwargs)

    monkeypatch.setattr(os, "stat", refuse)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert why_not_savable(str(tmp_path / "home" / "reports" / "a.html")) == f"{tmp_path} is not a writable folder"
