"""The ranks of a job: which are alike, what differs first and why, which are slow, failed or missing; as sentences and as text.

The sentences are plain text that is not yet safe to show (see `words.printable`); in the text, no control character of the
report's own gets through, and a job of thousands of ranks takes as few lines as one of ten.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from dynascope.compiler.ranks import SOFT_KINDS, Difference, Rank, RanksReport
from dynascope.compiler.report import Report, label, listed, plural, seconds
from dynascope.widgets.features.summary import breaks
from dynascope.widgets.terminal import Terminal, columns
from dynascope.widgets.words import capped, consecutive, grouped, guarded, shorten

_OUTCOMES = {
    "compiled": "compiled it", "empty": "found nothing to compile in it", "skipped": "skipped it",
    "failed": "could not compile it",
    "cached": "had compiled it before", "unfinished": "did not finish it", "ignored": "ignored it",
}  # fmt: skip
_ANOTHER = {"versions": "version of", "settings": "value of the setting", "environment": "value of the environment variable"}
MOST_DIFFERENCES, MOST_FAILURES = 6, 8
_STATUSES = {"failed": "failed", "no end": "did not end (killed, or still running)", "missing": "left no file that can be read"}


def ranges(numbers: Iterable[int]) -> str:
    """Numbers as ranges: `0-510, 512`."""
    return ", ".join(
        f"{run[0]}-{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in consecutive(sorted(numbers))
    )


def ranks_name(numbers: Sequence[int]) -> str:
    """The name of some ranks: `rank 3`, `ranks 0-2`."""
    return f"rank{'' if len(numbers) == 1 else 's'} {ranges(numbers)}"


def headline(report: RanksReport) -> str:
    """The headline, `4 ranks: 0-2 alike; 3 differs`; if there is only one group, also the counts of its report."""
    total, by_status = plural(len(report.ranks), "rank"), grouped((str(r.status), r.rank) for r in report.ranks)
    unwell = [f"{ranks_name(by_status[s])} {words}" for s, words in _STATUSES.items() if by_status[s]]
    if not report.groups:
        said = f"{total}: nothing was recorded"
    elif len(report.groups) > 1:
        reference, *others = (group.ranks for group in report.groups)
        odd = [number for ranks in others for number in ranks]
        differ = f"{_named_or_counted(odd)} {'differs' if len(odd) == 1 else 'differ'}"
        kinds = f" in {len(others)} ways" if len(others) > 1 else ""
        alike = f"{_named_or_counted(reference)} alike; {differ}{kinds}" if len(reference) > 1 else "no two are alike"
        said = f"{total}: {alike}"
    else:
        (group,) = report.groups
        same = total if len(report.ranks) == 1 else f"{total} alike{' so far' if unwell else ''}"
        said = same if len(group.ranks) == len(report.ranks) else f"{total}, only {ranks_name(group.ranks)} known"
        if group.report is not None:
            times = [r.compile_seconds for r in report.ranks if r.group is not None]
            low, high, again = seconds(min(times)), seconds(max(times)), group.report.summary.recompiles
            parts = [counts(group.report), *([plural(again, "recompile")] if again else [])]
            said += ": " + " · ".join([*parts, f"compiled in {low}" if low == high else f"compiled in {low} to {high}"])
    return "; ".join([said, *unwell])


def _named_or_counted(numbers: Sequence[int]) -> str:
    """Numbers as ranges, `0-510, 512-1023`; if that is long, how many numbers there are."""
    names = ranges(numbers)
    return names if len(names) <= 40 else str(len(numbers))


def counts(report: Report) -> str:
    """What the ranks of a group compiled: `2 graphs · 1 graph break · 0 skipped`."""
    s = report.summary
    return f"{plural(s.graphs, 'graph')} · {breaks(s)}" + f" · {s.skipped} skipped" * bool(s.skipped or not s.cached)


def difference_title(report: RanksReport, difference: Difference) -> str:
    """A difference in one line: `rank 3 differs from ranks 0-2 in compile 2 of 5: f at train.py:12`."""
    d, numbers = difference, who_differs(report, difference)
    if d.kind in _ANOTHER:
        return f"{ranks_name(numbers)}: another {_ANOTHER[d.kind]} {d.subject}"
    words = f"{ranks_name(numbers)} {'differs' if len(numbers) == 1 else 'differ'} from {_reference(report, d)}"
    if d.step is None:
        return words
    steps = max(len(report.groups[g].steps) for g in (d.group, d.reference_group) if g is not None)
    return f"{words} in compile {d.step + 1} of {steps}" + (f": {d.function} at {_at(d)}" if d.file is not None else "")


def _reference(report: RanksReport, difference: Difference) -> str:
    """The ranks that others differ from: `ranks 0-2`, `the other ranks`, `most ranks`, `400 other ranks`."""
    group, reference = (None if n is None else report.groups[n].ranks for n in (difference.group, difference.reference_group))
    if reference is None or group is reference:
        others = len(report.ranks if group is None else group) - len(who_differs(report, difference))
        return "the other rank" if others == 1 else "the other ranks"
    name, are_most = ranks_name(reference), 2 * len(reference) > len(report.ranks)
    return name if len(name) <= 20 else "most ranks" if are_most else f"{len(reference)} other ranks"


def who_differs(report: RanksReport, difference: Difference) -> list[int]:
    """The ranks that a difference is about."""
    if difference.ranks or difference.group is None:
        return difference.ranks
    return report.groups[difference.group].ranks


def difference_details(report: RanksReport, difference: Difference) -> list[str]:
    """Sentences on what differs, and why."""
    numbers = who_differs(report, difference)
    who = ranks_name(numbers)
    details = _what(difference, who, _reference(report, difference))
    unread = [r.unread for r in report.ranks if r.rank in numbers and r.unread]
    if unread and len(unread) == len(numbers):
        counts = ", ".join(f"{count} × {kind}" for kind, count in sum(map(Counter, unread), Counter[str]()).items())
        details.append(f"records of {who} could not be read ({counts}): this difference may be only that")
    return details


def hard(report: RanksReport) -> list[Difference]:
    """The differences that change a graph, or may make a job hang."""
    return [d for d in report.differences if d.kind not in SOFT_KINDS]


def remarks(report: RanksReport, most: int) -> list[str]:
    """Sentences on differences that change no graph, at most `most`, and on graphs that differ only in the rank's number."""
    soft = [d for d in report.differences if d.kind in SOFT_KINDS]
    words = [": ".join([difference_title(report, d), *difference_details(report, d)]) for d in soft[:most]]
    words += [f"{plural(len(soft) - most, 'more difference')} of settings or environment"] if len(soft) > most else []
    if numbered := {s.name: None for g in report.groups for s in g.steps if s.frame in g.rank_constants}:
        each = "each rank compiles its own graph, and these differ in nothing else"
        words.append(f"the number of the rank is a constant in {listed(numbered, 12)}: {each}")
    return words


