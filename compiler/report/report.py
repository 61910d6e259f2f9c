"""The Report: everything that one recording learned, as plain data, with methods to look up, compare, save and show it.

The names of the fields are a contract (schema 2): `report.to_dict()` is what is saved, what the views show and what tests
compare.  Apart from `live_fixes`, a Report holds strings, numbers, lists, dicts and the parts of this package.  It keeps
none of the user's tensors, modules or code objects alive.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import msgspec

from dynascope.compiler.formats import make
from dynascope.compiler.report import comparison
from dynascope.compiler.report.comparison import Diff, diff
from dynascope.compiler.report.data import load
from dynascope.compiler.report.formatting import encodable, found
from dynascope.compiler.report.measurements import FixSet, GraphRun
from dynascope.compiler.report.schema import SCHEMA, Break, Frame, Graph, ReportData, Source
from dynascope.compiler.settings import SAVE_SUFFIXES

if TYPE_CHECKING:
    import graphviz

Identified = TypeVar("Identified", Frame, Graph, Break)


class Shown:
    """What the reports of one recording and of all ranks share: text, pages and views are made of them, and saved."""

    __slots__ = ()
    #: what the names of its formats begin with, and the suffixes of the files that `save` can write
    _prefix: ClassVar[str] = ""
    _suffixes: ClassVar[Sequence[str]] = SAVE_SUFFIXES

    def _make(self, name: str) -> Any:
        return make(self._prefix + name, self)

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON-ready data."""
        data: dict[str, Any] = msgspec.to_builtins(self)
        return data

    def save(self, path: str | Path) -> Path:
        """Write the report to a file.

        Args:
            path: its suffix decides what is written: .html, .json or .txt, and of one recording also .svg or .dot. Missing
                folders are created.

        Returns:
            The path.

        Raises:
            ValueError: the suffix is not one of these; nothing is written.
            OSError: the file cannot be written.

        Example:
            report.save("report.html")   # a stand-alone page
            report.save("report.json")   # dynascope.load() reads it
        """
        path = Path(path)
        suffix = path.suffix.lower()
        if suffix not in self._suffixes:
            raise ValueError(f"cannot save this report as {suffix or path.name}: use one of {', '.join(self._suffixes)}")
        text = json.dumps(self.to_dict(), indent=1) if suffix == ".json" else str(self._make(suffix[1:]))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def headline(self) -> str:
        """The one line that is always shown: `f: 2 graphs · 1 graph break · ... · compiled in 0.84 s`."""
        return encodable(self._make("headline"))

    def to_html(self) -> str:
        """A stand-alone page, interactive without a network."""
        return str(self._make("html"))

    def view(self) -> Any:
        """The live view, an anywidget.  `%%compile` displays it by itself; in marimo, make it the last value of a cell."""
        return self._make("view")

    def __str__(self) -> str:
        return encodable(self._make("txt"))

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        bundle: dict[str, str] = self._make("mimebundle")
        return bundle


