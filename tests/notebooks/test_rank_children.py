"""Ranks that `torch.multiprocessing` starts in the block of `record_ranks`."""

from __future__ import annotations

from pathlib import Path

from processes import printed_by

import dynascope

SPAWN = """\
import os, sys, torch, torch.distributed as dist, dynascope
from torch.multiprocessing import spawn

def train(rank, folder):
    os.chdir("..")
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)

    @torch.compile(backend="eager")
    def f(x):
        x = x + 1
        if dist.get_rank() == 1:
            print("only here")
        return x * 2

    f(torch.ones(3))
    dist.destroy_process_group()

if __name__ == "__main__":
    with dynascope.record_ranks("ranks"):
        os.chdir("..")
        spawn(train, args=(sys.argv[1],), nprocs=2)
"""
#: as `accelerate.notebook_launcher` starts ranks: forks of a process that has torch, with RANK in their environment
FORK = """\
import glob, os, time, torch, torch.multiprocessing as mp
from torch.distributed.launcher.api import LaunchConfig, elastic_launch
import dynascope

def train(times):
    rank = int(os.environ["RANK"])

    @torch.compile(backend="eager")
    def f(x):
        return x * 2 if rank == 0 else x * times

    f(torch.ones(3))
    if rank == 1:
        while not any("l_x_ * 2" in open(file).read() for file in glob.glob("ranks/0-*")):
            time.sleep(0.05)  # when a rank fails, the launcher ends the others
        raise ValueError("wrong")

before = mp.start_processes.__code__
launched = elastic_launch(LaunchConfig(min_nodes=1, max_nodes=1, nproc_per_node=2, start_method="fork", rdzv_backend="c10d",
                                       rdzv_endpoint="localhost:0", max_restarts=0), train)
try:
    with dynascope.record_ranks("ranks") as job:
        try:
            job.report
        except LookupError as error:
            assert "after the block" in str(error)
        else:
            raise AssertionError
        launched(3)
except Exception as error:
    print(type(error).__name__)
assert mp.start_processes.__code__ is before
job.report.save("job.json")
print(job.report)
"""


def run(folder: Path, program: str, *arguments: str) -> str:
    (folder / "program.py").write_text(program)
    return printed_by("program.py", *arguments, folder=folder, OMP_NUM_THREADS="1")


def test_spawned_processes(tmp_path: Path) -> None:
    run(tmp_path, SPAWN, str(tmp_path))
    report = dynascope.load(tmp_path / "ranks")
    assert [(r.rank, r.status) for r in report.ranks] == [(0, "finished"), (1, "finished")]
    difference = report.differences[0]
    assert (difference.kind, difference.line, difference.place_of) == ("break", 12, "group")
    assert report.groups[1].report.breaks[0].source.strip() == 'print("only here")'


def test_forked_processes_of_a_launcher(tmp_path: Path) -> None:
    printed = run(tmp_path, FORK)
    assert printed.startswith("ChildFailedError")
    report = dynascope.load(tmp_path / "job.json")
    assert [r.rank for r in report.ranks] == [0, 1]
    assert report.rank(1).error == "ValueError: wrong"
    assert report.differences[0].kind in ("constant", "graph")
    assert "rank 1 failed: ValueError: wrong" in printed
