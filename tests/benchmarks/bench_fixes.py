"""What `explain(model, fix=True)` makes of small models of transformers: the table in examples/reference/fixes.md.

    python tests/benchmarks/bench_fixes.py run NAME...    # all without a name; the rows lie in build/fixes
    python tests/benchmarks/bench_fixes.py write          # the rows into the table

Each model has random weights and runs once, compiled with the backend "eager".  "search" is
processor time: that of the machine's clock depends on what else it does.
"""

from __future__ import annotations

import functools
import json
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).parents[2]
ROWS, TABLE = ROOT / "build" / "fixes", ROOT / "examples" / "reference" / "fixes.md"
BEGIN, END = "<!-- models -->\n", "<!-- end of models -->\n"
#: limit of a search, enough for a machine that does other work, too
SECONDS = 600.0

SIZES = {"hidden_size": 32, "intermediate_size": 48, "num_attention_heads": 2, "vocab_size": 99, "num_hidden_layers": 2,
         "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}  # fmt: skip
TEXT = SIZES | {"num_key_value_heads": 1, "head_dim": 16, "max_position_embeddings": 64}
SEQ2SEQ = {"d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48,
           "encoder_attention_heads": 2, "decoder_attention_heads": 2, "vocab_size": 99,
           "max_position_embeddings": 64}  # fmt: skip
DROP = {"encoder_layerdrop": 0.1, "decoder_layerdrop": 0.1}
ROPE = {"rope_type": "longrope", "short_factor": [1.0] * 8, "long_factor": [2.0] * 8, "rope_theta": 10000.0, "factor": 2.0,
        "original_max_position_embeddings": 32}  # fmt: skip
IDS = {"input_ids": (2, 8)}
BOTH, LABELS = IDS | {"decoder_input_ids": (2, 8)}, IDS | {"labels": (2, 8)}

#: name of a row -> class of the model, settings of its configuration, what it takes, whether it is trained
MODELS: dict[str, tuple[str, dict[str, Any], dict[str, Any], bool]] = {
    "BioGPT with layerdrop, training": ("BioGptForCausalLM", SIZES | {"max_position_embeddings": 64, "layerdrop": 0.1},
                                        LABELS, True),
    "Blenderbot with layerdrop, training": ("BlenderbotForConditionalGeneration", SEQ2SEQ | DROP, LABELS, True),
    "Flan-T5": ("T5ForConditionalGeneration", {"d_model": 32, "d_kv": 16, "d_ff": 48, "num_layers": 2, "num_heads": 2,
                                               "vocab_size": 99, "feed_forward_proj": "gated-gelu"}, BOTH, False),
    "Longformer": ("LongformerModel", SIZES | {"max_position_embeddings": 70, "attention_window": 4}, IDS, False),
    "Phi-3 (and Phi-4-mini) with longrope": ("Phi3ForCausalLM", TEXT | {"rope_parameters": ROPE}, IDS, False),
    "Pegasus, decoder": ("PegasusForCausalLM", SEQ2SEQ, IDS, False),
    "Mixtral": ("MixtralForCausalLM", TEXT | {"num_local_experts": 2, "num_experts_per_tok": 1}, IDS, False),
    "Mixtral, training with router loss": ("MixtralForCausalLM", TEXT | {"num_local_experts": 2, "num_experts_per_tok": 1,
                                                                         "output_router_logits": True}, LABELS, True),
    "Llama, `generate()`": ("LlamaForCausalLM", TEXT, IDS, False),
}  # fmt: skip


def made(name: str) -> tuple[Callable[..., Any], dict[str, Any]]:
    """The model, or its `generate`, and its inputs."""
    import transformers

    class_name, settings, takes, trained = MODELS[name]
    torch.manual_seed(0)
    cls = getattr(transformers, class_name)
    model = cls(cls.config_class(**settings)).train(trained)
    inputs = {key: torch.randint(3, 90, v) if isinstance(v, tuple) else torch.tensor(v) for key, v in takes.items()}
    if "generate()" in name:
        return functools.partial(model.generate, max_new_tokens=3, do_sample=False), inputs
    return model, inputs


def row(name: str) -> dict[str, Any]:
    """What was found for one model."""
    import dynascope

    target, inputs = made(name)
    with torch.set_grad_enabled(MODELS[name][3]):
        started = time.process_time()
    report = dynascope.explain(target, backend="eager", fix=True, fix_seconds=SECONDS)(**inputs)
    seconds = time.process_time() - started
    found = report.fix_set
    assert found is not None
    return {
        "name": name,
        "counts": [[found.breaks_before, found.breaks_after], [found.graphs_before, found.graphs_after]]
        if report.breaks else [[0, 0], [report.summary.graphs] * 2],
        "seconds": seconds, "complete": found.is_complete, "notes": found.notes,
        "fixes": [[x.title, x.verdict, x.chosen, x.reason, x.break_] for x in report.fixes or ()],
        "breaks": [[b.id, b.type, Path(b.file).name, b.line] for b in report.breaks],
        "patch": report.patch(),
    }  # fmt: skip


def run(names: list[str]) -> None:
    ROWS.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    for name in names or list(MODELS):
        torch._dynamo.reset()
        found = row(name)
        print(name, found["counts"], f"{found['seconds']:.0f} s", found["notes"], flush=True)
        (ROWS / f"{list(MODELS).index(name):02}.json").write_text(json.dumps(found, indent=1), encoding="utf-8")


def write() -> None:
    lines = ["| model | breaks | graphs | search | changes |", "| --- | --- | --- | --- | --- |"]
    for path in sorted(ROWS.glob("*.json")):
        found = json.loads(path.read_text(encoding="utf-8"))
        (b0, b1), (g0, g1) = found["counts"]
        chosen = list(dict.fromkeys(title for title, _, is_chosen, *_ in found["fixes"] if is_chosen))
        took = f"{found['seconds']:.0f} s" + ("" if found["complete"] else ", cut short") if b0 else ""
        first = len(found["breaks"])
        breaks = f"{b0} → {b1}" + (f" (first call: {first})" if first != b0 else "")
        lines.append(f"| {found['name']} | {breaks} | {g0} → {g1} | {took} | {'; '.join(chosen)} |")
    before, _, rest = TABLE.read_text(encoding="utf-8").partition(BEGIN)
    TABLE.write_text(before + BEGIN + "\n".join(lines) + "\n" + END + rest.partition(END)[2], encoding="utf-8")


if __name__ == "__main__":
    run(sys.argv[2:]) if sys.argv[1] == "run" else write()