class Report(Shown, ReportData, kw_only=True, weakref=True):
    """What the compiler did during one recording."""

    def __post_init__(self) -> None:
        # these belong to the session: they are neither saved nor compared
        #: the report of the previous run of the same cell
        self.previous: Report | None = None
        #: the verified fixes, and a weak reference to the function that was compiled, for `fixed()`
        self.live_fixes: Any = None
        #: what gives or applies the patch of the fixes; "" if it is applied anyway
        self.patched_by = "report.patch()"
        #: makes the sources without the lines of guards, which a summary does not show; None: `sources` are made
        self.brief_sources: Callable[[], list[Source]] | None = None
        #: whether the report was loaded from saved data
        self.loaded = False

    # -- looking up ---------------------------------------------------------------------------

    def frame(self, id: str) -> Frame:
        """The frame with this id; raises KeyError if there is none."""
        return _find(self.frames, id)

    def graph(self, id: str) -> Graph:
        """The graph with this id; raises KeyError if there is none."""
        return _find(self.graphs, id)

    def break_(self, id: str) -> Break:
        """The graph break with this id; raises KeyError if there is none."""
        return _find(self.breaks, id)

    # -- saving and loading ---------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON-ready data (schema 2, described by examples/reference/report.schema.json).

        Example:
            data = report.to_dict()
            breaks = [b["line"] for b in data["breaks"]]
        """
        _ = self.sources  # made when first read, with the guards of all frames
        return super().to_dict()

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Report:
        """Load a report from the data that `to_dict` returned.

        Args:
            data: data of schema 2. Unknown keys are ignored; `data` is not changed.

        Returns:
            A new Report, marked as loaded.

        Raises:
            ValueError: the data is not a report, or has another schema. The message is one line that says where the error is.

        Example:
            report = Report.from_dict(json.loads(Path("report.json").read_text()))
            print(report.headline())
        """
        report = load(cls, data, "report", "schema", SCHEMA)
        report.loaded = True
        return report

    # -- summary, comparison, running again -----------------------------------------------------

    def details(self) -> str:
        """The report as text, with its compile time; of a large report, `print(report)` shows only an overview.

        Example:
            print(report.details())
        """
        return encodable(make("details", self))

    def diff(self, before: Report | None) -> Diff:
        """What changed since an earlier report of the same code.

        Args:
            before: the earlier report.

        Returns:
            A Diff: breaks that are new, moved, changed or not met (because they are fixed, or the run did not come to them),
            and the counts that differ. It is false if nothing but times and settings differs.

        Raises:
            ValueError: `before` is no report, as `report.previous` is None after the first run.

        Example:
            if report.previous:
                print(report.diff(report.previous))
        """
        if not isinstance(before, ReportData):
            raise ValueError("diff takes an earlier report; report.previous is None unless the same cell ran before")
        return diff(before, self)

    def expect(self, expected: str = "", /, **counts: int | str) -> Report:
        """Fail if a count is not as expected.

        Args:
            expected: terms such as "graphs=2,breaks<=1" (=, <= or >=) with the names of the summary's counts.
            counts: the expected counts by name, each as a number, or as a string with the sign (`skipped="<=3"`).

        Returns:
            The report itself.

        Raises:
            ExpectationFailed: an AssertionError with the actual counts and their places.
            ValueError: a term cannot be read, or nothing is expected.

        Example:
            report = dynascope.explain(f)(x)
            report.expect("breaks<=1", graphs=2)
        """
        __tracebackhide__ = True
        comparison.check_expectations(self, comparison.read_expectations(expected, **counts))
        return self

    @property
    def from_file(self) -> bool:
        """Whether the report was made from saved data or from TORCH_TRACE logs."""
        return self.loaded or self.origin == "trace"

    def run_graph(self, id: str, *, backend: str | None = None, calls: int = 10) -> GraphRun:
        """Run one captured graph again on its own, with synthetic data of the recorded shapes, eagerly and compiled.

        Args:
            id: id of the graph ("g0").
            backend: the backend that compiles the graph; None: the backend of the run, or "inductor" if that one runs
                eagerly or is a callable.
            calls: number of timed calls of each kind, eager and compiled; fewer are made if the graph is slow.

        Returns:
            A GraphRun: median seconds, speed-up, time of each operation. It is also kept in the graph's `run`, and every view
            shows it.

        Raises:
            KeyError: there is no graph with this id.
            ValueError: the graph cannot be run again, for example because the report is from a file; one sentence says why.

        Example:
            run = report.run_graph("g0")
            print(run.speed_up)
        """
        run: GraphRun = make("run_graph", self, id, backend=backend, calls=calls)
        return run

    # -- fixes ----------------------------------------------------------------------------------

    def fixes_to_apply(self, *, conditional: bool) -> FixSet | None:
        """The verified fixes, together with the conditional ones or without them; None if no fixes were looked for."""
        return self.conditional_fix_set or self.fix_set if conditional else self.fix_set

    def patch(self, *, conditional: bool = False) -> str:
        """The verified fixes as a unified diff that `git apply` takes; "" if there are none.

        `conditional`: with the conditional fixes, too; the condition of each stands above it as a comment.

        Settings of Dynamo become statements after the first imports of the file, and marks on sizes (mark_dynamic) statements
        before the calls.  What fits into no file, such as arguments of torch.compile, becomes comments above the diff; if no
        file changes, there are only these.

        Example:
            report = dynascope.explain(f, fix=True)(x)
            Path("fixes.patch").write_text(report.patch())
        """
        fixes = self.fixes_to_apply(conditional=conditional)
        return "" if fixes is None else fixes.patch

    def fixed(self, *, conditional: bool = False) -> AbstractContextManager[Any]:
        """A context manager that yields the explained function with all verified fixes in force; at its end, all is restored.

        `conditional`: with the conditional fixes, too.

        In the `with` block, every function that the fixes change, also one of a library, has its fixed code, and the settings
        of Dynamo are in force.  You compile the function yourself.  `report.fix_set.settings` says what else that needs: an
        argument of torch.compile (`dynamic`), or sizes to mark before each call (`torch._dynamo.mark_dynamic`).

        Raises:
            ValueError: there are no verified fixes, the report is from a file, or the functions have changed or are gone.

        Example:
            with report.fixed() as g:
                torch.compile(g, fullgraph=True)(x)
        """
        manager: AbstractContextManager[Any] = make("fixed", self, conditional=conditional)
        return manager

    # -- showing --------------------------------------------------------------------------------

    def to_svg(self) -> str:
        """The split graph as one SVG picture."""
        return str(make("svg", self))

    def to_graphviz(self) -> graphviz.Digraph:
        """The split graph as a `graphviz.Digraph`."""
        return make("dot", self)

    def __repr__(self) -> str:
        return f"<report: {self.headline()}>"


def _find(items: Sequence[Identified], id: str) -> Identified:
    return found({item.id: item for item in reversed(items)}, id)
