"""Models with graph breaks, small and with random weights, of packages from PyPI: what `fix` is measured with.

`MODELS[name]()` makes what is compiled, and a function that draws its inputs: of another size for odd numbers where the model
takes one.  A model that trains returns a loss, or losses, and the gradients of its parameters are compared, too.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from small_models import AUDIO, ENCODER, EXPERTS, IMAGE, SOUND, TEXT, yolo


class Broken(NamedTuple):
    """A model with graph breaks."""

    call: Callable[..., Any]
    #: number of a call -> new inputs
    inputs: Callable[[int], dict[str, Any]]
    #: its parameters get gradients: the sum of what it returns is a loss
    trains: bool = False


def ids(name: str = "input_ids", length: int = 8, highest: int = 90) -> Callable[[int], dict[str, Any]]:
    return lambda number: {name: torch.randint(3, highest, (1 + number % 2, length))}


def labelled(number: int) -> dict[str, Any]:
    given = ids()(number)
    return given | {"labels": given["input_ids"].clone()}


def images(size: int = 64, **more: Any) -> Callable[[int], dict[str, Any]]:
    return lambda number: {"pixel_values": torch.rand(1 + number % 2, 3, size, size), **more}


def model(name: str, **settings: Any) -> Any:
    """A model of transformers, with these settings of its configuration."""
    of = getattr(importlib.import_module("transformers"), name)
    return of(of.config_class(**settings)).eval()


class Loss(torch.nn.Module):
    """The loss of a model in training, or the sum of its losses."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, **inputs: Any) -> Any:
        found = self.model(**inputs)
        return torch.stack(list(found.values())).sum() if type(found) is dict else found.loss


def training(name: str, inputs: Callable[[int], dict[str, Any]], **settings: Any) -> Broken:
    return Broken(Loss(model(name, **settings).train()), inputs, True)


def detection(name: str, trains: bool = False) -> Broken:
    models = importlib.import_module("torchvision.models.detection")
    made = getattr(models, name)(weights=None, weights_backbone=None, num_classes=5, **(
        {} if "ssd" in name else {"min_size": 64, "max_size": 96}
    )).train(trains)  # fmt: skip

    def inputs(number: int) -> dict[str, Any]:
        given: dict[str, Any] = {"images": [torch.rand(3, 64, 80 + 8 * (number % 2)) for _ in range(1 + trains)]}
        if trains:
            corner = torch.rand(2, 2, 2) * 30
            boxes = torch.cat([corner, corner + 10 + torch.rand(2, 2, 2) * 20], dim=2)
            given["targets"] = [{"boxes": b, "labels": torch.randint(1, 5, (2,))} for b in boxes]
        return given

    return Broken(Loss(made) if trains else made, inputs, trains)


def plain(made: tuple[Callable[..., Any], dict[str, Any]]) -> Broken:
    """A model of `small_models`: all its inputs are random numbers."""
    call, first = made
    return Broken(call, lambda number: torch.utils._pytree.tree_map(lambda x: torch.rand_like(x), first))


DETR = {
    "use_timm_backbone": False, "use_pretrained_backbone": False, "d_model": 32, "encoder_layers": 1, "decoder_layers": 1,
    "encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "num_queries": 5,
    "num_labels": 4,
}  # fmt: skip


def detr(trains: bool = True) -> Broken:
    of = importlib.import_module("transformers")
    backbone = of.ResNetConfig(embedding_size=8, hidden_sizes=[8, 8, 16, 16], depths=[1] * 4, layer_type="basic",
                               out_features=["stage4"])  # fmt: skip
    made = of.DetrForObjectDetection(of.DetrConfig(backbone_config=backbone, **DETR)).train(trains)

    def inputs(number: int) -> dict[str, Any]:
        boxes = torch.rand(2, 2, 4) * 0.4 + 0.2
        labels = [{"class_labels": torch.randint(0, 4, (2,)), "boxes": b} for b in boxes]
        return {"pixel_values": torch.rand(2, 3, 64, 64 + 32 * (number % 2)), "labels": labels}

    return Broken(Loss(made), inputs, True)


def qwen2_vl() -> Broken:
    of = importlib.import_module("transformers")
    vision = {"depth": 1, "embed_dim": 32, "hidden_size": 32, "num_heads": 2, "patch_size": 8}
    text = TEXT | {"rope_scaling": {"type": "mrope", "mrope_section": [2, 3, 3]}, "vocab_size": 99}
    names = {"vision_start_token_id": 90, "vision_end_token_id": 91, "image_token_id": 92, "video_token_id": 93}
    made = of.Qwen2VLForConditionalGeneration(of.Qwen2VLConfig(text_config=text, vision_config=vision, **names)).eval()

    def inputs(number: int) -> dict[str, Any]:
        tokens = torch.randint(3, 90, (13 + number,))
        tokens[3:9] = torch.tensor([90, 92, 92, 92, 92, 91])
        return {
            "input_ids": tokens[None], "attention_mask": torch.ones_like(tokens)[None],
            "pixel_values": torch.rand(16, 3 * 2 * 8 * 8), "image_grid_thw": torch.tensor([[1, 4, 4]]),
            "mm_token_type_ids": (tokens == 92).long()[None],
        }  # fmt: skip

    return Broken(made, inputs)


