"""Settings given from Python."""

from __future__ import annotations

import pytest
import torch
import torch.utils.checkpoint

from dynascope.compiler.capture.torch_private import config
from dynascope.compiler.driver import explain


def test_settings_from_python_are_honoured_or_refused() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    with pytest.raises(AssertionError, match="expected graphs=7, found 1"):
        explain(f, backend="eager", expect="graphs=7")(torch.ones(2))
    for wrong, words in (
        ({"expect": "brekas=0"}, "cannot expect 'brekas=0'"),
        ({"save": "a.pdf"}, "the name must end in one of"),
        ({"profile": "3"}, "profile takes a number, not '3'"),
    ):
        with pytest.raises(ValueError, match=words):
            explain(f, **wrong)
    for settings, words in (({"bakend": "eager"}, "unknown setting 'bakend'"), ({"function": ["f"]}, "a setting of %%compile")):
        with pytest.raises(TypeError, match=words):
            explain(f, **settings)


@pytest.mark.skipif(config.nested_graph_breaks() is None, reason="this torch has no nested graph breaks")
@pytest.mark.parametrize(("default", "option", "in_force"), [(True, None, True), (False, None, False), (True, False, False)])
def test_the_report_says_whether_nested_graph_breaks_are_in_force(default: bool, option: bool | None, in_force: bool) -> None:
    with config.dynamo_config(nested_graph_breaks=default):
        report = explain(torch.sin, backend="eager", nested_graph_breaks=option)(torch.ones(2))
    assert report.settings["nested_graph_breaks"] is in_force
