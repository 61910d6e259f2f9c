"""`make gpu` and `make gpu-adopt`, without a GPU: only the name of the device and what it recorded are made up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from processes import python

from tools import gpu


def recorded(out: Path, **changes: Any) -> Path:
    """A folder as `make gpu` leaves it on a machine with a GPU."""
    (out / "traces").mkdir(parents=True)
    (out / "traces" / "inductor_cuda.json").write_text("{}")
    (out / "results_gpu.md").write_text("# On a device\n\n| what | clock |\n|---|---|\n| a call | 1 ms |\n")
    steps = {name: {"status": 0, "seconds": 1.5} for name in gpu.STEPS}
    facts = {
        "device": "cuda",
        "name": "Made-up GPU",
        "torch": "2.13.0",
        "python": "3.12.3",
        "date": "2026-01-02",
        "steps": steps,
    }
    (out / "gpu.json").write_text(json.dumps(facts | changes))
    return out


def checkout(folder: Path) -> Path:
    (folder / gpu.TRACES).mkdir(parents=True)
    (folder / gpu.PAGE).parent.mkdir(parents=True)
    return folder


def test_what_was_recorded_is_put_where_it_belongs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = checkout(tmp_path / "checkout")
    assert gpu.adopt(recorded(tmp_path / "gpu"), root) == 0
    assert (root / gpu.TRACES / "inductor_cuda.json").read_text() == "{}"
    page = (root / gpu.PAGE).read_text()
    assert "ran on Made-up GPU on 2026-01-02, with torch 2.13.0 and Python 3.12.3" in page
    assert "| a call | 1 ms |" in page
    assert all(f"| {name} | 1.5 s |" in page for name in gpu.STEPS)
    assert "run make test" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"device": "cpu"}, "it was a rehearsal"),
        ({"steps": {name: {"status": int(name == "tests"), "seconds": 1} for name in gpu.STEPS}}, "failed: tests"),
        ({"steps": {"traces": {"status": 0, "seconds": 1}}}, "it was interrupted"),
    ],
)
def test_nothing_is_adopted_where_not_all_went_well(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], changes: dict[str, Any], why: str
) -> None:
    root = checkout(tmp_path / "checkout")
    assert gpu.adopt(recorded(tmp_path / "gpu", **changes), root) == 1
    assert why in capsys.readouterr().out
    assert not [p for p in root.rglob("*") if p.is_file()]


def test_without_a_gpu_one_line_says_so(tmp_path: Path) -> None:
    done = python("-m", "tools.gpu", "record", "--out", tmp_path, folder=gpu.ROOT, CUDA_VISIBLE_DEVICES="", PATH="")
    assert done.returncode == 1
    assert done.stderr.startswith("gpu: torch finds no CUDA device here")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.slow
def test_steps_are_rehearsed_on_the_cpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The traces, and one of the tests; `make gpu ARGS="--device cpu"` rehearses all."""
    # the limits are for a machine with a GPU and nothing else to do
    steps = {"traces": (600, gpu.STEPS["traces"][1]), "tests": (600, (*gpu.STEPS["tests"][1], "-k", "report_is"))}
    monkeypatch.setattr(gpu, "STEPS", steps)
    assert gpu.record("cpu", tmp_path) == 0, "\n".join(p.read_text() for p in tmp_path.glob("*.log"))
    assert {p.name for p in (tmp_path / "traces").iterdir()} == {"inductor_cpu.json", "eager_cpu.json", "training_cpu.json"}
    assert json.loads((tmp_path / "gpu.json").read_text())["steps"].keys() == steps.keys()
    assert not (tmp_path / "site").exists()
