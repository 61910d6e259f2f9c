"""What recording costs: process CPU seconds, interleaved, the least of several rounds, as ratios to plain torch.compile.

    python tests/benchmarks/bench_capture.py [--rounds N] [--quick] [--models]

Prints a table and writes it to tests/benchmarks/results_capture.md; with --models, which measures large models with their
reports, to results_models.md.  Only ratios of one run mean anything: Dynamo
itself is superlinear in the number of breaks, and machines differ.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import io
import linecache
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch._logging._internal as torch_logging
from models import MODELS, bert

from dynascope.compiler.builder.events import Event, RecordingFacts
from dynascope.compiler.builder.report_builder import build_report
from dynascope.compiler.capture.recording import observe
from dynascope.compiler.capture.torch_private.caches import interned_strings
from dynascope.widgets.model import view_model
from dynascope.widgets.render.page import to_html

HERE = Path(__file__).parent
TOOLS = ("plain", "observe", "TORCH_TRACE", "explain", "depyf")


def breaking(breaks: int, name: str = "made") -> Callable[[torch.Tensor], torch.Tensor]:
    """A function with this many graph breaks in a row."""
    lines = [f"def {name}(x):"]
    for i in range(breaks):
        lines += [f"    x = x + {i}", "    torch._dynamo.graph_break()"]
    text = "\n".join([*lines, "    return x"])
    linecache.cache[f"<{name}>"] = (len(text), None, text.splitlines(keepends=True), f"<{name}>")
    space: dict[str, Any] = {"torch": torch}
    exec(compile(text, f"<{name}>", "exec"), space)
    made: Callable[[torch.Tensor], torch.Tensor] = space[name]
    return made


Work = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any], str]


def works(quick: bool) -> dict[str, Callable[[], Work]]:
    """Name -> maker of (function or module, arguments, keyword arguments, backend)."""

    def generate() -> Work:
        import transformers

        config = transformers.GPT2Config(
            n_embd=32, n_layer=1, n_head=2, vocab_size=50, n_positions=32, bos_token_id=0, eos_token_id=1
        )  # fmt: skip
        model = transformers.GPT2LMHeadModel(config).eval()
        arguments = {"max_new_tokens": 2, "do_sample": False, "pad_token_id": 0}
        return model.generate, (torch.randint(0, 50, (1, 4)),), arguments, "eager"

    found: dict[str, Callable[[], Work]] = {
        "one break": lambda: (breaking(1), (torch.ones(4),), {}, "eager"),
        "30 breaks": lambda: (breaking(30), (torch.ones(4),), {}, "eager"),
        "BERT, 2 layers": lambda: (*bert(2)(), "eager"),
    }
    found["generate()"] = generate
    if not quick:
        found["one break, inductor"] = lambda: (breaking(1), (torch.ones(64, 64),), {}, "inductor")
    return found


@contextlib.contextmanager
def tool(name: str, folder: Path) -> Iterator[None]:
    if name == "observe":
        with observe():
            yield
    elif name == "TORCH_TRACE":
        handler = torch_logging.LazyTraceHandler(str(folder))
        handler.setFormatter(torch_logging.TorchLogsFormatter(trace=True))
        torch_logging.trace_log.addHandler(handler)
        try:
            yield
        finally:
            torch_logging.trace_log.removeHandler(handler)
            handler.close()
    elif name == "depyf":
        import depyf

        with depyf.prepare_debug(str(folder)):
            yield
    else:
        yield


def first_call(name: str, make: Callable[[], Work], folder: Path) -> float:
    """CPU seconds of the first call; what a tool writes at its end does not count."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    target, arguments, keywords, backend = make()
    gc.collect()
    with contextlib.redirect_stdout(io.StringIO()), tool(name, folder), torch.no_grad():
        if name == "explain":
            start = time.process_time()
            torch._dynamo.explain(target)(*arguments, **keywords)
        else:
            compiled = torch.compile(target, backend=backend)
            start = time.process_time()
            compiled(*arguments, **keywords)
        return time.process_time() - start


def costs(rounds: int, quick: bool) -> list[str]:
    lines = ["| work | plain s | " + " | ".join(TOOLS[1:]) + " |", "| --- " * (len(TOOLS) + 1) + "|"]
    for work, make in works(quick).items():
        least = dict.fromkeys(TOOLS, float("inf"))
        for _ in range(rounds):
            for name in TOOLS:
                with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    try:
                        least[name] = min(least[name], first_call(name, make, Path(folder)))
                    except Exception as error:
                        print(f"{name} fails on {work}: {type(error).__name__}: {str(error).splitlines()[0]}")
        ratios = " | ".join(f"{least[n] / least['plain']:.2f}" if least[n] < 1e9 else "fails" for n in TOOLS[1:])
        lines.append(f"| {work} | {least['plain']:.3f} | {ratios} |")
        print(lines[-1], flush=True)
    return lines


