"""Training steps of real models under autocast: the verdict of `--check` against a float64 run of our own (`make test-real`).

The float64 run is the same model with `double()`, on inputs in float64 and without autocast; what is compared is computed here
by torch alone.  What was found lies in build/real_numbers; `write_table.py` puts it into examples/reference/check.md.
"""

from __future__ import annotations

import contextlib
import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from small_models import IMAGE, INPUTS, PIXELS, TEXT, llama_generates, of_transformers

import dynascope
from dynascope.compiler.capture.torch_private.config import no_caches

BUILD = Path(__file__).parents[2] / "build" / "real_numbers"
#: an error is worse than another one if it is so many times as large
TIMES = 8.0


@contextlib.contextmanager
def wrong_tanh() -> Iterator[None]:
    """Inductor makes code for another operation: a fault that the verdict must name."""
    from torch._inductor.lowering import lowerings

    with no_caches(), pytest.MonkeyPatch.context() as patch:
        patch.setitem(lowerings, torch.ops.aten.tanh.default, lowerings[torch.ops.aten.sigmoid.default])
        yield


SMALLER = {"num_hidden_layers": 1}
GPT2 = {"n_embd": 32, "n_layer": 1, "n_head": 2, "vocab_size": 99, "bos_token_id": 1, "eos_token_id": 2}
T5 = {"d_model": 32, "d_kv": 16, "d_ff": 48, "num_layers": 1, "num_heads": 2, "vocab_size": 99}
#: model of transformers -> settings of its configuration, what it takes
MODELS: dict[str, tuple[dict[str, Any], str]] = {
    "LlamaForCausalLM": (TEXT | SMALLER, "input_ids"),
    "GPT2LMHeadModel": (GPT2, "input_ids"),
    "T5EncoderModel": (T5, "input_ids"),
    "ViTModel": (IMAGE | SMALLER, "pixel_values"),
    "ResNetModel": (PIXELS["ResNetModel"], "pixel_values"),
}
PLANTED, TRAINS = "GPT2LMHeadModel, a wrong tanh", "ResNetModel, in training mode"
CASES = [(name, dtype) for name in (*MODELS, TRAINS, PLANTED) for dtype in ("bfloat16", "float16")]


def first(out: Any) -> torch.Tensor:
    found: torch.Tensor = next(value for value in out.values() if isinstance(value, torch.Tensor))
    return found


def step_of(model: torch.nn.Module, dtype: torch.dtype | None) -> Callable[..., torch.Tensor]:
    def step(**inputs: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", dtype, enabled=dtype is not None):
            out = first(model(**inputs))
        out = out if dtype is None else out.float()
        out.pow(2).mean().backward()  # type: ignore[no-untyped-call]
        return out.detach()

    return step


def computed(model: torch.nn.Module, inputs: dict[str, torch.Tensor], dtype: torch.dtype | None, *, compiles: bool) -> Any:
    """What a step on a copy of the model returns, and the gradients that it leaves."""
    own = copy.deepcopy(model) if dtype is not None else copy.deepcopy(model).double()
    step = step_of(own, dtype)
    out = (torch.compile(step) if compiles else step)(**inputs)
    return [out, *(p.grad for p in own.parameters() if p.grad is not None)]


def errors(actual: list[torch.Tensor], exact: list[torch.Tensor]) -> list[float]:
    """The error of the result, and of all gradients: each as a share of the largest value."""
    return [
        float(max((a.double() - e).abs().max() for a, e in pairs) / max(e.abs().max() for _, e in pairs))
        for pairs in ([(actual[0], exact[0])], list(zip(actual[1:], exact[1:], strict=True)))
    ]


def possible(eager: list[float], compiled: list[float], unit: float) -> set[str]:
    """The verdicts that are true for these errors; whether the digits are lost is told only where the two differ."""
    for who, mine, other in (("compiled", compiled, eager), ("eager", eager, compiled)):
        if any(a > TIMES * max(b, unit) for a, b in zip(mine, other, strict=True)):
            return {who}
    return {"agree", "both" if max(eager + compiled) > unit**0.5 else "rounding"}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "precision"), CASES)
def test_the_verdict_is_that_of_a_run_in_float64(name: str, precision: str) -> None:
    torch.manual_seed(0)
    torch._dynamo.reset()
    dtype, unit = getattr(torch, precision), torch.finfo(getattr(torch, precision)).eps
    settings, takes = MODELS[name.partition(",")[0]]
    model, _ = of_transformers(name.partition(",")[0], settings, takes)
    assert isinstance(model, torch.nn.Module)
    model.train(name == TRAINS)
    size = settings.get("image_size", 64)
    inputs = {takes: torch.rand(2, 3, size, size) if takes == "pixel_values" else INPUTS[takes]()}
    with wrong_tanh() if name == PLANTED else contextlib.nullcontext():
        check = dynascope.explain(step_of(model, dtype), check=True)(**inputs).check
        model.zero_grad()
        compiled = computed(model, inputs, dtype, compiles=True)
    eager = computed(model, inputs, dtype, compiles=False)
    raised = {takes: inputs[takes].double() if inputs[takes].is_floating_point() else inputs[takes]}
    exact = computed(model, raised, None, compiles=False)
    verdict = check.numbers.verdict if check.numbers is not None else "agree" if check.agrees else f"none: {check.why_not}"
    mine, other = errors(eager, exact), errors(compiled, exact)
    BUILD.mkdir(parents=True, exist_ok=True)
    row = {"model": name, "precision": precision, "verdict": verdict, "eager": mine, "compiled": other}
    (BUILD / f"{CASES.index((name, precision)):02}.json").write_text(json.dumps(row), encoding="utf-8")
    assert verdict in possible(mine, other, unit), (row, check.numbers and check.numbers.sentence)
    assert (verdict == "compiled") == (name == PLANTED)


@pytest.mark.slow
def test_the_line_is_named_in_a_model_that_generates() -> None:
    torch.manual_seed(0)
    torch._dynamo.reset()
    generate, inputs = llama_generates()

    def wrong_silu(module: torch.fx.GraphModule, _: Any) -> Any:
        for node in module.graph.nodes:
            if node.target is torch.nn.functional.silu:
                node.target = torch.nn.functional.gelu
                node.kwargs = {}
        module.recompile()
        return module.forward

    def logits(input_ids: torch.Tensor) -> Any:
        return generate(input_ids=input_ids, output_logits=True, return_dict_in_generate=True).logits

    check = dynascope.explain(logits, backend=wrong_silu, check="where")(**inputs).check
    assert check.numbers.verdict == "compiled"
    assert check.numbers.origin is not None, check.numbers.origin_unknown
    assert check.numbers.origin.operation == "torch.nn.functional.silu"
    assert Path(check.numbers.origin.file or "").name == "activations.py"
