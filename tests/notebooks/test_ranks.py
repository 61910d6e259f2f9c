"""Real jobs of two and four processes under torchrun (gloo, CPU): which rank differs, where and why; one dies or hangs."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import python
from warm_ranks import Jobs

import dynascope
from dynascope.compiler.ranks import RanksReport
from dynascope.widgets.model import view_model

JOB = """\
import os, signal, sys, time
import torch, torch.distributed as dist
from datetime import timedelta
from pathlib import Path

mode = sys.argv[1]
dist.init_process_group("gloo")
rank = dist.get_rank()
group = dist.new_group(timeout=timedelta(seconds=5)) if mode == "hang" else None


class Net(torch.nn.Linear):
    def forward(self, x):
        x = super().forward(x)
        if mode == "print" and dist.get_rank() == 0:
            print("first rank")
        return x


@torch.compile(backend="aot_eager")
def loss(x):
    return (x * x).sum() + dist.get_rank()


def written(folder, *texts):
    "Whether the file of rank 1 has these texts: what is compiled, and the place where this waits."
    return any(all(text in file.read_text() for text in texts) for file in Path(folder).glob("1-*.rank"))


torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(Net(8, 8))
model = torch.compile(model, backend="aot_eager")
loss(model(torch.ones(4, 8))).backward()
if mode == "killed" and rank == 1:
    while not written("killed", '"steps":[["', '"source":"time.sleep(3)"'):
        time.sleep(3)
    os.kill(os.getpid(), signal.SIGKILL)
if mode == "hang" and rank == 1:
    time.sleep(60)
dist.all_reduce(torch.ones(1), group=group)
dist.destroy_process_group()
"""


SHARDED = """\
import sys
import torch, torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

mode, odd = sys.argv[1:]
dist.init_process_group("gloo")
mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("shard",))


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = torch.nn.LayerNorm(8), torch.nn.Linear(8, 16), torch.nn.Linear(16, 8)

    def forward(self, x):
        heads = self.norm(x).unflatten(-1, (2, 4)).transpose(1, 2)
        x = x + torch.nn.functional.scaled_dot_product_attention(heads, heads, heads).transpose(1, 2).flatten(2)
        return x + self.down(torch.relu(self.up(self.norm(x))))


torch.manual_seed(0)
model = torch.nn.Sequential(Block(), Block())
for block in model:
    if mode == "tensor":
        from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

        parallelize_module(block, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})
    else:
        from torch.distributed.fsdp import fully_shard

        fully_shard(block, mesh=mesh)
if dist.get_rank() == 1 and odd == "odd":
    model[1].norm.eps = 1e-3
torch.compile(model, backend="aot_eager")(torch.ones(2, 4, 8)).sum().backward()
dist.destroy_process_group()
"""


#: name -> number of processes, and arguments of `dynascope run`; several jobs run at once
WORKING = {
    "killed": (2, "--ranks-dir", "killed", "job.py", "killed"),
    "hang": (2, "-o", "hang.json", "job.py", "hang"),
    "alike": (2, "--expect", "ranks=alike", "-o", "alike.json", "job.py", "alike"),
    "tensor parallel": (2, "-o", "tp.json", "sharded.py", "tensor", "odd"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("job")
    (folder / "job.py").write_text(JOB)
    (folder / "sharded.py").write_text(SHARDED)
    return folder


@pytest.fixture(scope="module")
def jobs(folder: Path) -> Iterator[Jobs]:
    jobs = Jobs(folder, WORKING)
    yield jobs
    jobs.close()


def own_output(printed: str) -> str:
    """What a job printed, without the lines that torch 2.9's gloo prints."""
    return "".join(line for line in printed.splitlines(keepends=True) if not line.startswith("[Gloo] Rank"))


def line_of(text: str) -> int:
    return next(n for n, line in enumerate(JOB.splitlines(), 1) if text in line)


def test_equal_ranks_are_one_line(folder: Path, jobs: Jobs) -> None:
    done = jobs["alike"]
    assert done.returncode == 0, done.stderr
    assert own_output(done.stdout).startswith("2 ranks alike: 2 graphs · ")
    report = dynascope.load(folder / "alike.json")
    assert isinstance(report, RanksReport)
    assert report.alike
    assert [group.ranks for group in report.groups] == [[0, 1]]
    assert [r.status for r in report.ranks] == ["finished", "finished"]
    assert "loss" in done.stdout  # its graph has the number of the rank as a constant
    assert report.groups[0].rank_constants


