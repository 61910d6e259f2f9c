"""Our own layered layout: rows by longest path, order by barycentre, x by neighbours; linear in its input.

Promises: boxes never overlap, whatever the edges are (cycles, loops, several parts, long spans); 10,000
boxes take less than a second.  Long edges run through gaps between boxes while their number is small,
and along a lane beside the drawing where it is not.
"""

from __future__ import annotations

from dataclasses import dataclass

Point = tuple[float, float]
Size = tuple[float, float]


@dataclass(frozen=True)
class Line:
    """An edge between outer boxes; `kind` as in `layout.Edge`."""

    source: str
    target: str
    kind: str


@dataclass(frozen=True)
class Gaps:
    """Free pixels between rows, between columns, and where a side edge passes."""

    row: float
    column: float
    side: float


@dataclass(frozen=True)
class Placed:
    """Left upper corners, and one polyline per line."""

    corners: dict[str, Point]
    routes: list[list[Point]]


def place(sizes: dict[str, Size], lines: list[Line], gaps: Gaps, *, snug: bool = False) -> Placed:
    """Place every box of `sizes` and route every line.

    `snug`: a box that nothing leads to stands right above the first that it leads to, not in the top row.
    """
    if not sizes:
        return Placed({}, [[] for _ in lines])
    ids = list(sizes)
    index = {id: i for i, id in enumerate(ids)}
    arcs = [(index[line.source], index[line.target], line.kind) for line in lines]
    ranks = _ranks(len(ids), arcs)
    if snug:
        _lower_sources(ranks, arcs)
    rows = _Rows([sizes[id] for id in ids], arcs, ranks, gaps)
    rows.order()
    rows.spread()
    corners = {id: (rows.x[i] - sizes[id][0] / 2, rows.top[ranks[i]]) for i, id in enumerate(ids)}
    return Placed(corners, rows.routes())


def _ranks(count: int, arcs: list[tuple[int, int, str]]) -> list[int]:
    """The row of each box: below its sources for down edges, no higher than them for side edges.

    Back edges (found depth first, in the order given) and free edges count for nothing.
    """
    after: list[list[tuple[int, int]]] = [[] for _ in range(count)]
    for source, target, kind in arcs:
        if kind != "free" and source != target:
            after[source].append((target, 0 if kind == "side" else 1))
    state, finished = bytearray(count), []
    back: set[tuple[int, int]] = set()
    for root in range(count):
        if state[root]:
            continue
        stack = [(root, 0)]
        state[root] = 1
        while stack:
            node, step = stack[-1]
            if step < len(after[node]):
                stack[-1] = (node, step + 1)
                target = after[node][step][0]
                if state[target] == 1:
                    back.add((node, target))
                elif not state[target]:
                    state[target] = 1
                    stack.append((target, 0))
            else:
                state[node] = 2
                finished.append(node)
                stack.pop()
    ranks = [0] * count
    for node in reversed(finished):
        for target, step in after[node]:
            if (node, target) not in back:
                ranks[target] = max(ranks[target], ranks[node] + step)
    return ranks


def _lower_sources(ranks: list[int], arcs: list[tuple[int, int, str]]) -> None:
    """Move boxes without sources down to just above the highest of their targets."""
    reached = {target for source, target, _ in arcs if source != target}
    first: dict[int, int] = {}
    for source, target, kind in arcs:
        if source not in reached and source != target and kind == "down":
            first[source] = min(first.get(source, ranks[target]), ranks[target])
    for node, rank in first.items():
        ranks[node] = max(ranks[node], rank - 1)


