"""How long and how much memory reading a job takes, beside `tlparse --all-ranks-html` on the same files.

    python tests/benchmarks/bench_ranks.py TRACE_DIR [RANKS] [MEGABYTES]

TRACE_DIR has the TORCH_TRACE logs of a small job; its first log is repeated to RANKS logs of MEGABYTES each, with times,
process ids and paths of each rank's own, and two planted differences.  Prints rows for results_ranks.md.
"""

from __future__ import annotations

import hashlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_RECORD = re.compile(r'("has_payload": ")[0-9a-f]{32}("[^\n]*\n)((?:\t[^\n]*\n?)*)')


def _with_checksum(record: re.Match[str]) -> str:
    payload = "\n".join(line[1:] for line in record[3].removesuffix("\n").split("\n"))
    return record[1] + hashlib.md5(payload.encode(), usedforsecurity=False).hexdigest() + record[2] + record[3]


def make_job(source: Path, folder: Path, ranks: int, size: float) -> None:
    """Logs of `ranks` ranks: rank 511 has another shape, rank 700 no last compile."""
    log = sorted(source.glob("*rank_0*"))[0].read_text()
    parts, total = [log], len(log)
    while total < size * 1e6:  # repeat its compiles under later ids, as a longer job has them
        number = 100 * len(parts)
        again = log.replace('"frame_id": ', f'"frame_id": {number}')
        parts.append("".join(line + "\n" for line in again.splitlines() if '{"str":' not in line))
        total += len(parts[-1])
    text = "".join(parts)
    for rank in range(ranks):
        own = text.replace("/tmp/", f"/scratch/node{rank // 8}/job.{rank}/").replace(":23.", f":{rank % 60:02d}.")
        own = own.replace('"rank": 0', f'"rank": {rank}')
        own = own.replace('"entire_frame_compile_time_s": 1.', f'"entire_frame_compile_time_s": {1 + rank % 9}.')
        if rank == 511 % ranks:
            own = own.replace("f32[2, 64]", "f32[3, 64]")
        if rank == 700 % ranks:
            own = own[: own.rindex('"dynamo_start"') - 80].rpartition("\n")[0] + "\n"
        own = _RECORD.sub(_with_checksum, own)
        (folder / f"dedicated_log_torch_trace_rank_{rank}_x.log").write_text(own)


def cpu() -> float:
    """Processor seconds of this process and its children."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in usages)


def memory() -> float:
    """Peak of this process and of its largest child, in MB."""
    return sum(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) / 1024


def main() -> None:
    """Make the job, read it, show it, and have tlparse read it."""
    source = Path(sys.argv[1])
    ranks = int(sys.argv[2]) if len(sys.argv) > 2 else 1024
    size = float(sys.argv[3]) if len(sys.argv) > 3 else 1.0
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) / "job"
        folder.mkdir()
        make_job(source, folder, ranks, size)
        total = sum(f.stat().st_size for f in folder.iterdir())
        print(f"{ranks} logs, {total / 1e6:.0f} MB")
        import dynascope

        start, used = time.perf_counter(), cpu()
        report = dynascope.load(folder)
        read, used = time.perf_counter() - start, cpu() - used
        print(report.headline())
        start = time.perf_counter()
        text = str(report)
        page = report.to_html()
        shown = time.perf_counter() - start
        times = f"read in {read:.1f} s ({used:.1f} s of processor), shown in {shown:.2f} s"
        print(f"dynascope: {times}, {memory():.0f} MB, page {len(page) / 1e6:.2f} MB")
        print(text)
        tlparse = shutil.which("tlparse", path=str(Path(sys.executable).parent)) or shutil.which("tlparse")
        if tlparse is None:
            return
        start, used = time.perf_counter(), cpu()
        out = Path(made) / "out"
        done = subprocess.run(
            [tlparse, "--all-ranks-html", "--no-browser", "-o", str(out), str(folder)], capture_output=True, text=True
        )
        files = [f for f in out.rglob("*") if f.is_file()]
        written = sum(f.stat().st_size for f in files)
        took = f"{time.perf_counter() - start:.1f} s ({cpu() - used:.1f} s of processor)"
        print(f"tlparse: {took}, {len(files)} files, {written / 1e6:.0f} MB, exit status {done.returncode}")


if __name__ == "__main__":
    main()
