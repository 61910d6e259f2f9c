"""Each test of the compiler begins with a torch that has compiled nothing."""

from __future__ import annotations

import pytest
import torch._dynamo


@pytest.fixture(autouse=True)
def fresh_torch() -> None:
    torch._dynamo.reset()
