"""The overview of a large report in a terminal: what to do first, the causes with their places, the calls.

Promises: together with the lines above and below it, at most `SCREEN` lines; causes and rows that do not fit are counted.
"""

from __future__ import annotations

from itertools import groupby

from dynascope.compiler.report import plural
from dynascope.widgets.labels.words import listing, shorten
from dynascope.widgets.render.terminal import Terminal
from dynascope.widgets.wire import CallRow, CausePlace, CauseRow, Overview

#: lines of a screen
SCREEN = 45
#: lines for the causes, if only one line is above or below the overview; each further line there takes one away, and the
#: calls get what is left of the screen
CAUSES = 20
#: causes that are shown with their places (one less if there are more than MANY causes), and functions named in one line
PLACED, MANY, FUNCTIONS = 4, 6, 5
#: marks of rows: the user's own code, the library that the model is from, other libraries
MARKS = {"own": "◆", "model": "◇", "other": " "}
_STYLES = {"skipped": "yellow", "break": "yellow", "recompile": "cyan", "failed": "red", "unfinished": "red"}


class OverviewText(Terminal):
    """The lines of one overview."""

    def __init__(self, shown: Overview, colour: bool, width: int) -> None:
        super().__init__(colour, width)
        self.shown = shown
        self.owners = {place["owner"] for cause in shown["causes"] for place in cause["places"]}
        #: whether rows must be marked by whose code they are
        self.mixed = len(owners := self.owners | {row["owner"] for row in shown["calls"]}) > 1 and "own" in owners

    def lines(self, used: int) -> list[str]:
        """The lines of the overview; `used`: number of the screen's lines that are taken by what is above and below it."""
        first = self.wrap(self.shown["first"], " " * 15, 3)
        first = [self.paint("Do this first: ", "green", "bold") + first[0].lstrip(), *first[1:]]
        if self.shown["left"]:
            first.append(f"{'Remaining: ':>15}{self.shown['left']}")
        if self.shown["well"]:
            well = self.wrap(self.shown["well"], " " * 15, 2)
            first += [f"{'Compiled well: ':>15}{well[0].lstrip()}", *well[1:]]
        causes = self.causes(CAUSES - max(0, used - 1))
        out = ["", *first, *(["", *causes] if causes else [])]
        foot = ["", self.paint("More about the breaks: print(report.details())", "soft")]
        return [*out, "", *self.calls(SCREEN - used - len(out) - len(foot) - 1), *foot]

    # -- causes -----------------------------------------------------------------------------------

    def causes(self, room: int) -> list[str]:
        """The causes: the first ones with their places, the others in one line each."""
        library = {"model": self.shown["library"], "other": "libraries"}.get("".join(self.owners), "")
        library = f"  (all in {library})" if library else ""
        rows = self.shown["causes"]
        placed = PLACED if len(rows) <= MANY else PLACED - 1
        order = ", the most costly first" if self.shown["by_cost"] else ""
        out = [self.paint(f"Causes: {len(rows)}{order}", "bold") + self.paint(library, "soft")]
        for number, row in enumerate(rows):
            left = room - len(out) - (number < len(rows) - 1)
            lines = [self.head(number, row), *(self.places(row) if number < placed else [])]
            if len(lines) > left:
                lines = lines[:1]
            if left < 1:
                out.append(self.paint(f"    … and {plural(len(rows) - number, 'more cause')}", "soft"))
                break
            out += lines
        return out if rows else []

    def head(self, number: int, row: CauseRow) -> str:
        """The first line of a cause: how many breaks or recompiles, what they cost, what happens."""
        text = f"{number + 1:>2}. {row['count']}" + (f" ({row['cost']})" if row["cost"] else "") + ": "
        colour = "cyan" if row["kind"] == "recompile" else "yellow"
        return self.paint(text, colour, "bold") + shorten(row["title"], max(20, self.width - len(text)))

    def places(self, row: CauseRow) -> list[str]:
        """The other lines of a cause: what to do, where, and what runs eagerly because of it."""
        out = [self.paint("    → ", "green") + line.lstrip() for line in self.wrap(row["fix"], "      ", 1)]
        for owner, group in groupby(row["places"], lambda place: place["owner"]):
            whose = {"own": "your code: ", "model": f"{self.shown['library']}: "}.get(owner, "other libraries: ")
            listed = self.listed(list(group), self.width - 6, whose if len(self.owners) > 1 or owner == "own" else "")
            out += [f"      {line}" for line in listed]
        if row["eager"]:
            words = "runs eagerly: " if row["kind"] == "break" else "runs eagerly, compiled too often: "
            out.append(self.paint("      " + words + listing(row["eager"][:FUNCTIONS], self.width - 6 - len(words)), "soft"))
        return out

    def listed(self, places: list[CausePlace], room: int, owner: str) -> list[str]:
        """The places by function, in at most two lines: `poolers.py:104 _infer_scale (5×), poolers.py:122 :125 _setup`."""
        parts = []
        for (file, function), group in groupby(places, lambda p: (p["place"].rpartition(":")[0], p["function"])):
            here = list(group)
            lines = " ".join(f":{p['place'].rpartition(':')[2]}" for p in here[:6]) + (" …" if len(here) > 6 else "")
            times = sum(p["times"] for p in here)
            parts.append(f"{file}{lines} {function}" + (f" ({times}×)" if times > len(here) else ""))
        rows = [owner]
        for number, part in enumerate(parts):
            text = shorten(part, room - 20) + ("," if number + 1 < len(parts) else "")
            if len(rows[-1]) + len(text) > room - (22 if len(rows) > 1 else 0) and rows[-1] != owner:
                if len(rows) == 2:
                    rows[-1] += f" and {plural(len(parts) - number, 'more function')}"
                    break
                rows.append(text)
            else:
                rows[-1] += (" " if rows[-1] not in ("", owner) else "") + text
        return rows

    # -- calls ------------------------------------------------------------------------------------

    def calls(self, room: int) -> list[str]:
        """The tree of calls in at most `room` lines."""
        rows = [row for row in visible(self.shown["calls"]) if not self.is_noise(row)]
        # left out first: folded rows, then the rows that are not of the first cause; of each, the deepest first
        first = {id for cause in self.shown["causes"][:1] for place in cause["places"] for id in place["ids"]}
        ranked = sorted(range(len(rows)), key=lambda n: (rows[n]["folded"], first.isdisjoint(rows[n]["ids"]), rows[n]["depth"]))
        chains, chosen = callers(rows), set[int]()
        for n in ranked:
            if len(chosen | chains[n]) < room:
                chosen |= chains[n]
        kept = [rows[n] for n in sorted(chosen)]
        more = len(rows) - len(kept)
        names = ["  " * row["depth"] + shorten(row["name"], max(16, self.width - 58 - 2 * row["depth"])) for row in kept]
        width = max([len(name) for name in names], default=0)
        at = min(28, max([len(row["place"]) for row in kept], default=0))
        whose = {"own": "your code", "model": self.shown["library"]}
        marks = [f"{MARKS[o]} {words}" for o, words in whose.items() if any(row["owner"] == o for row in rows)]
        note = f"  ({', '.join(marks)})" if self.mixed else ""
        out = [self.paint("Calls", "bold") + self.paint(note, "soft")]
        for row, name in zip(kept, names, strict=True):
            mark = MARKS[row["owner"]] + " " if self.mixed else "  "
            place = shorten(row["place"], at)
            events, left = [], self.width - width - at - 6
            for kind, words in row["events"]:
                fits = next((w for w in (words, words.partition(",")[0]) if len(w) <= left), "")
                left -= len(fits) + 3
                events += [self.paint(fits, _STYLES.get(kind, "soft"))] if fits else []
            out.append(f"{mark}{name:<{width}}  " + self.paint(f"{place:<{at}}", "soft") + "  " + " · ".join(events))
        if more > 0:
            out[0] += self.paint(f"  ({plural(more, 'row')} not shown)", "soft")
        return out

    def is_noise(self, row: CallRow) -> bool:
        """Whether a row is folded and has no event other than that there was nothing to compile."""
        return row["folded"] and all(kind == "empty" for kind, _ in row["events"])


def callers(rows: list[CallRow]) -> list[set[int]]:
    """For each row, its index and those of the rows that it is below: without them, its indent would mean another caller."""
    out: list[set[int]] = []
    path: list[int] = []
    for n, row in enumerate(rows):
        while path and rows[path[-1]]["depth"] >= row["depth"]:
            path.pop()
        path.append(n)
        out.append(set(path))
    return out


def visible(rows: list[CallRow]) -> list[CallRow]:
    """The rows that are not below a folded one."""
    out: list[CallRow] = []
    hidden_below: int | None = None
    for row in rows:
        if hidden_below is not None and row["depth"] > hidden_below:
            continue
        hidden_below = row["depth"] if row["folded"] else None
        out.append(row)
    return out
