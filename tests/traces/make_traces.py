"""Writes the corpus of TORCH_TRACE logs in this folder: `python make_traces.py [NAME ...]`, with any torch from 2.9 on.

Each program runs in a process of its own; the log is stored without this machine's paths, without the long keys of caches and
without most of the records that only measure the compiler (`chromium_event`; compile_time and autotuning have all of them), and
packed.  Its MD5 sums are computed again, because paths are in the payloads.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
#: what the keys of caches are made of: as long as the rest of a log together
_COMPONENTS = re.compile(rb'"components": \[\s*(?:"(?:[^"\\]|\\.)*"(?:,\s*)?)*\s*\]')

#: what each log is of; where it imports nothing, `import torch` stands above it
PROGRAMS = {
    "breaks": """
def inner(x):
    torch._dynamo.graph_break()
    return x * 2

@torch.compile(backend="eager")
def f(x):
    y = inner(x.sin())
    if y.sum() > 0:
        y = y + 1
    return y.cos()

@torch.compile(backend="eager")
def loop(x):
    for i in range(2):
        print(end="")
    return x + 1

@torch.compile(backend="eager")
def wrong(x):
    x = x + 1
    raise ValueError("the user's own")

@torch.compile(backend="eager", fullgraph=True)
def strict(x):
    torch._dynamo.graph_break()

f(torch.ones(3))
loop(torch.ones(3))
for g in wrong, strict:
    try:
        g(torch.ones(3))
    except (ValueError, RuntimeError):
        pass
""",
    "recompiles": """
@torch.compile(backend="eager")
def f(x, n):
    return x * n + x.shape[0]

for size, n in ((3, 1), (4, 1), (5, 1.5), (6, True)):
    f(torch.ones(size), n)
with torch._dynamo.config.patch(recompile_limit=2):
    g = torch.compile(lambda x, by: x * by, backend="eager", dynamic=False)
    for i in range(4):
        g(torch.ones(2), i + 0.5)
""",
    "training": """
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
step = torch.compile(model, backend="aot_eager")
step(torch.ones(2, 4)).sum().backward()
""",
    "inductor": """
@torch.compile
def f(x, w):
    return (x @ w).relu() + 1

f(torch.ones(4, 4), torch.ones(4, 4, requires_grad=True)).sum().backward()
f(torch.ones(4, 4), torch.ones(4, 4))
""",
    "compiled_autograd": """
@torch.compile(backend="aot_eager")
def f(x):
    return (x * 2).sin().sum()

x = torch.ones(3, requires_grad=True)
with torch._dynamo.compiled_autograd._enable(torch.compile(backend="aot_eager")):
    f(x).backward()
""",
    "reset": """
def inner(x):
    torch._dynamo.graph_break()
    return x + 2

def f(x):
    x = x + 1
    x = inner(x)
    return x * 2

torch.compile(f, backend="eager")(torch.ones(3))
torch._dynamo.reset()
inner = torch.compile(inner, backend="eager")
f(torch.ones(3))
""",
    "errors": """
def broken(graph, inputs):
    raise RuntimeError("this backend never works")

@torch.compile(backend=broken)
def f(x):
    return x + 1

@torch.compile(backend="eager", fullgraph=True)
def g(x):
    return x.item() + 1

for h in f, g:
    try:
        h(torch.ones(1))
    except Exception:
        pass
""",
    "strict_export": """
class Net(torch.nn.Module):
    def forward(self, x):
        return x.relu() + 1

torch.export.export(Net(), (torch.ones(3),), strict=True)
""",
    "export": """
class Net(torch.nn.Module):
    def forward(self, x):
        return x.relu() + 1 if x.shape[0] > 3 else x

try:
    torch.export.export(Net(), (torch.ones(8),), dynamic_shapes=({0: torch.export.Dim("n", min=4)},), strict=False)
except Exception as error:
    print(error)
""",
    "aotinductor": """
class Net(torch.nn.Module):
    def forward(self, x):
        return x.relu() + 1

program = torch.export.export(Net(), (torch.ones(3),), strict=False)
torch._inductor.aoti_compile_and_package(program, package_path="net.pt2")
""",
    "ranks": """
import os, sys, torch
import torch.distributed as dist
import torch.multiprocessing as mp

def run(rank):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29711", RANK=str(rank), WORLD_SIZE="2")
    dist.init_process_group("gloo", rank=rank, world_size=2)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()))
    step = torch.compile(model, backend="aot_eager")
    step(torch.ones(2 + rank, 4)).sum().backward()
    alone = torch.compile(lambda x: x * 2, backend="eager")
    for size in range(2, 3 + rank):
        alone(torch.ones(size))
    dist.destroy_process_group()