def test_a_print_on_one_rank_is_named_under_the_users_own_torchrun(folder: Path, jobs: Jobs) -> None:
    done = python(
        "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "dynascope", "run", "--expect",
        "ranks=alike", "-o", "print.json", "job.py", "print", folder=folder, OMP_NUM_THREADS="1", PYTHONWARNINGS="",
        TORCHINDUCTOR_COMPILE_THREADS="1",
    )  # fmt: skip
    assert done.stdout.count("2 ranks: no two are alike") == 1, done.stdout + done.stderr
    difference = dynascope.load(folder / "print.json").differences[0]
    assert (difference.kind, difference.step, difference.place_of) == ("break", 0, "reference")
    assert Path(difference.file).name == "job.py"
    assert difference.line == line_of('print("first rank")')
    assert done.returncode == 1
    assert "--expect: expected ranks=alike, but 2 ranks" in done.stderr


def test_a_rank_that_is_killed_has_said_what_it_compiled(folder: Path, jobs: Jobs) -> None:
    done = jobs["killed"]
    assert done.returncode == 1  # torchrun then ends the other rank, which may have failed already and reported
    report = dynascope.load(folder / "killed")
    assert report.rank(1).status == "no end"
    assert line_of("while not written") <= report.rank(1).at[-1].line <= line_of("signal.SIGKILL")
    assert report.groups[report.rank(1).group].steps[0].name == "forward"
    assert "rank 1 did not end" in str(report)


def test_a_rank_that_hangs_is_named_with_its_place(folder: Path, jobs: Jobs) -> None:
    """Rank 0 waits for an all-reduce and times out; rank 1 sleeps."""
    done = jobs["hang"]
    assert done.returncode == 1
    report = dynascope.load(folder / "hang.json")
    hanging = report.rank(1)
    assert hanging.status == "no end"
    assert hanging.at[-1].line == line_of("time.sleep(60)")
    assert hanging.at_seconds > 1.5
    assert (report.rank(0).status, len(report.groups)) == ("failed", 1)
    assert f"job.py:{line_of('time.sleep(60)')} `time.sleep(60)`" in " ".join(done.stdout.split())


def test_tensor_parallel_graphs_have_their_collectives(folder: Path, jobs: Jobs) -> None:
    """All-reduces of the mesh, in the forward and the backward; the constant of one rank's norm is the first difference."""
    done = jobs["tensor parallel"]
    assert done.returncode == 0, done.stderr
    report = dynascope.load(folder / "tp.json")
    collectives = [c for step in report.groups[0].steps for c in step.collectives]
    assert {c.kind for c in collectives} == {"all_reduce"}
    assert {c.backward for c in collectives} == {False, True}
    assert all(c.ranks == [0, 1] for c in collectives)
    assert [d.kind for d in report.differences] == ["constant"]
    assert "1e-05" in (report.differences[0].reference or "")
    graph = report.groups[0].report.graphs[0]
    subclasses: list[str | None] = ["DTensor(S(0))", "DTensor(S(0))", "DTensor(S(1))", "DTensor(R)"]
    if str(report.versions["torch"]).startswith("2.9"):  # its graphs do not name the class of a tensor
        subclasses = [None] * 4
    assert [n.subclass for n in graph.nodes if re.search("_0_modules_(up|down)_param", n.name)] == subclasses
    parts = {part["key"]: part["body"] for part in view_model(report.groups[0].report)["details"][graph.id]["parts"]}
    up = f"f32[16, 8] cpu {subclasses[0] or ''}".strip()
    assert ["l_fn_modules_0_modules_up_parameters_weight_", up, "input", ""] in parts["ends"]
    assert parts["collectives"][0][:2] == ["all_reduce(sum) over all ranks of f32[2, 4, 8]", "forward"]


def test_sharded_ranks_are_alike(folder: Path) -> None:
    with contextlib.closing(Jobs(folder, {"fsdp": (2, "-o", "fsdp.json", "sharded.py", "fsdp", "even")})) as jobs:
        done = jobs["fsdp"]
    assert done.returncode == 0, done.stderr
    assert own_output(done.stdout).startswith("2 ranks alike: ")
    report = dynascope.load(folder / "fsdp.json")
    assert report.alike
    own = report.groups[0].report
    (hook,) = own.wrapper_breaks
    assert own.breaks == []
    assert Path(hook.file).parent.name == "_fully_shard"
    assert f"FSDP's own code has 1 graph break ({Path(hook.file).name}:{hook.line}):" in own.notes[0]
