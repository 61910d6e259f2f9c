"""`dynascope.gather`: the last reports of ipyparallel's engines, as the ranks of one job."""

from __future__ import annotations

from typing import Any

from dynascope.compiler.jobs import identity, rank_file
from dynascope.compiler.ranks import Rank, RanksReport, merge
from dynascope.compiler.report import Report


def gather(client: Any) -> RanksReport:
    """The RanksReport of the engines' last reports; `dynascope.gather` documents it."""
    view = client if hasattr(client, "apply_sync") else client[:]
    answers = view.apply_sync(last_record)
    answers = answers if isinstance(answers, list) else [answers]
    records = []
    for number, answer in enumerate(answers):
        if answer is None:
            continue
        report = Report.from_dict(answer["report"])
        record = rank_file.from_head(answer["head"], lambda report=report: report)  # type: ignore[misc]
        if not answer["is_rank"]:
            record.rank.rank = number
        records.append(record)
    if not records:
        raise LookupError("no engine has a report yet: run a cell that begins with %%px, followed by %%compile")
    return merge(records, world_size=max(len(answers), *(r.rank.rank + 1 for r in records)))


def last_record() -> dict[str, Any] | None:
    """The last report of this process, with the data by which ranks are compared; None if there is none yet.

    ipyparallel calls it in each engine.
    """
    from dynascope.compiler.driver.latest import last

    try:
        report = last()
    except LookupError:
        return None
    rank = identity.process_rank()
    record = rank_file.record_of(
        rank or Rank(rank=0), report, names=identity.group_names(), environment=identity.environment()
    )  # fmt: skip
    return {"head": rank_file.head(record), "report": report.to_dict(), "is_rank": rank is not None}
