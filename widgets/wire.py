"""The types of a report's model, which travels to the browser; `frontend/wire.d.ts` has the same types for the front end.

Promises: JSON-ready (strings, numbers, booleans, None, lists, dicts); every text in it is already safe to show
(`words.printable`) and belongs in a text node; a test compares the two files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:  # only ever read by type checkers, so it need not be installed
    from typing_extensions import NotRequired


class LensMark(TypedDict):
    """A break on a line: in the columns from `start` up to, but not including, `end`."""

    id: str
    start: int
    end: int
    outcome: str


class LensGuards(TypedDict):
    """A line's guards on values: how many, which ones, and whether the first failed guard of a recompile is from the line."""

    count: int
    full: str
    failed: bool


class LensLine(TypedDict):
    """One line of source.

    `gap`: number of lines left out before it; `region`: "error" or "allow", then the flag and who set it, in words; `quiet`:
    whether it is hidden at first.
    """

    line: int
    text: str
    gap: NotRequired[int]
    graphs: NotRequired[list[int]]
    marks: NotRequired[list[LensMark]]
    state: NotRequired[str]
    reason: NotRequired[str]
    id: NotRequired[str]
    region: NotRequired[list[str]]
    quiet: NotRequired[bool]
    guards: NotRequired[LensGuards]


class LensFile(TypedDict):
    """One file or cell; in a large report, also the number of its breaks and graphs, and whose code it is."""

    file: str
    label: str
    lines: list[LensLine]
    breaks: NotRequired[int]
    graphs: NotRequired[int]
    owner: NotRequired[str]


class Shape(TypedDict):
    """A box or a group of the split graph, placed.

    `region`: "error" or "allow", for a frame whose `error_on_graph_break` is not the run's, and for a break in a region
    (its `lines` name the region).  `contents`: ids of what a fold holds; for a version box, of its graph, and of the later
    versions that the box stands for, with their graphs.  `inside`: the layout of a fold's contents.
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
    inside: NotRequired[Picture]


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
    """`count` nodes from node `first` on, drawn as one box; `inside`: the layout of these nodes."""

    name: str
    first: int
    count: int
    inside: FxPicture
    heat: NotRequired[int]


class FxBody(TypedDict):
    """An FX graph: all of its nodes, and the picture."""

    nodes: list[FxNode]
    picture: FxPicture


class Bar(TypedDict):
    """One figure; `part`: the length of its bar, in percent of the longest."""

    label: str
    value: str
    part: int


class BarGroup(TypedDict):
    """Figures that are compared with one another."""

    title: str
    bars: list[Bar]


class RunBody(TypedDict):
    """A graph run on its own: its figures, empty before it ran; `code`: how to run it in Python, empty if impossible."""

    graph: str
    text: list[str]
    groups: list[BarGroup]
    code: str


class FixRow(TypedDict):
    """One change that may fix a break or recompile: its outcome in words, and its changed lines."""

    words: str
    verdict: Literal["proved", "refused", "untried"]
    gain: str
    assumption: str
    diff: list[str]


class FixBody(TypedDict):
    """The changes for one break or recompile; `cell`: the new text of its cell with all chosen changes, or ""."""

    chosen: list[FixRow]
    others: list[FixRow]
    cell: str


class StageBody(TypedDict):
    """A text of a later stage; without the field `text`, the text is fetched when the user opens it."""

    graph: str
    stage: str
    number: int
    text: NotRequired[str]


class Part(TypedDict):
    """One tab of a detail; what `body` holds depends on `kind`."""

    key: str
    name: str
    kind: Literal["prose", "code", "source", "stack", "graph", "list", "issue", "run", "fix", "stage"]
    body: Any


class SymbolLinks(TypedDict):
    """The symbols in a graph's shapes: what each stands for, and the frame whose detail has their rows."""

    frame: str
    about: dict[str, str]


class Detail(TypedDict):
    """The detail of one selected break, frame, graph or fold."""

    kind: str
    title: str
    code: str
    place: str
    copy: str
    facts: list[list[str]]
    parts: list[Part]
    links: NotRequired[list[list[str]]]
    symbols: NotRequired[SymbolLinks]
    target: NotRequired[str]
    file: NotRequired[str]
    line: NotRequired[int]


class Row(TypedDict):
    """One break in the list of breaks; `outcome_text`: its outcome in words."""

    id: str
    place: str
    code: str
    outcome: str
    outcome_text: str
    type: str
    hits: int
    allowed: bool
    resumes: int
    target: str
    cost: NotRequired[str]


class RecompileRow(TypedDict):
    """One recompile in the list; `place`: the call that needed it; `refused`: whether the recompile limit prevented it."""

    id: str
    name: str
    place: str
    cause: str
    full: str
    facts: str
    refused: bool


