"""`python -m dynascope.compiler.jobs.worker`: reads the logs that standard input lists, and writes a line of JSON for each."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from dynascope.compiler.jobs import quick_trace_reader, rank_file


def main() -> None:
    """Write a line for each path: its index, and the data of a rank file's first line (`rank_file.head`) or the error.

    The paths are separated by NUL characters.
    """
    paths = sys.stdin.buffer.read().decode("utf-8", "surrogateescape").split("\0")
    known: dict[str, quick_trace_reader.Known] = {}
    for number, path in enumerate(paths):
        try:
            answer: dict[str, object] = {"head": rank_file.head(quick_trace_reader.read(Path(path), known))}
        except (ValueError, OSError) as error:
            answer = {"error": " ".join(str(error).split())}
        sys.stdout.write(json.dumps({"number": number, **answer}) + "\n")


if __name__ == "__main__":
    main()
