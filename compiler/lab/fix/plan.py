"""A plan: candidates that are applied together, as texts of files and settings of the compiler."""

from __future__ import annotations

import contextlib
import functools
import importlib
import linecache
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dynascope.compiler.capture.torch_private import config
from dynascope.compiler.lab.fix import live_edit
from dynascope.compiler.lab.fix.candidate import Candidate, Condition
from dynascope.compiler.lab.fix.text_edits import NotApplicable, with_edits
from dynascope.compiler.patching import ABSENT

#: prefix of the names of Dynamo's settings; all other settings are those of COMPILE, and MARK
DYNAMO = "torch._dynamo.config."
#: arguments of torch.compile that a candidate may set
COMPILE = ("dynamic",)
#: the setting that lists the marks that callers set on arguments: "x, 0" marks dimension 0 of x
MARK = "torch._dynamo.mark_dynamic"
#: the setting of a call in eager mode before the compiled one: the stance of that call
WARM_UP = "torch.compiler.set_stance"


@dataclass(frozen=True)
class Plan:
    """Edited texts of files, and settings, together with what the verification must know about them."""

    texts: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, object] = field(default_factory=dict)
    #: the texts before any edit, of the files in `texts`
    originals: Mapping[str, str] = field(default_factory=dict)
    #: conditions in the edited code, as in `Candidate`
    tests: tuple[Condition, ...] = ()

    def text(self, file: str) -> str:
        """The text of a file under this plan; "" if it cannot be read."""
        return self.texts[file] if file in self.texts else "".join(linecache.getlines(file))

    def with_candidate(self, candidate: Candidate) -> Plan:
        """This plan with one more candidate; raises NotApplicable if the candidate does not fit or changes nothing."""
        texts, originals = dict(self.texts), dict(self.originals)
        for file in dict.fromkeys(edit.file for edit in candidate.edits):
            before = self.text(file)
            originals.setdefault(file, before)
            texts[file] = with_edits(before, [edit for edit in candidate.edits if edit.file == file])
            if texts[file] == before:
                raise NotApplicable("it changes nothing")
        settings = _merged(self.settings, candidate.settings)
        if not candidate.edits and settings == self.settings:
            raise NotApplicable("it is in force already for others")
        return replace(self, texts=texts, originals=originals, settings=settings, tests=(*self.tests, *candidate.tests))

    @contextlib.contextmanager
    def in_force(self, helpers: Mapping[str, Any] | None = None) -> Iterator[None]:
        """Apply the edits and the settings of Dynamo for the duration; raises NotApplicable if one cannot be applied.

        `helpers`: as in `live_edit.in_force`.
        """
        values = {name.removeprefix(DYNAMO): v for name, v in self.settings.items() if name.startswith(DYNAMO)}
        missing = [name for name in values if config.dynamo_setting(name) is ABSENT]
        if missing:
            raise NotApplicable(f"this torch has no {DYNAMO}{missing[0]}")
        live = {n: {*config.dynamo_setting(n), *map(resolved, v)} if isinstance(v, list) else v for n, v in values.items()}
        with live_edit.in_force(self.originals, self.texts, helpers), config.dynamo_config(**live):
            yield

    @property
    def marks(self) -> list[str]:
        """Dimensions of arguments that are marked as dynamic, as in `MARK`."""
        found = self.settings.get(MARK)
        return list(map(str, found)) if isinstance(found, list) else []


#: (plan before, plan with a conditional change, the condition under which it holds) for each
Conditions = Sequence[tuple[Plan, Plan, str]]


def _merged(settings: Mapping[str, object], more: Mapping[str, object]) -> dict[str, object]:
    merged = dict(settings)
    for name, value in more.items():
        before = merged.get(name)
        both = isinstance(before, list) and isinstance(value, list)
        merged[name] = list(dict.fromkeys([*before, *value])) if both else value  # type: ignore[misc]
    return merged


def resolved(name: str) -> Any:
    """The object with this dotted name; raises NotApplicable if its module cannot be imported.

    Raises AttributeError if the module lacks the object.
    """
    parts = name.split(".")
    for length in range(len(parts) - 1, 0, -1):
        with contextlib.suppress(ImportError):
            return functools.reduce(getattr, parts[length:], importlib.import_module(".".join(parts[:length])))
    raise NotApplicable(f"there is no {name}")
