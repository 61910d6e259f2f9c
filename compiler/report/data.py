"""`Part`, the base of all parts of reports, and the parts on places in the program, guards and symbols in shapes.

Unknown keys are ignored, so that reports of later versions with additional keys can be loaded.  Another schema is refused.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import msgspec

from dynascope.compiler.parsing import errors_as


class Part(msgspec.Struct, kw_only=True, rename={"break_": "break"}):
    """Plain data."""


class Later:
    """Calls a function once, when the first of the fields that it makes is read, in any thread."""

    def __init__(self, make: Callable[[], None]) -> None:
        self._make: Callable[[], Any] = make
        self._lock = threading.RLock()

    def __call__(self) -> None:
        with self._lock:
            self._make()
            self._make = bool  # frees what the fields were made of; after an interrupt, they can still be made


def _read(part: Any, method: Any, *others: Any) -> Any:
    """Call a method of structs, which reads all fields below `__getattr__`: the fields that are left out are made first."""
    for each in (part, *others):
        getattr(each, "_make_left", bool)()
    return method(part, *others)


class LazyPart(Part, kw_only=True, dict=True):
    """A part with fields that may be made when one of them is first read, because making them takes long."""

    def leave(self, make: Later, *fields: str) -> None:
        """Leave these fields out until one of them is read: `make` sets all of them then."""
        for field in fields:
            delattr(self, field)
        self.__dict__["_make_left"] = make

    if not TYPE_CHECKING:  # its fields have types
        __repr__, __rich_repr__, __eq__, __ne__, __reduce__ = (
            functools.partialmethod(_read, getattr(msgspec.Struct, name))
            for name in ("__repr__", "__rich_repr__", "__eq__", "__ne__", "__reduce__")
        )
        __copy__ = None  # `copy.copy` then goes by `__reduce__`

        def __getattr__(self, name: str) -> Any:
            if name in self.__struct_fields__:
                self._make_left()
            return object.__getattribute__(self, name)


class SparsePart(Part, kw_only=True, omit_defaults=True):
    """A part of which a report may have thousands: fields that have their default value are left out of the data."""


AnyReport = TypeVar("AnyReport", bound=Part)


def load(cls: type[AnyReport], data: Any, what: str, key: str, version: int) -> AnyReport:
    """The report in this data; `what`: its name in errors; `key`, `version`: the field with the schema that it must have.

    Raises ValueError, with a one-line message that says where the error is.
    """
    if not isinstance(data, dict) or key not in data:
        raise ValueError(f"not a dynascope {what}: no {key!r} in it")
    schema = data[key]
    if schema != version or isinstance(schema, bool):
        update = ": update dynascope" if type(schema) is int and schema > version else ""
        raise ValueError(f"{what} of schema {schema!r}; this dynascope reads schema {version}{update}")
    with errors_as(ValueError, f"not a dynascope {what}: ", (msgspec.ValidationError,)):
        return msgspec.convert(data, cls)


FailedGuardKind = Literal[
    "size", "dtype", "rank", "stride", "requires_grad", "tensor class", "device", "not a tensor", "type", "object", "length",
    "not empty", "missing", "global state", "value", "range", "minimum", "none", "new attribute", "none found", "freed",
    "expression", "unknown",
]  # fmt: skip
#: what needed a guard.  "code": the program read the value (a branch, a Python number that is used); "operation": an
#: operation's rule on shapes (broadcasting); "compiler": torch itself (0/1 specialization, its global state)
GuardOrigin = Literal["code", "operation", "compiler", "unknown"]
#: what asked for a guard on the least value of a size; the line that torch prints beside it is only that of the first use
ZERO_ONE = "0/1 specialization"
#: why a size or number is a symbol.  "automatic": it is not known to be marked or set, and the frame was compiled before;
#: "marked": by `mark_dynamic` or the like; "setting": `dynamic=True`; "data": it depends on data, or `mark_unbacked` marks it
DynamicCause = Literal["automatic", "marked", "setting", "data", "unknown"]


class Place(Part, kw_only=True):
    """A line of a file or cell, or several; the base of all parts with a place that is known."""

    file: str
    line: int
    end_line: int | None = None
    cell: int | None = None


class PerhapsPlaced(Part, kw_only=True):
    """A line of a file or cell; None: unknown, or there is none.  The base of the parts that need not have a place."""

    file: str | None = None
    line: int | None = None
    #: execution count of the notebook cell
    cell: int | None = None


class StackEntry(Place, kw_only=True):
    """One entry of the program's stack; stacks are lists of entries, outermost first."""

    function: str = ""
    column: int | None = None
    end_column: int | None = None
    source: str = ""

    def __hash__(self) -> int:
        return hash((self.file, self.line, self.function, self.column))