def model_costs(rounds: int) -> list[str]:
    """CPU seconds of the first calls of large models, plain and recorded with the report, and of looking at a report."""
    lines = ["| model | plain s | with its report | str s | view s | page s |", "| --- | --- | --- | --- | --- | --- |"]
    ratios = []
    for name, make in MODELS.items():
        try:
            model, arguments, keywords = make()
        except ImportError as error:
            lines.append(f"| {name} | {error.name} is not installed | | | | |")
            continue
        taken: dict[str, list[float]] = {"plain": [], "observe": [], "str": [], "view": [], "page": []}
        for _ in range(rounds + 1):
            for recording in (None, observe()):
                torch._dynamo.reset()
                compiled = torch.compile(model, backend="eager")
                gc.collect()
                start = time.process_time()
                with recording or contextlib.nullcontext(), torch.no_grad():
                    compiled(*arguments, **keywords)
                taken["plain" if recording is None else "observe"].append(time.process_time() - start)
            assert recording is not None
            for what, look in (("str", str), ("view", view_model), ("page", to_html)):
                start = time.process_time()
                look(recording.report)
                taken[what].append(time.process_time() - start)
        plain, recorded, *looked = (min(times[1:]) for times in taken.values())  # the first round warms up
        ratios.append(recorded / plain)
        lines.append(f"| {name} | {plain:.2f} | {ratios[-1]:.3f} | {' | '.join(f'{seconds:.2f}' for seconds in looked)} |")
        print(lines[-1], flush=True)
    median, worst = statistics.median(ratios), max(ratios)
    kept = {True: "kept", False: "not kept"}
    return [
        *lines,
        "",
        f"Median {median:.3f} (limit 1.05: {kept[median <= 1.05]}), worst {worst:.3f} (limit 1.10: {kept[worst <= 1.10]}).",
        "",
        f"Once in a process: {once():.3f} s (limit 0.15 s).",
    ]


_ONCE = """
import time, torch
torch.compile(lambda x: x + 1, backend="eager")(torch.ones(3))
taken = []
for number in (2, 3):
    start = time.process_time()
    from dynascope.compiler.capture.recording import observe
    with observe() as recording:
        torch.compile(lambda x: x + number, backend="eager")(torch.ones(3))
    recording.report.headline()
    taken.append(time.process_time() - start)
print(taken[0] - taken[1])
"""


def once() -> float:
    """CPU seconds by which the first recording of a process, with imports, takes longer than the second.

    Its modules are compiled, as those of an installed package are.
    """
    command, environment = [sys.executable, "-c", _ONCE], {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    run = partial(subprocess.run, command, check=True, capture_output=True, text=True, env=environment)
    return min(float(run().stdout) for _ in range(4))  # the first one compiles them


def steady() -> str:
    """Ratio of a compiled call's time after a recording to before it: nothing of ours is left in the way."""
    torch._dynamo.reset()
    compiled, x = torch.compile(breaking(1), backend="eager"), torch.ones(4)
    compiled(x)

    def least() -> float:
        best = float("inf")
        for _ in range(30):
            start = time.perf_counter()
            for _ in range(200):
                compiled(x)
            best = min(best, time.perf_counter() - start)
        return best

    before = least()
    with observe():
        torch.compile(breaking(2, "other"), backend="eager")(x)
    after = least()
    return f"Time of a compiled call after a recording to before it: {after / before:.2f}"


def recorded(functions: int) -> list[Event]:
    """The events of so many functions with ten breaks each."""
    torch._dynamo.reset()
    made = [breaking(10, f"part{i}") for i in range(functions)]
    recording = observe()
    with recording:
        for function in made:
            torch.compile(function, backend="eager")(torch.ones(4))
        return list(recording.events)


def replay(functions: tuple[int, ...]) -> list[tuple[int, float]]:
    """For each number of functions (breaks, seconds) of turning the recorded events into a Report."""
    events = [recorded(n) for n in functions]
    strings = interned_strings()
    breaks, least = [0] * len(functions), [float("inf")] * len(functions)
    for _ in range(15):
        for i, some in enumerate(events):
            gc.collect()
            start = time.process_time()
            report = build_report(some, RecordingFacts(strings=strings))
            least[i] = min(least[i], time.process_time() - start)
            breaks[i] = report.summary.breaks
            del report
    return list(zip(breaks, least, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="leave out Inductor")
    parser.add_argument("--models", action="store_true", help="measure large models with their reports instead")
    chosen = parser.parse_args()
    os.environ["HF_HUB_OFFLINE"] = "1"
    if chosen.models:
        torch.set_num_threads(1)  # threads that wait for work use CPU seconds, too
        told = [
            "# What recording large models costs",
            "",
            f"torch {torch.__version__}, Python {platform.python_version()}, one thread, backend eager; the least of",
            f"{chosen.rounds} interleaved rounds of process CPU seconds: the first call, and as a ratio to it the recorded",
            "first call with its report; then the first `str(report)`, the view's model, and a saved page.",
            "",
            *model_costs(chosen.rounds),
            "",
        ]
        (HERE / "results_models.md").write_text("\n".join(told), encoding="utf-8")
        return
    table = costs(chosen.rounds, chosen.quick)
    few, many = replay((10, 30))
    told = [
        "# What recording costs",
        "",
        f"torch {torch.__version__}, Python {platform.python_version()}, CPU; the least of {chosen.rounds} rounds of process",
        "CPU seconds, first call, as ratios to plain `torch.compile` in the same run. `explain` compiles with no backend;",
        "depyf writes more at its end.",
        "",
        *table,
        "",
        steady(),
        "",
        f"Events to Report: {few[0]} breaks in {few[1]:.3f} s, {many[0]} breaks in {many[1]:.3f} s: "
        f"{many[1] / few[1]:.2f} times.",
        "",
    ]
    (HERE / "results_capture.md").write_text("\n".join(told), encoding="utf-8")
    print("\n".join(told))


if __name__ == "__main__":
    main()
