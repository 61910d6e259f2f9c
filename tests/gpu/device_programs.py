"""Programs and models for a device, and the device: DYNASCOPE_DEVICE, "cuda" unless it says "cpu" (a rehearsal)."""

from __future__ import annotations

import os
from collections.abc import Callable
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


#: a function and its arguments
Call = tuple[Callable[..., Any], tuple[Any, ...]]
#: the pixels of an image's sides
PICTURE = 800 if ON_GPU else 96


def detection() -> Call:
    """Mask R-CNN: graph breaks by size and by value, in a library's code."""
    from torchvision.models.detection import maskrcnn_resnet50_fpn

    model = maskrcnn_resnet50_fpn(weights=None, weights_backbone=None, min_size=PICTURE, max_size=PICTURE * 4 // 3)
    return model.eval().to(DEVICE), ([torch.rand(3, PICTURE, PICTURE, device=DEVICE)],)


def language() -> Call:
    """A transformer, and an `if` on a value after its layers."""
    from models import Transformer

    width, length = (1024, 512) if ON_GPU else (32, 16)
    model = Transformer(12, width).eval().to(DEVICE)

    def predict(ids: torch.Tensor) -> torch.Tensor:
        logits = model(ids)
        if logits.abs().max() > 10:
            logits = logits / 2
        result: torch.Tensor = logits.softmax(-1)
        return result

    return torch.no_grad()(predict), (torch.randint(0, 100, (8, length), device=DEVICE),)


def training() -> Call:
    """A step of training under autocast, without the optimizer, that prints."""
    from models import UNet

    model = UNet(32 if ON_GPU else 4).to(DEVICE)
    target = torch.rand(8, 2, 256, 256, device=DEVICE) if ON_GPU else torch.rand(1, 2, 32, 32)

    def step(x: torch.Tensor) -> torch.Tensor:
        with torch.autocast(DEVICE, torch.bfloat16):
            loss = torch.nn.functional.mse_loss(model(x).float(), target)
        print("loss computed")
        loss.backward()
        return loss.detach()

    return step, (torch.rand(target.shape[0], 3, *target.shape[2:], device=DEVICE),)
