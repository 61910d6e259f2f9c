"""The types of drawings, which travel to the browser with the rest of `model.ViewModel`.

Promises: JSON-ready (strings, numbers, booleans, None, lists, dicts); every text in it is already safe to show
(`words.printable`) and belongs in a text node.
"""

from __future__ import annotations

from typing import Literal, TypedDict

from typing_extensions import NotRequired


class Shape(TypedDict):
    """A box or a group of the split graph, placed.

    `region`: "error" or "allow", for a frame whose `error_on_graph_break` is not the run's, and for a break in a region
    (its `lines` name the region).  `contents`: ids of what a fold holds; for a version box, of its graph, and of the later
    versions that the box stands for, with their graphs.
    """

    id: str
    kind: str
    x: float
    y: float
    w: float
    h: float
    title: str
    note: str
    full: str
    tone: NotRequired[int]
    lines: NotRequired[list[str]]
    badge: NotRequired[str]
    group: NotRequired[str]
    region: NotRequired[str]
    contents: NotRequired[list[str]]


#: what an arrow says: a graph stops at a break; a frame is compiled again, continues as a resume function, calls another one,
#: or runs into a break of another one
ArrowKind = Literal["within", "recompiles", "continues", "calls", "hits"]


class Arrow(TypedDict):
    """An edge of the split graph, routed."""

    source: str
    target: str
    kind: ArrowKind
    points: list[list[float]]
    label: NotRequired[str]
    at: NotRequired[list[float]]
    full: str


class Picture(TypedDict):
    """The split graph: frames are `groups`, all else is `boxes`; `folded` says in words what is folded."""

    width: float
    height: float
    groups: list[Shape]
    boxes: list[Shape]
    arrows: list[Arrow]
    folded: str


class Drawn(TypedDict):
    """A picture as SVG (`drawing.split_svg`); `whole`: the same without folds, or ""; `folded`: what is folded, in words.

    `map`: a mark for each frame of a large report, as SVG, or "".
    """

    width: float
    height: float
    folded: str
    svg: str
    whole: str
    map: str


class FxNode(TypedDict):
    """One node of an FX graph; `heat`: its time as a percentage of the slowest node's.

    `reads`: the positions, in the list of nodes, of the nodes that it reads, all of them before it.
    """

    name: str
    op: str
    kind: str
    target: str
    value: str
    reads: list[int]
    full: str
    line: NotRequired[int]
    file: NotRequired[str]
    place: NotRequired[str]
    time: NotRequired[str]
    heat: NotRequired[int]


class FxPicture(TypedDict):
    """The layout of a part of an FX graph: its `folds` if it has any, else the nodes from node `first` on.

    Each box has (x, y, width, height), a title, and a note: a node's value, if another node here reads it, or how many nodes a
    fold holds.  Each edge has the two boxes that it joins (`joined`), and a polyline (`edges`).
    """

    width: float
    height: float
    first: int
    boxes: list[list[float]]
    titles: list[str]
    notes: list[str]
    joined: list[list[int]]
    edges: list[list[list[float]]]
    folds: NotRequired[list[FxFold]]


class FxFold(TypedDict):
    """`count` nodes from node `first` on, drawn as one box; `inside`: the layout of these nodes, unless they are too many."""

    name: str
    first: int
    count: int
    inside: NotRequired[FxPicture]
    heat: NotRequired[int]


class Drawing(TypedDict):
    """Sizes in pixels that the static picture and the front end share."""

    inset: float  # from the border of a frame, a graph or a fold to its text
    break_inset: float  # from the border of a break, whose ends are round, to its text
    title_height: float  # the strip of a frame that has its title
    title_baseline: float  # from the top of a frame to the baseline of its title
    line_height: float  # of each line below the title
    first_line: float  # from the top of a frame to the baseline of the first line below the title
    region_height: float  # the strip above a break that names its region
    corner: float  # the radius of a frame's corners
    box_corner: float  # the radius of a box's corners
    bend: float  # the radius of the bends of arrows