class TimeSegment(TypedDict):
    """One stretch of a call, or one phase of the compiler; `x` and `w`: its start and width, as fractions of the whole time."""

    kind: str
    lane: int
    x: float
    w: float
    label: str
    full: str
    id: str
    tone: NotRequired[int]


class Share(TypedDict):
    """The share of one kind of work in a call's time, or in the compile time; `part`: as a fraction."""

    name: str
    kind: str
    part: float
    full: str


class InputRow(TypedDict):
    """One of several inputs; `id`: the first frame that the compiler worked on because of it, or empty."""

    arguments: str
    outcome: str
    words: str
    id: str


class TimeLine(TypedDict):
    """Where the time of a call goes; its segments lie on lanes (the processor, then each stream of a device)."""

    total: str
    call: str
    profiled: str
    lanes: list[str]
    segments: list[TimeSegment]
    shares: list[Share]
    verdict: str
    first: str
    first_id: str
    devices: str
    inputs: list[InputRow]
    inputs_summary: str


class PhaseRow(TypedDict):
    """One of the most expensive phases of the compiler; `id`: the frame in which it took longest, or empty."""

    name: str
    kind: str
    what: str
    own: str
    total: str
    count: int
    where: str
    id: str


class TunedRow(TypedDict):
    """One operation for which kernels were timed; `id`: its frame, or empty."""

    name: str
    tried: str
    best: str
    where: str
    id: str


class CompileTimeLine(TypedDict):
    """Where the time of the compiles went; each lane of the report has a lane here for each depth of nesting."""

    title: str
    total: str
    lanes: list[str]
    segments: list[TimeSegment]
    shares: list[Share]
    rows: list[PhaseRow]
    tuned: list[TunedRow]
    caches: list[str]
    repeats: list[str]
    notes: list[str]


class Chip(TypedDict):
    """A short fact in the header; `id`: what a click selects."""

    text: str
    kind: str
    id: NotRequired[str]
    full: NotRequired[str]


class CausePlace(TypedDict):
    """One break, or one function that was compiled again; `ids`: the breaks or frames that it represents."""

    id: str
    place: str
    code: str
    function: str
    times: int
    owner: str
    ids: list[str]


class CauseRow(TypedDict):
    """Breaks or recompiles that one change may remove; `eager`: functions that run eagerly because of them."""

    id: str
    kind: str
    count: str
    title: str
    fix: str
    cost: str
    eager: list[str]
    places: list[CausePlace]


class CallRow(TypedDict):
    """A call in the tree, or the sum of several quiet calls; the rows below it follow, with a greater `depth`.

    `part`: its time, or else its captured operations, as a percentage of the largest row's; `eager`: how much of `part` is
    eager code; `events`: pairs of kind and words; `folded`: whether the rows below it are hidden at first; `ids`: the breaks,
    frames and graphs that it represents, [] for a sum.
    """

    id: str
    depth: int
    name: str
    place: str
    owner: str
    events: list[list[str]]
    part: int
    eager: int
    folded: bool
    ids: list[str]


class Overview(TypedDict):
    """What a large report opens with.

    `first`: what to do first; `left`: the breaks and recompiles of the other causes; `well`: what is compiled well; `library`:
    the package, other than torch, that most frames are from, or ""; `measured`: whether run times were measured; `by_cost`:
    whether the causes of breaks are sorted by measured costs.
    """

    first: str
    left: str
    first_id: str
    causes: list[CauseRow]
    calls: list[CallRow]
    library: str
    well: str
    measured: bool
    by_cost: bool


class Drawing(TypedDict):
    """Sizes in pixels that the static picture and the front end share."""

    inset: float  # from the border of a frame, a graph or a fold to its text
    break_inset: float  # from the border of a break, whose ends are round, to its text
    title_height: float  # the strip of a frame that has its title
    title_baseline: float  # from the top of a frame to the baseline of its title
    line_height: float  # of each line below the title
    first_line: float  # from the top of a frame to the baseline of the first line below the title
    region_height: float  # the strip above a break that names its region
    fold_head: float  # room for a fold's name above its contents, once it is open
    corner: float  # the radius of a frame's corners
    box_corner: float  # the radius of a box's corners
    bend: float  # the radius of the bends of arrows


class ViewModel(TypedDict):
    """All that a view shows of one report."""

    schema: int
    headline: str
    name: str
    counts: list[list[str]]
    chips: list[Chip]
    first: str
    overview: Overview | None
    split: Picture
    drawing: Drawing
    lens: list[LensFile]
    details: dict[str, Detail]
    breaks: list[Row]
    recompiles: list[RecompileRow]
    time: TimeLine | None
    compile_time: CompileTimeLine | None
    notes: list[str]
    settings: dict[str, Any]
    origin: str
    fixable: bool  # there are breaks or recompiles, and not every fix was tried
