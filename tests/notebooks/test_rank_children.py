"""Ranks that others start: processes of multiprocessing, and ipyparallel's engines."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import ipyparallel
import pytest

import dynascope
from dynascope.engines import last_record

SPAWN = """\
import os, sys, torch, torch.distributed as dist, torch.multiprocessing as mp

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
    os.chdir("..")
    mp.spawn(train, args=(sys.argv[1],), nprocs=2)
"""
FORK = """\
import multiprocessing, os, sys, torch
before = [m for m in sys.modules if m.startswith("dynascope")]
import dynascope
import torch._dynamo

def train(rank):
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2")  # as accelerate.notebook_launcher does

    @torch.compile(backend="eager")
    def f(x):
        return x * 2 if rank == 0 else x * 3

    f(torch.ones(3))
    if rank == 1:
        raise ValueError("wrong")

with dynascope.record_ranks() as job:
    processes = [multiprocessing.get_context("fork").Process(target=train, args=(n,)) for n in range(2)]
    for p in processes: p.start()
    for p in processes: p.join()
    try:
        job.report
    except LookupError as error:
        assert "after the block" in str(error)
    else:
        raise AssertionError
assert "DYNASCOPE_RANKS" not in os.environ
job.report.save("job.json")
print("loaded by torch:", *before)
print(job.report)
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """An environment in which torch finds the entry point of this checkout, installed or not."""
    points = importlib.metadata.entry_points(group="torch.backends", name="dynascope")
    variables = {**os.environ, "OMP_NUM_THREADS": "1"}
    if not points:
        info = tmp_path / "site" / "dynascope_children-0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: dynascope-children\nVersion: 0\n")
        (info / "entry_points.txt").write_text("[torch.backends]\ndynascope = dynascope.autoload:torch_imported\n")
        variables["PYTHONPATH"] = str(info.parent)
    return variables


def run(folder: Path, program: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    (folder / "program.py").write_text(program)
    return subprocess.run(
        [sys.executable, "program.py", *arguments], cwd=folder, env=variables, capture_output=True, text=True, timeout=180
    )  # fmt: skip


def test_spawned_processes_record_themselves(tmp_path: Path, environment: dict[str, str]) -> None:
    done = run(tmp_path, SPAWN, str(tmp_path), **environment, DYNASCOPE_RANKS="ranks")
    assert done.returncode == 0, done.stderr
    report = dynascope.load(tmp_path / "ranks")
    assert [(r.rank, r.status) for r in report.ranks] == [(0, "finished"), (1, "finished")]
    difference = report.differences[0]
    assert (difference.kind, difference.line, difference.place_of) == ("break", 11, "group")
    assert report.groups[1].report.breaks[0].source.strip() == 'print("only here")'


def test_forked_processes_of_a_notebook(tmp_path: Path, environment: dict[str, str]) -> None:
    """torch loads the entry point alone where nothing is to be recorded."""
    environment.pop("DYNASCOPE_RANKS", None)
    done = run(tmp_path, FORK, **environment)
    assert done.returncode == 0, done.stderr
    loaded = {"dynascope", "dynascope.autoload", "dynascope.compiler", "dynascope.compiler.lowerings"}
    assert {*done.stdout.splitlines()[0].removeprefix("loaded by torch: ").split()} == loaded
    report = dynascope.load(tmp_path / "job.json")
    assert [r.status for r in report.ranks] == ["finished", "failed"]
    assert report.rank(1).error == "ValueError: wrong"
    assert report.differences[0].kind in ("constant", "graph")
    assert "rank 1 failed: ValueError: wrong" in done.stdout


# -- engines ------------------------------------------------------------------------------------------


class Engines:
    """Stands for a client of engines that all have the answers of this process, the last one excepted."""

    def __getitem__(self, which: slice) -> Engines:
        return self

    def apply_sync(self, function: Any) -> list[Any]:
        return [function(), function(), None]


def test_engines_without_a_rank_are_numbered() -> None:
    import torch

    def f(x: Any) -> Any:
        return x + 1

    dynascope.explain(f, backend="eager")(torch.ones(2))
    report = dynascope.gather(Engines())
    assert [(r.rank, r.status) for r in report.ranks] == [(0, "finished"), (1, "finished"), (2, "missing")]
    assert report.report_of(1).summary.graphs == 1


def test_engines_without_a_report_are_an_error() -> None:
    with pytest.raises(LookupError, match="no engine has a report yet"):
        dynascope.gather(type("Client", (), {"apply_sync": lambda self, function: [None]})())


CELL = """\
import torch, dynascope
%load_ext dynascope
get_ipython().run_cell_magic("compile", "--backend eager", '''
def f(x):
    x = x + 1
    if engine == 1:
        print("here")
    return x * 2
f(torch.ones(3))
''')
"""


def test_compile_in_ipyparallels_engines(tmp_path: Path) -> None:
    with ipyparallel.Cluster(n=2, log_level=40, profile_dir=str(tmp_path / "profile")) as client:
        client.wait_for_engines(2, timeout=600)
        view = client[:]
        view.scatter("engine", [0, 1], flatten=True, block=True)
        view.execute(CELL, block=False).get(120)  # a blocking one also waits for output, which can get lost
        report = dynascope.gather(client)
    assert len(report.groups) == 2
    difference = report.differences[0]
    assert (difference.kind, difference.source.strip()) == ("break", 'print("here")')
    assert "In[" in str(report)


def test_last_record_is_plain_data() -> None:
    import json

    json.dumps(last_record())


IMPORTS = """\
import multiprocessing, sys, dynascope
assert "torch" not in sys.modules

def recorders(): return [f for f in sys.meta_path if type(f).__module__.startswith("dynascope")]

def child():
    class Worker(multiprocessing.get_context("fork").Process):
        def run(self):
            import os, torch
            os.environ.update(RANK="0", WORLD_SIZE="1")
            torch.compile(lambda x: x + 1, backend="eager")(torch.ones(1))
            raise ValueError("wrong")
    return Worker()

before = recorders()
with dynascope.record_ranks() as job:
    process = child()
    process.start()
    process.join()
    import torch
assert recorders() == before
print(job.report.headline())
"""


def test_the_notebook_itself_is_not_recorded_and_children_of_any_class_are(tmp_path: Path, environment: dict[str, str]) -> None:
    done = subprocess.run([sys.executable, "-c", IMPORTS], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "1 graph" in done.stdout
