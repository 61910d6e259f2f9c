"""Programs for a device, and the device: DYNASCOPE_DEVICE, "cuda" unless it says "cpu" (a rehearsal)."""

from __future__ import annotations

import os
from typing import Any

import torch

DEVICE = os.environ.get("DYNASCOPE_DEVICE", "cuda")
ON_GPU = DEVICE == "cuda"


def broken(x: torch.Tensor) -> torch.Tensor:
    """Two breaks: one prints, one waits for the device."""
    y = (x @ x).relu()
    print("between")
    y = (y @ x) * 0.01
    if y.sum().item() > 0:
        y = y + 1
    return y @ x


def straight(x: torch.Tensor) -> torch.Tensor:
    """One graph of several kernels."""
    for _ in range(4):
        x = torch.softmax((x @ x) * 0.01, dim=-1)
    return x


def noisy(x: torch.Tensor, kept: list[torch.Tensor]) -> torch.Tensor:
    """Draws random numbers, and changes its arguments in place."""
    x.add_(torch.rand_like(x))
    kept.append(x.sum())
    torch._dynamo.graph_break()
    return torch.nn.functional.dropout(x, 0.5)


class Net(torch.nn.Module):
    """Two layers with a break between."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(256, 256), torch.nn.Linear(256, 256)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.first(x).relu()
        torch._dynamo.graph_break()
        return self.second(y).square().mean()


def train(net: Net, x: torch.Tensor) -> torch.Tensor:
    """One step of training, without the optimizer."""
    loss: Any = net(x)
    loss.backward()
    return loss


def square(size: int = 512) -> torch.Tensor:
    """A square matrix on the device."""
    return torch.rand(size, size, device=DEVICE)


def network() -> tuple[Net, torch.Tensor]:
    """A `Net` on the device, and its input."""
    return Net().to(DEVICE), torch.rand(64, 256, device=DEVICE)
