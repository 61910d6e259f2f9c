"""Jobs under torchrun whose processes are forked from one that has imported torch, which is most of what a small job costs.

The agents, their rendezvous, gloo and the ranks are real.  `python -m warm_ranks JOBS` runs jobs, given as JSON (name ->
number of processes, arguments of `dynascope run`), in the current folder, writes what each prints into
NAME.out and NAME.err, and prints a line of JSON for each that ends.  `Jobs` is the other side.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

AT_ONCE = 3
_WARM = (
    "torch._dynamo.symbolic_convert", "torch._dynamo.backends.debugging", "torch._dynamo.backends.distributed",
    "torch._functorch.aot_autograd", "torch._functorch._aot_autograd.autograd_cache", "torch.fx.experimental.symbolic_shapes",
    "torch.distributed.run", "torch.distributed.fsdp", "torch.distributed.tensor.parallel", "torch.nn.parallel.distributed",
    "dynascope.api", "dynascope.ranks", "dynascope.compiler.driver",
    "dynascope.widgets.features.ranks", "msgspec",
)  # fmt: skip


class Jobs:
    """Jobs that run at once in `folder`; `jobs[name]` waits for one."""

    def __init__(self, folder: Path, jobs: Mapping[str, Sequence[str | int]]) -> None:
        self._folder = folder
        self._ended: dict[str, int] = {}
        here = Path(__file__).parent
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join([str(here), str(here.parent)])}
        environment.pop("PYTHONWARNINGS", None)
        command = [sys.executable, "-m", "warm_ranks", json.dumps(jobs)]
        self._process = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True)

    def __getitem__(self, name: str) -> subprocess.CompletedProcess[str]:
        assert self._process.stdout is not None
        while name not in self._ended:
            line = self._process.stdout.readline()
            assert line, f"the jobs ended without {name}"
            self._ended.update(json.loads(line))
        out, err = ((self._folder / f"{name}.{suffix}").read_text() for suffix in ("out", "err"))
        return subprocess.CompletedProcess(name, self._ended[name], out, err)

    def close(self) -> None:
        self._process.terminate()
        self._process.communicate()


def main() -> None:
    """Run the jobs of the command line."""
    import importlib

    jobs: dict[str, list[Any]] = json.loads(sys.argv[1])
    for module in _WARM:
        importlib.import_module(module)
    waiting, running = list(jobs), {}
    while waiting or running:
        while waiting and len(running) < AT_ONCE:
            name = waiting.pop(0)
            pid = os.fork()
            if pid == 0:
                _run(name, jobs[name])
            running[pid] = name
        pid, status = os.wait()
        print(json.dumps({running.pop(pid): os.waitstatus_to_exitcode(status)}), flush=True)


def _run(name: str, arguments: list[Any]) -> None:
    """Run one job in this process, which is a fork."""
    for stream, number in (("out", 1), ("err", 2)):
        os.dup2(os.open(f"{name}.{stream}", os.O_CREAT | os.O_WRONLY | os.O_TRUNC), number)
    status = 1
    try:
        status = _launch(arguments)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _launch(arguments: list[Any]) -> int:
    from torch.distributed import run as torchrun
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

    prepare = torchrun.config_from_args

    def forking(given: Any) -> Any:
        config, _, command = prepare(given)  # python -u -m dynascope ...
        config.start_method = "fork"
        return config, _rank, command[command.index("dynascope") + 1 :]

    torchrun.config_from_args = forking
    count, *own = arguments
    try:  # before torch 2.13, only `--standalone` chooses a free port
        torchrun.main(["--standalone", "--nproc-per-node", str(count), "-m", "dynascope", "run", *own])
    except ChildFailedError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _rank(*arguments: str) -> None:
    from dynascope import cli

    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):  # the agent's handlers are its own
        signal.signal(number, signal.SIG_DFL)
    raise SystemExit(cli.main(arguments))


if __name__ == "__main__":
    main()