if __name__ == "__main__":
    mp.spawn(run, nprocs=2)
""",
    "ddp": """
import os, torch
import torch.distributed as dist

os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29712", RANK="0", WORLD_SIZE="1")
dist.init_process_group("gloo", rank=0, world_size=1)
layers = [torch.nn.Linear(600, 600) for _ in range(4)]
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*layers), bucket_cap_mb=1)
torch.compile(model, backend="aot_eager")(torch.ones(2, 600)).sum().backward()
dist.destroy_process_group()
""",
    "threads": """
import threading, torch

def run(n):
    def f(x):
        torch._dynamo.graph_break()
        return x + n
    torch.compile(f, backend="eager")(torch.ones(n + 2))

threads = [threading.Thread(target=run, args=(n,)) for n in range(3)]
for t in threads:
    t.start()
for t in threads:
    t.join()
""",
    "compile_time": """
import threading, torch

class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(8)
    def forward(self, x):
        return x + torch.relu(self.norm(x))

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList(Block() for _ in range(4))
    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x

torch.compile(Net())(torch.ones(2, 8)).sum().backward()
torch._dynamo.reset()
torch.compile(Net())(torch.ones(2, 8))

def run(n):
    torch.compile(lambda x: x + n, backend="aot_eager")(torch.ones(n + 2))

threads = [threading.Thread(target=run, args=(n,)) for n in range(2)]
for t in threads:
    t.start()
for t in threads:
    t.join()
""",
    "autotuning": """
import torch
import torch._inductor.config

torch._inductor.config.freezing = True
tuned = torch.compile(torch.nn.Linear(16, 16), options={"max_autotune": True, "max_autotune_gemm_backends": "CPP,ATEN"})
with torch.no_grad():
    tuned(torch.ones(8, 16))
""",
}
#: their traces have all chromium events
WITH_EVENTS = ("compile_time", "autotuning")


def main(names: list[str]) -> None:
    import torch

    version = torch.__version__.partition("+")[0]
    for name in names or PROGRAMS:
        with tempfile.TemporaryDirectory() as folder:
            for number, log in enumerate(run(name, Path(folder))):
                target = HERE / f"{name}{number or ''}-{version}.log.gz"
                target.write_bytes(gzip.compress(stored(log, folder, 10**6 if name in WITH_EVENTS else 20), 9, mtime=0))
                print(target.name, target.stat().st_size)


def run(name: str, folder: Path) -> list[bytes]:
    """The logs that a program writes, one for each process, in the order of their names."""
    program = folder / f"{name}.py"
    text = PROGRAMS[name].lstrip()
    program.write_text(text if text.startswith("import ") else f"import torch\n\n{text}", encoding="utf-8")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("TORCH", "XDG"))}
    environment |= {
        "TORCH_TRACE": str(folder / "trace"), "TORCHINDUCTOR_CACHE_DIR": str(folder / "cache"),
        "TORCHINDUCTOR_COMPILE_THREADS": "1", "OMP_NUM_THREADS": "1",
    }  # fmt: skip
    subprocess.run([sys.executable, str(program)], env=environment, check=True, cwd=folder, timeout=600)
    return [file.read_bytes() for file in sorted((folder / "trace").iterdir())]


def stored(log: bytes, folder: str, most_events: int) -> bytes:
    """The log with other paths, and with the MD5 sums of its payloads with these paths."""
    import torch

    packages = os.path.dirname(os.path.dirname(torch.__file__))
    paths = {folder: "/home/user", packages: "/site-packages", sysconfig.get_path("stdlib"): "/python"}
    log = re.sub(rb"/tmp/torchinductor_\w+", b"/home/user/cache", log)
    for path, other in paths.items():
        for real in {path, os.path.realpath(path)}:
            log = log.replace(real.encode(), other.encode())
    events = 0
    out: list[bytes] = []
    for record in re.split(rb"\n(?!\t)", log.rstrip(b"\n")):
        head, *payload = record.split(b"\n\t")
        prefix, brace, content = head.partition(b"] {")
        metadata = json.loads(brace[2:] + content)
        events += "chromium_event" in metadata
        if "chromium_event" in metadata and events > most_events:
            continue
        text = _COMPONENTS.sub(b'"components": []', b"\n".join(payload))
        if "has_payload" in metadata:
            metadata["has_payload"] = hashlib.md5(text, usedforsecurity=False).hexdigest()
        out.append(b"\n\t".join([prefix + b"] " + json.dumps(metadata).encode(), *(text.split(b"\n") if payload else ())]))
    return b"\n".join(out) + b"\n"


if __name__ == "__main__":
    main(sys.argv[1:])