class _Rows:
    """Rows of boxes and of the points where long edges pass, being ordered and spread."""

    def __init__(self, sizes: list[Size], arcs: list[tuple[int, int, str]], ranks: list[int], gaps: Gaps) -> None:
        self.sizes, self.arcs, self.ranks, self.gaps = sizes, arcs, list(ranks), gaps
        self.real = len(sizes)
        self.width = [s[0] for s in sizes]
        self.up: list[list[int]] = [[] for _ in sizes]
        self.down: list[list[int]] = [[] for _ in sizes]
        #: per arc: the passing points, or None for a lane beside the drawing
        self.passes: list[list[int] | None] = []
        self.beside: set[tuple[int, int]] = set()
        budget = 2 * (len(sizes) + len(arcs)) + 200
        spans = [ranks[t] - ranks[s] for s, t, _ in arcs]
        allowed = set()
        for number in sorted(range(len(arcs)), key=spans.__getitem__):
            if spans[number] >= 1 and budget >= spans[number] - 1:
                budget -= spans[number] - 1
                allowed.add(number)
        for number, (source, target, kind) in enumerate(arcs):
            if kind == "side" and spans[number] == 0 and source != target:
                self.beside.add((source, target))
            self.passes.append(self._chain(source, target) if number in allowed else None)
        self.rows: list[list[int]] = [[] for _ in range(max(self.ranks) + 1)]
        for node, rank in enumerate(self.ranks):
            self.rows[rank].append(node)
        heights = [max([self.sizes[n][1] for n in row if n < self.real], default=0.0) for row in self.rows]
        self.height = heights
        self.top: list[float] = []
        y = 0.0
        for height in heights:
            self.top.append(y)
            y += height + gaps.row
        self.x = [0.0] * len(self.ranks)

    def _chain(self, source: int, target: int) -> list[int]:
        chain: list[int] = []
        above = source
        for rank in range(self.ranks[source] + 1, self.ranks[target]):
            node = len(self.ranks)
            self.ranks.append(rank)
            self.width.append(2.0)
            self.up.append([above])
            self.down.append([])
            self.down[above].append(node)
            chain.append(node)
            above = node
        self.down[above].append(target)
        self.up[target].append(above)
        return chain

    # -- order ----------------------------------------------------------------------------------

    def order(self) -> None:
        """Sort each row by where its neighbours stand, down and up a few times."""
        follow = self._followers()
        place = [0.0] * len(self.ranks)
        for row in self.rows:
            for position, node in enumerate(row):
                place[node] = position
        sweeps = 6 if len(self.ranks) < 2000 else 2
        for sweep in range(sweeps):
            going_down = sweep % 2 == 0
            neighbours = self.up if going_down else self.down
            for rank in range(len(self.rows)) if going_down else range(len(self.rows) - 1, -1, -1):
                row = self.rows[rank]
                if len(row) > 1:
                    keys = {}
                    for node in row:
                        near = neighbours[node]
                        keys[node] = sum(place[n] for n in near) / len(near) if near else place[node]
                    row.sort(key=keys.__getitem__)
                    if follow:
                        row = self.rows[rank] = _with_followers(row, follow)
                for position, node in enumerate(row):
                    place[node] = position

    def _followers(self) -> dict[int, list[int]]:
        """Who stands directly to the right of whom."""
        follow: dict[int, list[int]] = {}
        taken: set[int] = set()
        for source, target in sorted(self.beside):
            if target not in taken and not _reaches(follow, target, source):
                follow.setdefault(source, []).append(target)
                taken.add(target)
        return follow

    # -- x ----------------------------------------------------------------------------------------

    def spread(self) -> None:
        """Give each box an x near its neighbours; boxes in a row keep their order and distance."""
        offsets = [self._offsets(row) for row in self.rows]
        for row, offset in zip(self.rows, offsets, strict=True):
            for node, at in zip(row, offset, strict=True):
                self.x[node] = at
        turns = 8 if len(self.ranks) < 2000 else 2
        order = list(zip(self.rows, offsets, strict=True))
        for turn in range(turns):
            neighbours = self.up if turn % 2 == 0 else self.down
            for row, offset in order if turn % 2 == 0 else reversed(order):
                self._settle(row, offset, neighbours)

    def _offsets(self, row: list[int]) -> list[float]:
        """The centres of a row that stands as close as it may."""
        offsets, at = [], 0.0
        for position, node in enumerate(row):
            if position:
                left = row[position - 1]
                gap = self.gaps.side if (left, node) in self.beside else self.gaps.column
                at += self.width[left] / 2 + gap + self.width[node] / 2
            offsets.append(at)
        return offsets

    def _settle(self, row: list[int], offsets: list[float], neighbours: list[list[int]]) -> None:
        """Least movement towards the wished places without overlap: blocks that touch move as one."""
        x = self.x
        blocks: list[tuple[float, float, int]] = []  # sum of wishes, weight, how many boxes
        for node, offset in zip(row, offsets, strict=True):
            near = neighbours[node]
            if len(near) == 1:
                total, weight, count = x[near[0]] - offset, 1.0, 1
            elif near:
                total, weight, count = sum([x[n] for n in near]) / len(near) - offset, 1.0, 1
            else:
                total, weight, count = (x[node] - offset) * 0.1, 0.1, 1
            while blocks and blocks[-1][0] * weight > total * blocks[-1][1]:
                before = blocks.pop()
                total, weight, count = total + before[0], weight + before[1], count + before[2]
            blocks.append((total, weight, count))
        position = 0
        for total, weight, count in blocks:
            shift = total / weight
            for _ in range(count):
                x[row[position]] = shift + offsets[position]
                position += 1

    # -- edges ------------------------------------------------------------------------------------

    def routes(self) -> list[list[Point]]:
        """One polyline per arc."""
        right = max([self.x[n] + self.width[n] / 2 for n in range(self.real)], default=0.0)
        lane = right + 16
        seat = {node: (rank, position) for rank, row in enumerate(self.rows) for position, node in enumerate(row)}
        result: list[list[Point]] = []
        for (source, target, kind), chain in zip(self.arcs, self.passes, strict=True):
            if kind == "order" or source == target:
                result.append([])
                continue
            a, b = self._rect(source), self._rect(target)
            same_row = seat[source][0] == seat[target][0] and seat[target][1] == seat[source][1] + 1
            if chain is not None:
                points: list[Point] = []
                for node in chain:
                    rank = self.ranks[node]
                    points += [(self.x[node], self.top[rank]), (self.x[node], self.top[rank] + self.height[rank])]
                result.append(clipped(a, b, points, "down"))
            elif same_row:
                result.append(clipped(a, b, [], "side"))
            else:
                below = self.top[self.ranks[source]] + self.height[self.ranks[source]] + self.gaps.row * 0.3
                above = self.top[self.ranks[target]] - self.gaps.row * 0.35
                result.append(clipped(a, b, [
                    (a[0] + a[2] * 0.75, below), (lane, below), (lane, above), (b[0] + b[2] * 0.75, above),
                ], "lane"))  # fmt: skip
                lane += 6 if lane < right + 300 else 0
        return result

    def _rect(self, node: int) -> tuple[float, float, float, float]:
        width, height = self.sizes[node]
        return self.x[node] - width / 2, self.top[self.ranks[node]], width, height