def _what(d: Difference, who: str, others: str) -> list[str]:
    reason = [f"reason: {' '.join(d.reason.split())}"] if d.reason else []
    source = f" `{d.source.strip()}`" if d.source.strip() else ""
    if d.kind in _ANOTHER:
        return [f"{d.value}; {others}: {d.reference}"]
    if d.kind == "break" and d.value is not None and d.reference is not None:
        return [f"graph break at {d.value} on {who}; at {d.reference} on {others}", *reason]
    is_ours = d.reference is None if d.kind == "break" else d.place_of == "group"
    having, without = (who, others) if is_ours else (others, who)
    if d.kind == "break":
        return [f"graph break at {_at(d)}{source} on {having}, none there on {without}", *reason]
    if d.kind == "recompile":
        again, first = (d.value, d.reference) if is_ours else (d.reference, d.value)
        instead = f"compiled {first} instead" if first else "compiled nothing more"
        return [f"recompiled on {having}: {again}; {without} {instead}", *reason]
    if d.kind in ("skip", "error", "cached"):
        own, other = (_OUTCOMES.get(one or "", one or "?") for one in (d.value, d.reference))
        return [f"{who} {own}; {others} {other}", *([f"at {_at(d)}{source}"] if source else []), *reason]
    if d.kind in ("function", "ends"):
        return [f"{who} compiled {d.value or 'nothing more'}; {others} compiled {d.reference or 'nothing more'}"]
    if d.kind == "collective":
        number = f"collective {d.position + 1}" if d.position is not None else "a collective"
        return [f"{number}: {d.value or 'none'} on {who}; {d.reference or 'none'} on {others}"]
    if d.step is None:
        return [f"what differs is unknown: no report of {who} was read"]
    subject = f"{'' if d.kind == 'constant' else f'{d.kind} of '}{d.subject}: " if d.kind != "graph" and d.subject else ""
    return [f"{subject}{d.value or 'nothing'} on {who}; {d.reference or 'nothing'} on {others}", *reason]


def _at(d: Difference) -> str:
    return f"{label(d.file, d.cell)}:{d.line}" if d.file else "?"


