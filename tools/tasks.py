"""Runs the tasks of `make`: checks the machine, makes the environment ready, then runs the task in it.

Standard library only; parses on Python 3.8, so that a Python that is too old gets a message and not a syntax error.

    python3 -m tools.tasks demo|check|test|test-all|test-real|test-torch|test-python|lab|bench|docs|pins [arguments]
"""

from __future__ import annotations

import copy
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO

from tools import browser, environment, frontend, preflight

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
TORCH = os.environ.get("TORCH") or environment.TORCH
TOUR = "examples/tour.ipynb"
#: pytest's marker expression for the tests of `make check`
FAST = "not slow and not packaging"


class Work:
    """The environment of one task: runs commands with its Python and its variables."""

    def __init__(self, task: str, venv: Path) -> None:
        self.task = task
        self.venv = venv
        self.python = str(environment.interpreter(venv))
        self.environ = environment.isolated(dict(os.environ), BUILD, venv)
        #: where commands print; None: to the terminal
        self.output: IO[str] | None = None

    def call(self, *command: str) -> int:
        """Run a command in the project's root; returns its exit status."""
        return subprocess.call(list(command), cwd=str(ROOT), env=self.environ, stdout=self.output, stderr=self.output)

    def py(self, *arguments: str) -> int:
        """Run the environment's Python."""
        return self.call(self.python, *arguments)


def prepare(task: str) -> Work:
    """Check the machine and make the environment ready; raises SystemExit if something needed is missing."""
    separate = task in ("test-torch", "test-python")
    name = "torch-{}-python-{}.{}".format(TORCH, *sys.version_info[:2])
    venv = BUILD / name / "venv" if separate else ROOT / ".venv"
    ready = environment.is_ready(venv, TORCH)
    findings = preflight.check({"test-torch": "bench", "test-python": "test"}.get(task, task), installed=ready)
    for finding in findings:
        print(finding, flush=True)
    if any(f.fatal for f in findings):
        raise SystemExit(1)
    BUILD.mkdir(exist_ok=True)
    venv.parent.mkdir(parents=True, exist_ok=True)
    with lock(BUILD / "setup.lock"):
        environment.ensure(venv, TORCH)
    work = Work(task, venv)
    refusal = torch_refusal(work.python) if separate else None
    if refusal:
        raise SystemExit(f"torch {TORCH} does not compile under this Python, so the tests cannot run: {refusal}")
    if not preflight.can_compile():
        # this variable is the default of the setting `backend`; only tasks that can run without Inductor get here
        work.environ.setdefault("DYNASCOPE_BACKEND", "aot_eager")
    return work


def torch_refusal(python: str) -> str | None:
    """Why the torch of an environment refuses to compile at all, in its own words (2.9 under Python 3.14); else None."""
    done = subprocess.run([python, "-c", "import torch; torch.compile()"], stderr=subprocess.PIPE, text=True)
    return done.stderr.strip().splitlines()[-1] if done.returncode else None