def clipped(
    a: tuple[float, float, float, float], b: tuple[float, float, float, float], inner: list[Point], kind: str
) -> list[Point]:
    """A route from the border of `a` to the border of `b` through the points between.

    Rectangles are (x, y, width, height).  Ends: bottom to top for down edges, right to left for side edges,
    for lanes straight below and above the first and the last inner point.
    """
    ax, ay, aw, ah = a
    bx, by, bw, bh = b
    if kind == "side":
        if not inner and ax + aw <= bx:
            y = min(ay + min(ah, 40.0) / 2, by + bh)
            top, bottom = max(ay, by), min(ay + ah, by + bh)
            if top <= bottom:
                y = min(max(y, top), bottom)
                return [(ax + aw, y), (bx, y)]
        return [(ax + aw, ay + ah / 2), *inner, (bx, by + bh / 2)]
    if kind == "lane":
        return [(inner[0][0], ay + ah), *inner, (inner[-1][0], by)]
    if kind == "free":
        return [_border(a, inner[0] if inner else (bx + bw / 2, by + bh / 2)), *inner,
                _border(b, inner[-1] if inner else (ax + aw / 2, ay + ah / 2))]  # fmt: skip
    return [(ax + aw / 2, ay + ah), *inner, (bx + bw / 2, by)]


def _border(rect: tuple[float, float, float, float], towards: Point) -> Point:
    """Where the line from the middle of a rectangle towards a point leaves it."""
    x, y, width, height = rect
    cx, cy = x + width / 2, y + height / 2
    dx, dy = towards[0] - cx, towards[1] - cy
    if dx == 0 and dy == 0:
        return cx, y + height
    scale = min(width / 2 / abs(dx) if dx else float("inf"), height / 2 / abs(dy) if dy else float("inf"))
    return cx + dx * scale, cy + dy * scale


def overlapping(corners: dict[str, Point], sizes: dict[str, Size]) -> bool:
    """Whether any two boxes overlap (a sweep from left to right)."""
    order = sorted(corners, key=lambda id: corners[id][0])
    alive: list[str] = []
    for id in order:
        x, y = corners[id]
        alive = [other for other in alive if corners[other][0] + sizes[other][0] > x + 0.01]
        for other in alive:
            top = corners[other][1]
            if y < top + sizes[other][1] - 0.01 and top < y + sizes[id][1] - 0.01:
                return True
        alive.append(id)
    return False


def _reaches(follow: dict[int, list[int]], start: int, goal: int) -> bool:
    todo = [start]
    while todo:
        node = todo.pop()
        if node == goal:
            return True
        todo.extend(follow.get(node, ()))
    return False


def _with_followers(row: list[int], follow: dict[int, list[int]]) -> list[int]:
    """The row with each follower moved directly behind its leader."""
    followers = {n for leader in row for n in follow.get(leader, ())}
    result: list[int] = []
    for node in row:
        if node in followers:
            continue
        stack = [node]
        while stack:
            current = stack.pop()
            result.append(current)
            stack.extend(reversed(follow.get(current, ())))
    return result
