"""The page, the widget and the static output of a RanksReport."""

from __future__ import annotations

import html
import re

import pytest
from unit.compiler.test_rank_reports import PLANTED, made, record, with_difference

from dynascope.compiler.ranks import Difference, Rank, RankGroup, RanksReport, StepTime, merge
from dynascope.compiler.report import Report, StackEntry, Summary
from dynascope.compiler.report.comparison import MIME
from dynascope.widgets.render import ranks_page


def lines(report: RanksReport, kind: str) -> list[str]:
    """The sentences of one kind in the page of a job: "failed", "slow", "notes", "more"."""
    (found,) = re.findall(f'<ul class="dyn-rk-list dyn-rk-{kind}">(.*?)</ul>', ranks_page.body(report))
    return [html.unescape(line) for line in re.findall("<li>(.*?)</li>", found)]


@pytest.fixture(scope="module")
def report() -> RanksReport:
    return with_difference(PLANTED["no break"][0], ranks=12)


def test_the_page_says_what_the_text_says(report: RanksReport) -> None:
    page = ranks_page.body(report)
    assert f"<h2>{report.headline()}</h2>" in page
    assert page.count("<details class=") == 2  # the difference, and the list of ranks
    assert 'data-groups="1 0"' in page
    assert "ranks 0, 1, 3-11 (11): 4 graphs" in page


def test_the_static_output_needs_no_script_and_has_an_outline(report: RanksReport) -> None:
    bundle = report._repr_mimebundle_()
    assert "<script" not in bundle["text/html"]
    assert report.headline() in bundle["text/html"]
    assert bundle[MIME]["summary"] == {"ranks": 12, "groups": 2, "differences": 1}
    assert bundle[MIME]["breaks"] == [{"type": "builtin print", "line": 23, "outcome": "break", "place": "train.py"}]


def test_what_is_left_out_is_counted(report: RanksReport) -> None:
    long = RanksReport.from_dict(report.to_dict())
    long.differences *= 50
    soft = [Difference(kind="settings", ranks=[2], subject="backend", value="a", reference="b")] * 42
    long.differences += soft
    long.slow = [StepTime(group=0, step=0, median=1.0, slowest=60.0, slowest_rank=1)] * 8
    long.notes = ["a log was left out"] * 11
    for n, rank in enumerate(long.ranks):
        rank.status, rank.error = "failed", "Error" + "x" * n
    assert lines(long, "more") == ["… and 10 more differences"]
    assert lines(long, "slow")[5:] == ["… and 3 more slow compiles"]
    assert lines(long, "notes")[40] == "2 more differences of settings or environment"
    assert "… and 38 more differences" in long._repr_mimebundle_()["text/html"]
    text = str(long).splitlines()
    for words in ("44 more differences", "4 more", "5 more slow compiles", "3 more notes"):
        assert f"… and {words}" in text


def test_hostile_text_is_escaped(report: RanksReport) -> None:
    hostile = RanksReport.from_dict(report.to_dict())
    hostile.differences[0].source = "</script><b>"
    hostile.notes.append("<img src=x>")
    for text in (hostile.to_html(), hostile._repr_mimebundle_()["text/html"]):
        assert "<img src=x>" not in text
        assert "</script><b>" not in text


def test_empty_and_reportless_jobs_are_shown() -> None:
    empty = RanksReport(ranks=[Rank(rank=0, status="missing")])
    assert "nothing was recorded" in empty.headline()
    for text in (empty.to_html(), str(empty)):
        assert text

    def damaged() -> Report:
        raise ValueError("damaged")

    broken = record(made(0), 0)
    broken.report = damaged
    whole = record(made(1), 1)
    report = merge([broken, whole])
    assert report.groups[0].report is not None  # of the other rank
    assert str(report)

    whole.report, whole.rank.seconds[1] = damaged, 60.0
    report = merge([broken, whole])
    (slow,) = lines(report, "slow")
    assert slow.startswith("rank 1 took 60 s for compile 2, the median of the others is 1.00 s")
    assert slow in " ".join(str(report).split())

    odd = record(other(2), 2)
    odd.report = damaged
    report = merge([record(made(0), 0), record(made(1), 1), odd])
    assert "<code>what differs is unknown: no report of rank 2 was read</code>" in ranks_page.body(report)


def test_ranks_that_ended_alike_are_one_sentence_and_the_odd_one_is_first() -> None:
    records = []
    for rank in range(300):
        own = record(made(rank), rank)
        place = ("data.py", 7) if rank == 8 else ("train.py", 40)
        own.rank.status, own.rank.at_seconds = "no end", 60 + rank / 100
        own.rank.at = [StackEntry(file=f"/job/{place[0]}", line=place[1], function="step")]
        if rank % 100 == 99:
            own.rank.status, own.rank.error = "failed", f"SignalException: Process {rank} got signal: 15"
        records.append(own)
    report = merge(records)
    odd, failed, others = lines(report, "failed")
    assert odd == "rank 8 did not end (killed, or still running); last seen in step at data.py:7, there for 60 s"
    assert failed == "ranks 99, 199, 299 failed: SignalException: Process 299 got signal: 15"
    assert others.startswith("ranks 0-7, 9-98, 100-198, 200-298 did not end")
    assert "last seen in step at train.py:40, there for 63 s" in others
    assert "ranks 99, 199, 299 failed" in str(report)


def test_ranks_are_most_ranks_only_if_they_are_and_one_rank_is_not_alike() -> None:
    few = merge(record((made, other)[rank % 2](rank), rank) for rank in range(60))
    assert "differ from 30 other ranks in compile" in " ".join(str(few).split())
    one, rest = record(made(0), 0), [record(made(rank), rank) for rank in (1, 2)]
    assert merge([one]).headline().startswith("1 rank: 4 graphs")
    assert merge([one], world_size=2).headline().startswith("2 ranks, only rank 0 known: 4 graphs")
    rest[0].versions["torch"] = "0"
    assert "0; the other rank: " in " ".join(str(merge([one, rest[0]])).split())
    assert "0; the other ranks: " in " ".join(str(merge([one, *rest])).split())


def other(rank: int) -> Report:
    report = made(rank)
    PLANTED["another size"][0](report)
    return report


def test_the_breaks_of_cached_code_are_unknown() -> None:
    own = Report(compiled=["f"], summary=Summary(frames=1, cached=1, unknown_breaks=2))
    ranks = [Rank(rank=n, group=0, status="finished") for n in range(2)]
    report = RanksReport(ranks=ranks, groups=[RankGroup(ranks=[0, 1], report=own)])
    assert "0 graphs · graph breaks unknown · compiled in" in report.headline()
    assert "ranks 0, 1 (2): 0 graphs · graph breaks unknown<" in ranks_page.body(report)
