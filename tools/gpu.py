"""`make gpu` runs everything that needs a GPU; `make gpu-adopt` turns its results into files to commit.

    python -m tools.gpu record [--device cuda|cpu] [--out build/gpu]
    python -m tools.gpu adopt [--out build/gpu]

`record` needs this checkout and a Python with torch, but no network: the package is imported from the checkout, and packages
that are missing are taken from wheels in build/wheels.  It takes less than eight minutes and writes one folder.  With
`--device cpu` it is a rehearsal: the same steps, without parts that need a GPU; its folder cannot be adopted.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
OUT, WHEELS = ROOT / "build" / "gpu", ROOT / "build" / "wheels"
TRACES = Path("tests/unit/compiler/profiler_traces")
#: modules that the steps import besides torch -> their packages
PACKAGES = {"msgspec": "msgspec", "yaml": "pyyaml", "pytest": "pytest"}
#: step -> (time limit in seconds, arguments for Python; {out} is the output folder, {device} the device)
STEPS: dict[str, tuple[int, tuple[str, ...]]] = {
    "traces": (60, (f"{TRACES}/record.py", "--device", "{device}", "--out", "{out}/traces")),
    "tests": (150, ("-m", "pytest", "-q", "--noconftest", "-p", "no:cacheprovider", "tests/gpu")),
    "pages": (150, ("tests/gpu/pages.py", "{out}/pages")),
    "times": (120, ("tests/gpu/measure.py", "{out}/results_gpu.md")),
}
#: the page that `make gpu-adopt` writes
PAGE = Path("examples/reference/gpu.md")


def importable(site: Path) -> Path:
    """Make `site` a folder for sys.path from which `import dynascope` imports this checkout."""
    package = site / "dynascope"
    shutil.rmtree(site, ignore_errors=True)
    package.mkdir(parents=True)
    for part in (ROOT / "extension").iterdir():
        (package / part.name).symlink_to(part)
    for folder in ("compiler", "widgets"):
        (package / folder).symlink_to(ROOT / folder)
    return site


def missing() -> list[str]:
    """The packages that this Python lacks."""
    return [package for module, package in PACKAGES.items() if importlib.util.find_spec(module) is None]


def bring(packages: list[str], site: Path) -> str:
    """Install packages from their wheels into `site`; returns "", or a line that says what is missing."""
    if not packages:
        return ""
    names, version = " ".join(packages), "{}.{}".format(*sys.version_info[:2])
    if not list(WHEELS.glob("*.whl")):
        return (
            f"gpu: this Python lacks {names}: install them, or bring them along from a machine with a network: "
            f"pip download --only-binary=:all: --python-version {version} -d {WHEELS.relative_to(ROOT)} {names}"
        )
    install = ["-m", "pip", "install", "-q", "--no-index", "--find-links", str(WHEELS), "--target", str(site), *packages]
    if subprocess.call([sys.executable, *install]):
        return f"gpu: {WHEELS.relative_to(ROOT)} lacks what {names} need for Python {version}"
    return ""


def device_facts(device: str) -> dict[str, Any]:
    """Names and versions of the device, torch and Python; raises SystemExit if there is no such device."""
    import torch

    if device == "cuda" and not torch.cuda.is_available():
        raise SystemExit("gpu: torch finds no CUDA device here; `make gpu ARGS='--device cpu'` rehearses the steps without one")
    name = torch.cuda.get_device_name() if device == "cuda" else "CPU"
    python = "{}.{}.{}".format(*sys.version_info[:3])
    return {"device": device, "name": name, "torch": torch.__version__, "python": python, "date": time.strftime("%Y-%m-%d")}


def run_step(name: str, out: Path, device: str, site: Path) -> dict[str, Any]:
    """Run a step, with its output in `name`.log; returns its exit status (124: out of time) and seconds."""
    limit, arguments = STEPS[name]
    command = [sys.executable, *(a.format(out=out, device=device) for a in arguments)]
    tests = [str(ROOT / "tests" / folder) for folder in ("gpu", "benchmarks")]
    path = os.pathsep.join([str(site), *tests, *os.environ.get("PYTHONPATH", "").split(os.pathsep)])
    environ = {**os.environ, "PYTHONPATH": path, "DYNASCOPE_DEVICE": device, "DYNASCOPE_DRAWING_ERRORS": "raise"}
    start = time.monotonic()
    with open(out / f"{name}.log", "wb") as log:
        try:
            status = subprocess.run(command, cwd=ROOT, env=environ, stdout=log, stderr=log, timeout=limit).returncode
        except subprocess.TimeoutExpired:
            status = 124
    return {"status": status, "seconds": round(time.monotonic() - start, 1)}


def record(device: str, out: Path) -> int:
    """Run all steps, also after one has failed; `gpu.json` has the outcome of each.  Returns an exit status."""
    site = importable(out / "site")
    if problem := bring(missing(), site):
        print(problem)
        return 1
    facts = device_facts(device)
    print(
        f"gpu: {facts['name']}, torch {facts['torch']}; at most {sum(s for s, _ in STEPS.values()) // 60} minutes", flush=True
    )
    for folder in ("traces", "pages"):
        shutil.rmtree(out / folder, ignore_errors=True)
        (out / folder).mkdir()
    (out / "gpu.json").unlink(missing_ok=True)
    facts["steps"] = {}
    for name in STEPS:
        done = facts["steps"][name] = run_step(name, out, device, site)
        print(f"gpu: {name}: {outcome(done['status'], name)} ({done['seconds']} s)", flush=True)
        (out / "gpu.json").write_text(json.dumps(facts, indent=1), encoding="utf-8")
    shutil.rmtree(site)
    failed = [name for name, done in facts["steps"].items() if done["status"]]
    print(f"gpu: all is in {out}; to commit the results: make gpu-adopt" if not failed else f"gpu: failed: {', '.join(failed)}")
    return int(bool(failed))


def outcome(status: int, name: str) -> str:
    """The outcome of a step, in words."""
    if status == 0:
        return "ok"
    return f"{'ran out of time' if status == 124 else f'failed with status {status}'}, see {name}.log"


def adopt(out: Path, root: Path = ROOT) -> int:
    """Write the recorded traces and the page into the checkout; refused after a failed step, an interruption or a rehearsal."""
    if not (out / "gpu.json").exists():
        print(f"gpu: nothing was recorded in {out}: run `make gpu` where there is a GPU")
        return 1
    facts = json.loads((out / "gpu.json").read_text(encoding="utf-8"))
    if problem := refusal(facts):
        print(f"gpu: not adopted: {problem}")
        return 1
    written = [root / TRACES / trace.name for trace in sorted((out / "traces").glob("*_cuda.json"))]
    for target in written:
        shutil.copyfile(out / "traces" / target.name, target)
    (root / PAGE).write_text(page(facts, (out / "results_gpu.md").read_text(encoding="utf-8")), encoding="utf-8")
    for target in [*written, root / PAGE]:
        print(f"gpu: wrote {target.relative_to(root)}")
    print(f"gpu: look at the pages in {out / 'pages'}, then run make test")
    return 0


def refusal(facts: dict[str, Any]) -> str:
    """Why a recorded folder is not adopted, else ""."""
    if facts["device"] != "cuda":
        return "it was a rehearsal"
    if failed := [name for name, done in facts["steps"].items() if done["status"]]:
        return f"failed: {', '.join(failed)}"
    return "" if set(facts["steps"]) == set(STEPS) else "it was interrupted"


def page(facts: dict[str, Any], table: str) -> str:
    """The reference page: what ran, where, and the table."""
    rows = [f"| {name} | {done['seconds']} s |" for name, done in facts["steps"].items()]
    return "\n".join([
        "# On a GPU", "",
        f"`make gpu` ran on {facts['name']} on {facts['date']}, with torch {facts['torch']} and Python {facts['python']}.", "",
        "| step | took |", "|---|---|", *rows, "", *table.splitlines()[2:], "",
    ])  # fmt: skip


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.gpu", description=__doc__.split("\n\n")[0])
    parser.add_argument("what", choices=("record", "adopt"))
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--out", type=Path, default=OUT)
    chosen = parser.parse_args(arguments)
    out = chosen.out.resolve()
    return record(chosen.device, out) if chosen.what == "record" else adopt(out)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