class Guard(SparsePart, kw_only=True):
    """A condition under which compiled code may be used again."""

    #: the compiler's name for this kind of guard (TENSOR_MATCH, EQUALS_MATCH); SHAPE for a condition on symbols
    kind: str
    #: the condition in readable form ("x is a float32 tensor of shape [3]")
    text: str
    #: the guarded expression ("self.scale", "x.size()[0]")
    source: str | None = None
    origin: GuardOrigin = "unknown"
    #: the function of torch that needed the guard ("infer_size"), or torch's words for the reason
    asked_by: str | None = None
    #: how many guards of the site this one stands for, itself included: those that differ only in indices
    count: int = 1


class GuardSite(SparsePart, kw_only=True):
    """A line in a frame's code, or in code that it calls, and the guards on the user's data that tracing the line made.

    A line without guards is a site if it calls one that has guards.
    """

    #: the line; None: unknown
    at: StackEntry | None = None
    #: index of the site with the call that leads here; None: the line is in the frame's own function, or the caller is unknown
    caller: int | None = None
    #: whether the line is in torch's code (an nn.Linear); the line of the program is then that of a caller
    in_torch: bool = False
    guards: list[Guard] = []


def site_stack(sites: list[GuardSite], index: int) -> list[int]:
    """Indices of the sites that lead to a site, and of the site itself, outermost first."""
    stack = [index]
    while (caller := sites[stack[0]].caller) is not None and caller not in stack:
        stack.insert(0, caller)
    return stack


def site_place(sites: list[GuardSite], index: int) -> StackEntry | None:
    """The line of the program that made a site's guards: the innermost one outside torch."""
    return next((sites[i].at for i in reversed(site_stack(sites, index)) if not sites[i].in_torch), None)


class Made(Part, kw_only=True):
    """What the compiler made at a line of the program, and what needed it; the base of the parts on guards."""

    #: the line; None: unknown
    at: StackEntry | None = None
    #: the stack at that line; [] if it would only repeat `at`
    stack: list[StackEntry] = []
    origin: GuardOrigin = "unknown"
    asked_by: str | None = None


class Constraint(SparsePart, Made, kw_only=True):
    """A condition on symbols that must hold for the compiled code, and the line that needed it."""

    #: the condition as the compiler writes it ("Eq(s77, 5)")
    expression: str
    #: the condition with each symbol replaced by its source ("x.size()[0] == 5")
    text: str = ""
    #: the only value that the condition allows for its symbol; None: it allows several
    value: str | None = None


class Symbol(SparsePart, kw_only=True):
    """A symbol that stood for a size or a number when a frame was traced."""

    name: str
    #: the tensor whose size the symbol stands for, or the number ("x"); None: not an input ("u0" depends on data)
    source: str | None = None
    #: the dimension of the tensor; None: the symbol stands for a number
    dimension: int | None = None
    #: value of the symbol in the traced call
    hint: str | None = None
    #: least and greatest value of the symbol, as the compiler writes them ("2", "int_oo")
    low: str | None = None
    high: str | None = None
    dynamic: DynamicCause = "unknown"
    #: the line of the first use, where the symbol was created
    at: StackEntry | None = None
    stack: list[StackEntry] = []
    constraints: list[Constraint] = []

    @property
    def value(self) -> str | None:
        """The only value that the symbol may have; None if tracing did not specialize it."""
        return next((c.value for c in self.constraints if c.value is not None), None)


class FailedGuard(Made, kw_only=True):
    """Why compiled code could not be used again: what it expected, and what it got."""

    #: what the guard checks; "none found": all guards held when Dynamo looked for the reason; "freed": the object that the
    #: code was compiled for no longer exists; "expression": only `text` is known, the compiler's expression
    kind: FailedGuardKind = "unknown"
    #: the guarded expression, as the user would write it ("x", "self.scale"), or the name of a global state
    source: str | None = None
    #: the dimension of a size or stride
    dimension: int | None = None
    #: the value that the code was compiled for; for an object, its type; for a range or a minimum, its least value
    before: str | None = None
    #: the value that did not fit; for a range, its greatest value; for a new attribute, its name
    now: str | None = None
    text: str = ""
    #: the compile that made the guard ("0/1")
    compile_id: str | None = None
    #: the value in the call that needed a recompile; for an expression, the values of the sizes in it
    actual: str | None = None
    #: the compiler's own explanation or advice; None: it gives none
    hint: str | None = None
