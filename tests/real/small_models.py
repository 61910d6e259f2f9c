"""Small models with random weights, of packages from PyPI: `MODELS[name]()` makes the model and its inputs."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

import torch

Made = tuple[Callable[..., Any], dict[str, Any]]

TEXT = {
    "hidden_size": 32, "intermediate_size": 48, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16,
    "vocab_size": 99, "num_hidden_layers": 2, "pad_token_id": 0, "max_position_embeddings": 64,
}  # fmt: skip
ENCODER = {name: TEXT[name] for name in TEXT if name not in ("num_key_value_heads", "head_dim")}
EXPERTS = {"num_experts": 2, "num_local_experts": 2, "num_experts_per_tok": 1, "moe_intermediate_size": 16,
           "shared_expert_intermediate_size": 16}  # fmt: skip
MAMBA = {"vocab_size": 99, "hidden_size": 32, "state_size": 8, "num_hidden_layers": 2}
IMAGE = {"image_size": 32, "patch_size": 8, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
         "num_attention_heads": 2}  # fmt: skip
SWIN = {"image_size": 64, "embed_dim": 8, "depths": [1] * 4, "num_heads": [1] * 4, "window_size": 2}
AUDIO = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48, "conv_dim": [8, 8],
    "conv_stride": [4, 4], "conv_kernel": [8, 8], "num_conv_pos_embeddings": 4, "num_conv_pos_embedding_groups": 2,
}  # fmt: skip

#: model of transformers -> settings of its configuration; what it takes
IDS: dict[str, dict[str, Any]] = {
    **{f"{name}ForCausalLM": TEXT for name in (
        "Llama", "Mistral", "Qwen2", "Qwen3", "Gemma", "Gemma2", "Phi3", "StableLm", "Starcoder2", "Olmo", "Olmo2", "Cohere",
        "Granite", "Helium", "Glm", "Nemotron", "Phi", "Persimmon", "GPTNeoX",
    )},
    **{f"{name}ForCausalLM": TEXT | EXPERTS for name in ("Mixtral", "Qwen2Moe", "Qwen3Moe", "Olmoe")},
    **{f"{name}Model": ENCODER for name in (
        "Bert", "Roberta", "Electra", "Albert", "MPNet", "ModernBert", "Deberta", "DebertaV2", "FNet", "RoFormer",
        "Nystromformer", "ConvBert", "SqueezeBert", "LayoutLM", "MegatronBert", "Camembert",
    )},
    "MambaForCausalLM": MAMBA,
    "Mamba2ForCausalLM": MAMBA | {"num_heads": 4, "head_dim": 16, "n_groups": 1, "chunk_size": 4},
    "RwkvForCausalLM": {"vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "context_length": 32},
    "RecurrentGemmaForCausalLM": TEXT | {"num_hidden_layers": 3, "lru_width": 32},
    "GPT2LMHeadModel": {"n_embd": 32, "n_layer": 2, "n_head": 2, "vocab_size": 99},
    "OPTForCausalLM": {"hidden_size": 32, "ffn_dim": 48, "num_hidden_layers": 2, "num_attention_heads": 2, "vocab_size": 99,
                       "word_embed_proj_dim": 32, "max_position_embeddings": 64},
    "BloomForCausalLM": {"hidden_size": 32, "n_layer": 2, "n_head": 2, "vocab_size": 99},
    "FalconForCausalLM": {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "vocab_size": 99},
    "DistilBertModel": {"dim": 32, "hidden_dim": 48, "n_layers": 2, "n_heads": 2, "vocab_size": 99},
    "T5EncoderModel": {"d_model": 32, "d_kv": 16, "d_ff": 48, "num_layers": 2, "num_heads": 2, "vocab_size": 99},
}  # fmt: skip
PIXELS: dict[str, dict[str, Any]] = {
    **{f"{name}Model": IMAGE for name in ("ViT", "DeiT", "Beit", "Dinov2", "Siglip2Vision", "CLIPVision")},
    "SwinModel": SWIN,
    "ConvNextModel": {"hidden_sizes": [8, 8, 16, 16], "depths": [1] * 4},
    "ResNetModel": {"embedding_size": 8, "hidden_sizes": [8, 8, 16, 16], "depths": [1] * 4, "layer_type": "basic"},
    "RegNetModel": {"embedding_size": 8, "hidden_sizes": [8, 8, 16, 16], "depths": [1] * 4, "groups_width": 8},
    "PoolFormerModel": {"hidden_sizes": [8, 8, 16, 16], "depths": [1] * 4},
    "MobileNetV2Model": {"depth_multiplier": 0.1},
}
SOUND: dict[str, dict[str, Any]] = {
    "Wav2Vec2Model": AUDIO,
    "HubertModel": AUDIO,
    "EncodecModel": {"num_filters": 4, "hidden_size": 16, "codebook_size": 16, "codebook_dim": 16, "upsampling_ratios": [2, 2],
                     "target_bandwidths": [24.0], "num_lstm_layers": 1},
}  # fmt: skip
INPUTS: dict[str, Callable[[], torch.Tensor]] = {
    "input_ids": lambda: torch.randint(3, 90, (1, 8)),
    "pixel_values": lambda: torch.rand(1, 3, 64, 64),
    "input_values": lambda: torch.rand(1, 1000),
}


def of_transformers(name: str, settings: dict[str, Any], takes: str) -> Made:
    """The model, and the same model in training where it has a loss."""
    import transformers

    model = getattr(transformers, name)
    size = settings.get("image_size", 64)
    inputs = torch.rand(1, 3, size, size) if takes == "pixel_values" else INPUTS[takes]()
    made = model(model.config_class(**settings)).eval()
    return made, {takes: inputs.reshape(1, 1, -1) if name == "EncodecModel" else inputs}


def of_torchvision(name: str, **settings: Any) -> Made:
    models = importlib.import_module("torchvision.models")
    return models.get_model(name, weights=None, **settings).eval(), {"x": torch.rand(1, 3, 64, 64)}


def of_timm(name: str, **settings: Any) -> Made:
    return importlib.import_module("timm").create_model(name, **settings).eval(), {"x": torch.rand(1, 3, 64, 64)}


def mask_rcnn() -> Made:
    detection = importlib.import_module("torchvision.models.detection")
    sizes = {"min_size": 64, "max_size": 96, "num_classes": 5}
    model = detection.maskrcnn_resnet50_fpn(weights=None, weights_backbone=None, **sizes).eval()
    return model, {"images": [torch.rand(3, 64, 80)]}


def yolo() -> Made:
    return importlib.import_module("ultralytics").YOLO("yolov8n.yaml").model.eval(), {"x": torch.rand(1, 3, 64, 64)}


def lightning_step() -> Made:
    """A training step that logs: where there is no trainer, Lightning warns in the middle of it."""
    pytorch = importlib.import_module("lightning.pytorch")

    class Net(pytorch.LightningModule):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(8, 2)

        def training_step(self, batch: torch.Tensor) -> torch.Tensor:
            loss = self.layer(batch).square().mean()
            self.log("loss", loss)
            return loss

    return Net().training_step, {"batch": torch.rand(4, 8)}


def llama_training() -> Made:
    model, inputs = of_transformers("LlamaForCausalLM", TEXT, "input_ids")

    def step(input_ids: torch.Tensor) -> torch.Tensor:
        with torch.enable_grad():
            loss: torch.Tensor = model(input_ids=input_ids, labels=input_ids).loss
            loss.backward()
        return loss

    return step, inputs


def llama_generates() -> Made:
    model, inputs = of_transformers("LlamaForCausalLM", TEXT, "input_ids")
    generate: Any = model
    return functools.partial(generate.generate, max_new_tokens=3, do_sample=False), inputs


MODELS: dict[str, Callable[[], Made]] = {
    **{
        name: functools.partial(of_transformers, name, settings, takes)
        for table, takes in ((IDS, "input_ids"), (PIXELS, "pixel_values"), (SOUND, "input_values"))
        for name, settings in table.items()
    },
    **{
        f"torchvision {name}": functools.partial(of_torchvision, name)
        for name in ("resnet18", "mobilenet_v3_small", "shufflenet_v2_x0_5", "squeezenet1_1", "mnasnet0_5", "swin_t")
    },
    **{
        f"timm {name}": functools.partial(of_timm, name)
        for name in ("resnet18", "convnext_atto", "mobilenetv3_small_050", "efficientformerv2_s0")
    },
    "timm vit_tiny": functools.partial(of_timm, "vit_tiny_patch16_224", img_size=64),
    "torchvision maskrcnn": mask_rcnn,
    "ultralytics yolov8n": yolo,
    "lightning training step": lightning_step,
    "Llama training step": llama_training,
    "Llama generate": llama_generates,
}
