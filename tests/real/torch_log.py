"""Reads what torch itself logs (TORCH_LOGS=graph_breaks,recompiles,graph_code); knows nothing of dynascope."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

#: glog's beginning of a line, and the compile that it belongs to
_PREFIX = re.compile(r"^[VDIWE]\d{4} [\d:.]+ \d+ \S+\] (?:\[(?P<id>\d+/\d+)(?:_\d+)?\] )?(?:\[__\w+\] ?)?")
#: a stack that was logged before is left out
_BREAK = re.compile(r"Graph break (?:\(user stack suppressed due to duplicate graph break\) )?in user code at (?P<place>.+)")


@dataclass
class Log:
    """What one model's part of the log says."""

    graphs: int = 0
    #: places of graph breaks, `file:line`
    breaks: set[str] = field(default_factory=set)
    #: ids of compiles that begin with a failed guard
    recompiles: list[str] = field(default_factory=list)


def read(text: str) -> dict[str, Log]:
    """The parts of a log by the names in their `>>> NAME` lines."""
    logs: dict[str, Log] = {}
    log = Log()
    for line in text.splitlines():
        if line.startswith(">>> "):
            log = logs.setdefault(line[4:], Log())
            continue
        prefix = _PREFIX.match(line)
        message = line[prefix.end() :].strip() if prefix else line.strip()
        if message == "TRACED GRAPH":
            log.graphs += 1
        elif (found := _BREAK.match(message)) is not None:
            log.breaks.add(found["place"])
        elif message.startswith("Recompiling function ") and prefix:
            log.recompiles.append(prefix["id"] or "")
    return logs