def llava() -> Broken:
    of = importlib.import_module("transformers")
    vision = of.CLIPVisionConfig(**IMAGE, projection_dim=32)
    text = of.LlamaConfig(**TEXT)
    made = of.LlavaForConditionalGeneration(of.LlavaConfig(vision_config=vision, text_config=text, image_token_index=95)).eval()

    def inputs(number: int) -> dict[str, Any]:
        tokens = torch.cat([torch.randint(3, 90, (3 + number,)), torch.full((16,), 95), torch.randint(3, 90, (4,))])
        return {"input_ids": tokens[None], "pixel_values": torch.rand(1, 3, 32, 32)}

    return Broken(made, inputs)


def llama_generates(beams: int) -> Broken:
    made = model("LlamaForCausalLM", **TEXT)
    return Broken(functools.partial(made.generate, max_new_tokens=3, num_beams=beams, do_sample=False), ids())


def llama_planted() -> Broken:
    made = model("LlamaForCausalLM", **TEXT | {"num_hidden_layers": 48})

    def predict(input_ids: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = made(input_ids=input_ids).logits
        if logits.abs().max() > 10:
            logits = logits / 2
        return logits.softmax(-1)

    return Broken(predict, ids())


def encodec() -> Broken:
    made = model("EncodecModel", **SOUND["EncodecModel"])
    return Broken(made, lambda number: {"input_values": torch.rand(1, 1, 1000 + 100 * (number % 2))})


def variational() -> Broken:
    """A variational autoencoder as torch.distributions' users write it."""
    distributions = importlib.import_module("torch.distributions")

    class Autoencoder(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encode, self.decode = torch.nn.Linear(12, 8), torch.nn.Linear(4, 12)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            mean, scale = self.encode(x).chunk(2, dim=-1)
            q = distributions.Normal(mean, torch.nn.functional.softplus(scale) + 1e-3)
            p = distributions.Independent(distributions.Bernoulli(logits=self.decode(q.rsample())), 1)
            prior = distributions.Normal(torch.zeros_like(mean), torch.ones_like(mean))
            loss: torch.Tensor = (distributions.kl_divergence(q, prior).sum(-1) - p.log_prob((x > 0).float())).mean()
            return loss

    return Broken(Autoencoder(), lambda number: {"x": torch.randn(4 + number % 2, 12)}, True)


def suppression() -> Broken:
    """What follows a detector: boxes are filtered by score, then by overlap."""
    ops = importlib.import_module("torchvision.ops")

    def best(boxes: torch.Tensor, scores: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        keep = torch.where(scores > 0.2)[0]
        boxes, scores, labels = boxes[keep], scores[keep], labels[keep]
        keep = ops.batched_nms(boxes, scores, labels, 0.5)[:10]
        if keep.numel() == 0:
            return boxes.new_zeros(0, 4), scores.new_zeros(0)
        return ops.clip_boxes_to_image(boxes[keep], (64, 64)), scores[keep]

    def inputs(number: int) -> dict[str, Any]:
        corner = torch.rand(30 + number, 2) * 40
        boxes = torch.cat([corner, corner + torch.rand(30 + number, 2) * 30], dim=1)
        return {"boxes": boxes, "scores": torch.rand(30 + number), "labels": torch.randint(0, 3, (30 + number,))}

    return Broken(best, inputs)


def graphs(make: Callable[[Any], torch.nn.Module], **more: Callable[[int], torch.Tensor]) -> Broken:
    """A model of PyTorch Geometric in training, on one random graph."""
    made = make(importlib.import_module("torch_geometric.nn"))

    def inputs(number: int) -> dict[str, Any]:
        nodes = 12 + 2 * (number % 2)
        given = {"x": torch.randn(nodes, 8), "edge_index": torch.randint(0, nodes, (2, 40))}
        return given | {name: draw(nodes) for name, draw in more.items()}

    return Broken(made, inputs, True)


def pooling(nn: Any) -> torch.nn.Module:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.pool, self.last = nn.GraphConv(8, 16), nn.TopKPooling(16, ratio=0.5), torch.nn.Linear(16, 2)

        def forward(self, x: torch.Tensor, edge_index: torch.Tensor, batch: torch.Tensor) -> Any:
            x = self.conv(x, edge_index).relu()
            x, edge_index, _, batch, _, _ = self.pool(x, edge_index, None, batch)
            return self.last(nn.global_mean_pool(x, batch)).logsumexp(-1).sum()

    return Net()


def relations(nn: Any) -> torch.nn.Module:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two = nn.RGCNConv(8, 16, 3), nn.RGCNConv(16, 2, 3)

        def forward(self, x: torch.Tensor, edge_index: torch.Tensor, edge_type: torch.Tensor) -> Any:
            return self.two(self.one(x, edge_index, edge_type).relu(), edge_index, edge_type).square().mean()

    return Net()


BART = {
    "d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2, "decoder_attention_heads": 2,
    "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "vocab_size": 99,
}  # fmt: skip
LED = {"attention_window": [4], "max_encoder_position_embeddings": 64, "max_decoder_position_embeddings": 64}
BLOCKS = {"block_size": 4, "num_random_blocks": 1, "max_position_embeddings": 128}
REFORMER = {
    "hidden_size": 32, "attention_head_size": 16, "num_attention_heads": 2, "feed_forward_size": 48, "vocab_size": 99,
    "attn_layers": ["local", "lsh"], "axial_pos_embds": False, "max_position_embeddings": 64, "num_buckets": 4,
    "lsh_attn_chunk_length": 4, "local_attn_chunk_length": 4, "num_hashes": 1, "is_decoder": False,
}  # fmt: skip
SEGFORMER = {"hidden_sizes": [8, 8, 16, 16], "depths": [1] * 4, "num_attention_heads": [1] * 4, "decoder_hidden_size": 16}
ONE_BY_ONE = TEXT | EXPERTS | {"experts_implementation": "eager"}


BLENDERBOT = BART | {
    "encoder_layerdrop": 0.1, "decoder_layerdrop": 0.1, "max_position_embeddings": 64, "pad_token_id": 0, "bos_token_id": 1,
    "eos_token_id": 2, "decoder_start_token_id": 1,
}  # fmt: skip
SWITCH = {
    "d_model": 32, "d_kv": 16, "d_ff": 48, "num_layers": 2, "num_heads": 2, "vocab_size": 99, "num_experts": 2,
    "num_sparse_encoder_layers": 1, "num_sparse_decoder_layers": 1, "num_decoder_layers": 2, "decoder_start_token_id": 0,
}  # fmt: skip
SERIES = {"prediction_length": 4, "context_length": 8, "lags_sequence": [1, 2, 7], "num_time_features": 1, "d_model": 16}


def series(number: int) -> dict[str, Any]:
    rows = 2 + number % 2
    known = {"past_values": (15,), "past_time_features": (15, 1), "future_values": (4,), "future_time_features": (4, 1)}
    return {name: torch.rand(rows, *size) for name, size in known.items()} | {"past_observed_mask": torch.ones(rows, 15)}


def speech(number: int) -> dict[str, Any]:
    return {"input_values": torch.rand(2, 1000 + 100 * (number % 2)), "labels": torch.randint(1, 30, (2, 5))}


MODELS: dict[str, Callable[[], Broken]] = {
    "SegFormer": lambda: Broken(model("SegformerForSemanticSegmentation", **SEGFORMER), images()),
    "distributions, training": variational,
    "BigBird": lambda: Broken(model("BigBirdModel", **ENCODER | BLOCKS), ids(length=64)),
    "LLaVA": llava,
    "Qwen2-VL": qwen2_vl,
    "YOLOv8": lambda: plain(yolo()),
    "Llama, 48 layers, one planted if": llama_planted,
    "Mixtral, eager experts": lambda: Broken(model("MixtralForCausalLM", **ONE_BY_ONE), ids()),
    "Reformer": lambda: Broken(model("ReformerModel", **REFORMER), ids(length=16)),
    "NMS": suppression,
    "DETR, training": detr,
    "EnCodec": encodec,
    "Longformer": lambda: Broken(model("LongformerModel", **ENCODER, attention_window=[4, 4]), ids()),
    "LED": lambda: Broken(model("LEDModel", **BART, **LED), ids()),
    "Wav2Vec2, training": lambda: training("Wav2Vec2ForCTC", speech, **AUDIO, mask_time_length=2),
    "TopK pooling, training": lambda: graphs(pooling, batch=lambda nodes: torch.arange(nodes) // (nodes // 2)),
    "RGCN, training": lambda: graphs(relations, edge_type=lambda nodes: torch.randint(0, 3, (40,))),
    "Llama, generate()": lambda: llama_generates(1),
    "Llama, generate() with 3 beams": lambda: llama_generates(3),
    "BioGPT with layerdrop, training": lambda: training("BioGptForCausalLM", labelled, **ENCODER, layerdrop=0.1),
    "Blenderbot with layerdrop, training": lambda: training("BlenderbotForConditionalGeneration", labelled, **BLENDERBOT),
    "Switch Transformers, training": lambda: training("SwitchTransformersForConditionalGeneration", labelled, **SWITCH),
    "Time series, training": lambda: training("TimeSeriesTransformerForPrediction", series, **SERIES),
    "Faster R-CNN, training": lambda: detection("fasterrcnn_mobilenet_v3_large_fpn", True),
    "Mask R-CNN": lambda: detection("maskrcnn_resnet50_fpn"),
}