class lock:
    """A lock between processes: if two `make`s run at once, the second waits until the first has installed."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> None:
        self.file = open(str(self.path), "w")
        try:
            import fcntl

            fcntl.flock(self.file, fcntl.LOCK_EX)
        except ImportError:  # Windows has no fcntl: two `make`s at once are not handled there
            pass

    def __exit__(self, *details: object) -> None:
        self.file.close()


def demo(work: Work, arguments: list[str]) -> int:
    """Execute the tour; prints its reports and the paths of the files."""
    status = work.py("-m", "tools.demo", TOUR, str(BUILD / "demo"), *arguments)
    if status == 0:
        print("\nTo try it yourself, open the tour in JupyterLab:\n\n    make lab\n", flush=True)
    return status


def lab(work: Work, arguments: list[str]) -> int:
    """Start JupyterLab with the tour open; the address that it prints also leads to the tour."""
    tour = "--LabApp.default_url=/lab/tree/" + TOUR
    command = [work.python, "-m", "jupyter", "lab", *root_flags(), tour, *arguments]
    os.chdir(str(ROOT))
    if os.name == "posix":
        # replace this process, so that JupyterLab gets the signals
        os.execve(work.python, command, work.environ)
    return work.call(*command)


def root_flags() -> list[str]:
    """The flag without which Jupyter refuses to run as root (in a container, say), if this is root."""
    as_root = hasattr(os, "geteuid") and os.geteuid() == 0
    return ["--allow-root"] if as_root else []


def docs(work: Work, arguments: list[str]) -> int:
    """Execute the tutorials, and write them as a small site that works offline."""
    return work.py("-m", "tools.docs", "examples", str(BUILD / "docs"), *arguments)


def bench(work: Work, arguments: list[str]) -> int:
    """Run all benchmarks in tests/benchmarks."""
    programs = sorted((ROOT / "tests" / "benchmarks").glob("bench_*.py"))
    if not programs:
        print("no benchmarks yet: tests/benchmarks/bench_*.py")
    return max([work.py(str(p), *arguments) for p in programs], default=0)


def pins(work: Work, arguments: list[str]) -> int:
    """Write the constraints file."""
    return work.py("-m", "tools.generated", "pins")


def checks(work: Work) -> list[str]:
    """Run all checks that are not tests of pytest; returns the names of those that failed."""
    commands = [
        ("ruff check", [work.python, "-m", "ruff", "check", "--quiet", "."]),
        ("ruff format", [work.python, "-m", "ruff", "format", "--quiet", "--diff", "."]),
        ("mypy", [work.python, "-m", "tools.typecheck"]),
        ("import-linter", [work.python, "-m", "tools.typecheck", "layers"]),
    ]
    return run_checks(work, commands) + frontend_checks(work)


def frontend_checks(work: Work) -> list[str]:
    """Run the tests of the front end, and check its types and format; returns the names of the checks that failed.

    Checks whose tools npm cannot install (without a network, say) are left out; under CI they fail.
    """
    trouble = install_frontend(work)
    npm = [shutil.which("npm", path=work.environ.get("PATH")) or "npm", "--silent", "--prefix", str(frontend.FOLDER)]
    checks = [("front end, tests", [*npm, "test"]), ("front end, types and format", [*npm, "run", "check"])]
    possible = 0 if npm[0] == "npm" else 1 if trouble else 2  # the tests need node alone
    failed = run_checks(work, checks[:possible])
    needed = preflight.under_ci()
    for name, _ in checks[possible:]:
        print("{}: {} ({})".format(name, "FAILED" if needed else "left out", trouble), file=work.output, flush=True)
    return failed + [name for name, _ in checks[possible:] if needed]


def install_frontend(work: Work) -> str | None:
    """Install the tools of the front end; returns why that failed, or None."""
    with lock(BUILD / "setup.lock"):
        return frontend.ensure(work.environ)


def run_checks(work: Work, commands: list[tuple[str, list[str]]]) -> list[str]:
    """Run each command and print how it ended; returns the names of those that failed."""
    failed = []
    for name, command in commands:
        start = time.time()
        status = work.call(*command)
        took = time.time() - start
        print("{}: {} ({:.1f} s)".format(name, "FAILED" if status else "ok", took), file=work.output, flush=True)
        if status:
            failed.append(name)
    return failed


def with_checks(work: Work, tests: Callable[[], int]) -> int:
    """Run all checks beside tests, which take longer, and print what they say at the end; returns an exit status."""
    with ThreadPoolExecutor() as pool, tempfile.TemporaryFile("w+") as said:
        beside = copy.copy(work)
        beside.environ, beside.output = dict(work.environ), said
        checking = pool.submit(checks, beside)
        status = tests()
        failed = checking.result()
        said.seek(0)
        print("\n" + said.read() + ("FAILED: {}".format(", ".join(failed)) if failed else ""), flush=True)
    return status or (1 if failed else 0)


def check(work: Work, arguments: list[str]) -> int:
    """Run all checks, and the unit tests that are marked neither slow nor packaging; for use before a commit."""
    return with_checks(work, lambda: pytest(work, ["tests/unit"], ["-m", FAST, *arguments]))


def test(work: Work, arguments: list[str]) -> int:
    """Run everything that CI runs: all checks, and all tests but those marked `full`.

    Under another Python or torch, only the tests run: the checks depend on the code alone and on the pinned versions.
    """
    install_frontend(work)  # a test builds the bundle
    found = browser.ensure(work.python, work.environ)
    if found:
        work.environ[browser.VARIABLE] = found
    else:
        print(f"no Chromium for the browser tests: {browser.cure()}", flush=True)
    pages = ["--dynascope", "examples"] if (ROOT / "examples").is_dir() else []
    # slow folders first, so that all processes end at about the same time
    folders = ["tests/browser", *pages, "tests/property", "tests/notebooks", "tests/fixes", "tests/unit"]
    everything = work.task == "test-all"
    if everything:
        work.environ["DYNASCOPE_FULL"] = "1"  # all programs of the property tests and of the corpus of fixes
        folders.insert(0, "tests/real")
    chosen = arguments if everything else ["-m", "not full", *arguments]
    if work.task == "test-python":
        return pytest(work, folders, chosen)
    return with_checks(work, lambda: pytest(work, folders, chosen))


def test_real(work: Work, arguments: list[str]) -> int:
    """Compare reports on models of packages from PyPI with torch's log, and write the table of results."""
    status = work.py("-m", "pytest", "-q", "tests/real", *arguments)
    return work.py("tests/real/write_table.py") or status


def test_torch(work: Work, arguments: list[str]) -> int:
    """Run the tests that depend on torch under another version of torch."""
    folders = ["tests/unit", "tests/fixes", "tests/property", "tests/notebooks"]
    return pytest(work, [f for f in folders if (ROOT / f).is_dir()], ["-m", "not packaging", *arguments])


def pytest(work: Work, what: list[str], arguments: list[str]) -> int:
    """Run pytest in three processes, unless the arguments (ARGS="-n 1") set another number.

    Three processes pay off even on two cores: a test that waits for a kernel, a browser or a command needs no core.
    """
    # the processes share the cores: each gets one thread, and no pool of compile workers
    work.environ.update(OMP_NUM_THREADS="1", TORCHINDUCTOR_COMPILE_THREADS="1")
    spread = [] if any(a.startswith("-n") for a in arguments) else ["-n", "3", "--dist", "loadscope"]
    return work.py("-m", "pytest", "-q", *what, *spread, *arguments)


TASKS = {
    "demo": demo, "check": check, "test": test, "test-all": test, "test-real": test_real,
    "test-torch": test_torch, "test-python": test,
    "lab": lab, "bench": bench, "docs": docs, "pins": pins,
}  # fmt: skip


def main(arguments: list[str]) -> int:
    """Run a task; returns its exit status."""
    if not arguments or arguments[0] not in TASKS:
        print("usage: python3 -m tools.tasks {} [arguments]".format("|".join(TASKS)))
        return 2
    task, rest = arguments[0], arguments[1:]
    return TASKS[task](prepare(task), rest)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
