"""What `make` calls: look at the machine, make the environment ready, then do the task in it.

Standard library only; parses on Python 3.8, so that a Python that is too old is told so in words.

    python3 -m tools.tasks demo|check|test|test-real|test-torch|test-python|lab|bench|docs|pins [arguments]
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from tools import browser, environment, frontend, preflight

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
TORCH = os.environ.get("TORCH") or environment.TORCH
TOUR = "examples/tour.ipynb"
#: the tests of `make check`
FAST = "not slow and not packaging"


class Work:
    """One task's environment: its Python, its variables, and how to run a command in it."""

    def __init__(self, task: str, venv: Path) -> None:
        self.task = task
        self.venv = venv
        self.python = str(environment.interpreter(venv))
        self.environ = environment.isolated(dict(os.environ), BUILD, venv)

    def call(self, *command: str) -> int:
        """Run a command in the project's root; its exit status."""
        return subprocess.call(list(command), cwd=str(ROOT), env=self.environ)

    def py(self, *arguments: str) -> int:
        """Run the environment's Python."""
        return self.call(self.python, *arguments)


def prepare(task: str) -> Work:
    """Preflight and environment; SystemExit where something needed is missing."""
    apart = task in ("test-torch", "test-python")
    name = "torch-{}-python-{}.{}".format(TORCH, *sys.version_info[:2])
    venv = BUILD / name / "venv" if apart else ROOT / ".venv"
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
    if not preflight.can_compile():
        # Settings take their default backend from here; only reached by tasks that can do without Inductor
        work.environ.setdefault("DYNASCOPE_BACKEND", "aot_eager")
    return work