def rank_failure(rank: Rank) -> str:
    """How a rank ended, and where: `rank 3 did not end (killed, or still running); last seen in f at train.py:40`."""
    words = f"rank {rank.rank} {_STATUSES[rank.status]}" + (f": {' '.join(rank.error.split())}" if rank.error else "")
    words += f"; it was compiling {rank.compiling}" if rank.compiling else ""
    return words + (f"; {where(rank)}" if rank.at and rank.status == "no end" else "")


def rank_failures(report: RanksReport) -> list[str]:
    """Sentences on the ranks that failed, did not end or left no file; ranks with the same reason and place share one."""

    def same(rank: Rank) -> str:
        error = re.sub(r"\d+", "#", rank.error) if rank.error else None  # pids, addresses, durations differ between ranks
        return rank_failure(replace(rank, rank=0, at_seconds=None, error=error))

    words = []
    together = grouped((same(rank), rank) for rank in report.ranks if rank.status in ("failed", "no end"))
    for ranks in sorted(together.values(), key=len):
        longest = max(ranks, key=lambda r: r.at_seconds or 0)
        words.append(ranks_name([r.rank for r in ranks]) + rank_failure(longest).removeprefix(ranks_name([longest.rank])))
    missing = [r.rank for r in report.ranks if r.status == "missing"]
    return [*words, *([f"{ranks_name(missing)} {_STATUSES['missing']}"] if missing else [])]


def rank_line(rank: Rank) -> str:
    """One rank in one line: `rank 3 on node1, compiled in 4.20 s`."""
    if rank.status != "finished":
        return rank_failure(rank)
    return f"rank {rank.rank}{f' on {rank.host}' if rank.host else ''}, compiled in {seconds(rank.compile_seconds)}"


def where(rank: Rank) -> str:
    """Where a rank was when it last wrote its file: `last seen in train at train.py:40, there for 12 s`."""
    last, stayed = rank.at[-1], rank.at_seconds or 0
    source = f" `{last.source}`" if last.source else ""
    still = f", there for {seconds(stayed)}" if stayed >= 1 else ""
    return f"last seen in {last.function} at {label(last.file, last.cell)}:{last.line}{source}{still}"


def slow_lines(report: RanksReport, most: int) -> list[str]:
    """Sentences on slow compiles, at most `most`; the others are counted.

    `rank 3 took 12 s to compile f, the median of the others is 1.00 s`
    """
    lines = []
    for slow in report.slow:
        steps = report.groups[slow.group].steps if slow.group is not None else []  # [] if no report of the group was read
        what = f"to compile {steps[slow.step].name}" if slow.step < len(steps) else f"for compile {slow.step + 1}"
        median = f"the median of the others is {seconds(slow.median)}"
        lines.append(f"rank {slow.slowest_rank} took {seconds(slow.slowest)} {what}, {median}")
    return capped(lines, most, "slow compile")


def not_alike(report: RanksReport) -> str:
    """Why the ranks are not alike: the headline, the first three differences, and up to three ranks that did not finish."""
    told = [line for d in report.differences[:3] for line in (difference_title(report, d), *difference_details(report, d))]
    unwell = [rank_failure(rank) for rank in report.ranks if rank.status != "finished"]
    return "\n    ".join([headline(report), *told, *unwell[:3]])


def to_text(report: RanksReport, colour: bool = False, width: int | None = None) -> str:
    """`report` as text; `colour`: with escape sequences; `width`: in columns; None: the terminal's, at most 110."""
    return guarded("This report", lambda: "\n".join(_lines(report, Terminal(colour, columns(width)))), str)


def _lines(report: RanksReport, terminal: Terminal) -> list[str]:
    out, differences = terminal.wrap(headline(report), "", 4, "bold"), hard(report)
    for d in differences[:MOST_DIFFERENCES]:
        out += ["", *terminal.wrap("✗ " + difference_title(report, d), "", 4, "yellow")]
        out += [row for line in difference_details(report, d) for row in terminal.wrap(line, "    ", 4, under="      ")]
    more = len(differences) - MOST_DIFFERENCES
    out += ["", f"… and {plural(more, 'more difference')}"] if more > 0 else []
    notes = [*remarks(report, 5), *capped([shorten(note, 400) for note in report.notes], 8, "note")]
    failed = capped(rank_failures(report), MOST_FAILURES)
    for mark, sentences, *style in (("✗ ", failed, "red"), ("… ", slow_lines(report, 3)), ("note: ", notes)):
        marked = (words if words.startswith("…") else mark + words for words in sentences)
        lines = [line for words in marked for line in terminal.wrap(words, "", 4, *style)]
        out += ["", *lines] if lines else []
    return out
