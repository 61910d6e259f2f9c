"""Models with random weights whose first compiled call takes seconds, as `bench_capture` measures them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

#: (module, arguments, keyword arguments)
Model = tuple[nn.Module, tuple[Any, ...], dict[str, Any]]


class Block(nn.Module):
    """A block of a transformer."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Transformer(nn.Module):
    """Sixty blocks in plain torch."""

    def __init__(self, blocks: int = 60, width: int = 32) -> None:
        super().__init__()
        self.embedding = nn.Embedding(100, width)
        self.blocks = nn.ModuleList(Block(width, 2) for _ in range(blocks))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 100)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.embedding(ids)
        for block in self.blocks:
            x = block(x)
        result: torch.Tensor = self.head(self.norm(x))
        return result


def _double(before: int, after: int) -> nn.Sequential:
    first = (nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU())
    return nn.Sequential(*first, nn.Conv2d(after, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU())


class UNet(nn.Module):
    """Five levels down and up, with a concatenation on each."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        steps = [(width * 2**i, width * 2 ** (i + 1)) for i in range(4)]
        self.first, self.last = _double(3, width), nn.Conv2d(width, 2, 1)
        self.downs = nn.ModuleList(_double(a, b) for a, b in steps)
        self.ups = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, 2) for a, b in reversed(steps))
        self.joins = nn.ModuleList(_double(b, a) for a, b in reversed(steps))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x, kept = self.first(x), []
        for down in self.downs:
            kept.append(x)
            x = down(F.max_pool2d(x, 2))
        for up, join in zip(self.ups, self.joins, strict=True):
            x = join(torch.cat([kept.pop(), up(x)], 1))
        result: torch.Tensor = self.last(x)
        return result


def _seen(name: str, size: int, folder: str = "", **settings: Any) -> Callable[[], Model]:
    """A model of torchvision's; those that detect take a list of pictures."""

    def make() -> Model:
        import torchvision

        models = getattr(torchvision.models, folder) if folder else torchvision.models
        weights = {"weights": None, "weights_backbone": None} if folder else {"weights": None}
        picture = torch.rand(3, size, size)
        return getattr(models, name)(**weights, **settings).eval(), ([picture] if folder else picture[None],), {}

    return make


def _read(name: str, inputs: Callable[[], dict[str, Any]], **settings: Any) -> Callable[[], Model]:
    """A model of transformers'."""

    def make() -> Model:
        import transformers

        made = getattr(transformers, name)
        return made(made.config_class(**settings)).eval(), (), inputs()

    return make


def _ids(*names: str) -> Callable[[], dict[str, Any]]:
    return lambda: {name: torch.randint(0, 100, (1, 16)) for name in names}


def bert(layers: int) -> Callable[[], Model]:
    """A small BERT."""
    width = {"vocab_size": 100, "hidden_size": 64, "num_attention_heads": 2, "intermediate_size": 128}
    return _read("BertModel", _ids("input_ids"), num_hidden_layers=layers, **width)


MODELS: dict[str, Callable[[], Model]] = {
    "transformer of 60 blocks": lambda: (Transformer().eval(), (torch.randint(0, 100, (1, 16)),), {}),
    "UNet": lambda: (UNet().eval(), (torch.rand(1, 3, 64, 64),), {}),
    "MaxViT": _seen("maxvit_t", 224),
    "SSDLite": _seen("ssdlite320_mobilenet_v3_large", 320, "detection"),
    "Mask R-CNN": _seen("maskrcnn_resnet50_fpn", 160, "detection", min_size=160, max_size=200),
    "Swin": _seen("swin_t", 224),
    "EnCodec": _read("EncodecModel", lambda: {"input_values": torch.rand(1, 1, 2400)}),
    "BERT, 12 layers": bert(12),
    "T5": _read(
        "T5Model", _ids("input_ids", "decoder_input_ids"), vocab_size=100, d_model=64, d_kv=32, d_ff=64, num_layers=6,
        num_heads=2,
    ),
    "Llama, 16 layers": _read(
        "LlamaForCausalLM", _ids("input_ids"), vocab_size=100, hidden_size=64, intermediate_size=128, num_hidden_layers=16,
        num_attention_heads=2, num_key_value_heads=2,
    ),
    "wav2vec2": _read(
        "Wav2Vec2Model", lambda: {"input_values": torch.rand(1, 4000)}, hidden_size=64, num_hidden_layers=8,
        num_attention_heads=2, intermediate_size=128, conv_dim=(32,) * 7,
    ),
}  # fmt: skip