class lock:
    """Two `make`s at once: the second waits for the first one's installation."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> None:
        self.file = open(str(self.path), "w")
        try:
            import fcntl

            fcntl.flock(self.file, fcntl.LOCK_EX)
        except ImportError:  # Windows: the rare case goes unprotected
            pass

    def __exit__(self, *details: object) -> None:
        self.file.close()


def demo(work: Work, arguments: list[str]) -> int:
    """The tour, executed; what came out, and where it lies."""
    status = work.py("-m", "tools.demo", TOUR, str(BUILD / "demo"), *arguments)
    if status == 0:
        print("\nTo try it yourself, open the tour in JupyterLab:\n\n    make lab\n", flush=True)
    return status


def lab(work: Work, arguments: list[str]) -> int:
    """JupyterLab, at the tour.  The address that it prints leads there too, where no browser opens by itself."""
    tour = "--LabApp.default_url=/lab/tree/" + TOUR
    command = [work.python, "-m", "jupyter", "lab", *root_flags(), tour, *arguments]
    os.chdir(str(ROOT))
    if os.name == "posix":
        # in our place: it gets the signals itself
        os.execve(work.python, command, work.environ)
    return work.call(*command)


def root_flags() -> list[str]:
    """Jupyter refuses to run as root (in a container, say) without being told to."""
    as_root = hasattr(os, "geteuid") and os.geteuid() == 0
    return ["--allow-root"] if as_root else []


def docs(work: Work, arguments: list[str]) -> int:
    """The tutorials, executed, as a small site that works offline."""
    return work.py("-m", "tools.docs", "examples", str(BUILD / "docs"), *arguments)


def bench(work: Work, arguments: list[str]) -> int:
    """Every benchmark in tests/benchmarks."""
    programs = sorted((ROOT / "tests" / "benchmarks").glob("bench_*.py"))
    if not programs:
        print("no benchmarks yet: tests/benchmarks/bench_*.py")
    return max([work.py(str(p), *arguments) for p in programs], default=0)


def pins(work: Work, arguments: list[str]) -> int:
    """Write the constraints file."""
    return work.py("-m", "tools.generated", "pins")


def checks(work: Work) -> list[str]:
    """Run every check that is no pytest test; the names of those that failed."""
    commands = [
        ("ruff check", [work.python, "-m", "ruff", "check", "--quiet", "."]),
        ("ruff format", [work.python, "-m", "ruff", "format", "--quiet", "--diff", "."]),
        ("mypy", [work.python, "-m", "tools.typecheck"]),
        ("import-linter", [work.python, "-m", "tools.typecheck", "layers"]),
    ]
    return run_checks(work, commands) + frontend_checks(work)


def frontend_checks(work: Work) -> list[str]:
    """Tests, types and format of the front end; the names of those that failed.

    What npm cannot install (there is no network, say) is left out, but under CI that is a failure.
    """
    with lock(BUILD / "setup.lock"):
        trouble = frontend.ensure(work.environ)
    npm = [shutil.which("npm", path=work.environ.get("PATH")) or "npm", "--silent", "--prefix", str(frontend.FOLDER)]
    failed = [] if npm[0] == "npm" else run_checks(work, [("front end, tests", [*npm, "test"])])
    if trouble is None:
        return failed + run_checks(work, [("front end, types and format", [*npm, "run", "check"])])
    needed = preflight.under_ci()
    print("front end, types and format: {} ({})".format("FAILED" if needed else "left out", trouble), flush=True)
    return [*failed, "front end, types and format"] if needed else failed


def run_checks(work: Work, commands: list[tuple[str, list[str]]]) -> list[str]:
    """Run each command and print how it ended; the names of those that failed."""
    failed = []
    for name, command in commands:
        start = time.time()
        status = work.call(*command)
        print("{}: {} ({:.1f} s)".format(name, "FAILED" if status else "ok", time.time() - start), flush=True)
        if status:
            failed.append(name)
    return failed


def check(work: Work, arguments: list[str]) -> int:
    """Every check, and the unit tests that need no kernel, no generated code and no build: what to run before a commit."""
    failed = checks(work)
    work.environ["DYNASCOPE_FAILED_CHECKS"] = ", ".join(failed)
    status = pytest(work, ["tests/unit"], ["-m", FAST, *arguments])
    return status or (1 if failed else 0)


def test(work: Work, arguments: list[str]) -> int:
    """Everything that CI runs.  pytest goes last, whatever the checks say: its summary is the last line.

    Another Python or torch runs the tests alone: the checks read the code, and are made for the pinned versions.
    """
    failed = checks(work) if work.task == "test" else []
    found = browser.ensure(work.python, work.environ)
    if found:
        work.environ[browser.VARIABLE] = found
    else:
        print(f"no Chromium for the browser tests: {browser.cure()}", flush=True)
    work.environ["DYNASCOPE_FAILED_CHECKS"] = ", ".join(failed)
    pages = ["--dynascope", "examples"] if (ROOT / "examples").is_dir() else []
    # the long ones first: then all processes end at about the same time
    folders = ["tests/browser", *pages, "tests/property", "tests/notebooks", "tests/fixes", "tests/unit"]
    status = pytest(work, folders, arguments)
    return status or (1 if failed else 0)


def test_real(work: Work, arguments: list[str]) -> int:
    """Models of packages from PyPI against torch's own log, and the table of the run."""
    status = work.py("-m", "pytest", "-q", "tests/real", *arguments)
    return work.py("tests/real/write_table.py") or status


def test_torch(work: Work, arguments: list[str]) -> int:
    """The tests that depend on torch, under another version of it."""
    folders = ["tests/unit", "tests/fixes", "tests/property", "tests/notebooks"]
    return pytest(work, [f for f in folders if (ROOT / f).is_dir()], ["-m", "not packaging", *arguments])


def pytest(work: Work, what: list[str], arguments: list[str]) -> int:
    """pytest in three processes; with arguments of the user's (ARGS="-k name") just as given.

    On two cores, too: what waits for a kernel, a browser or a command leaves its core to the others.
    """
    # the processes share the cores: one thread each, and no pool of compile workers besides
    work.environ.update(OMP_NUM_THREADS="1", TORCHINDUCTOR_COMPILE_THREADS="1")
    spread = [] if "-n" in " ".join(arguments) else ["-n", "3", "--dist", "loadscope"]
    return work.py("-m", "pytest", "-q", *what, *spread, *arguments)


TASKS = {
    "demo": demo, "check": check, "test": test, "test-real": test_real, "test-torch": test_torch, "test-python": test,
    "lab": lab, "bench": bench, "docs": docs, "pins": pins,
}  # fmt: skip


def main(arguments: list[str]) -> int:
    """The exit status of the task."""
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
