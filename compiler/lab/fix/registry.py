"""The sources of candidates for graph breaks.  `search` itself asks `setting_changes` and `counters` about recompiles."""

from __future__ import annotations

from dynascope.compiler.lab.fix import custom_ops, setting_changes, wraps
from dynascope.compiler.lab.fix.rewrites import (
    branches,
    empty_rows,
    hoist,
    log_values,
    parts,
    printing,
    raise_checks,
    scalars,
    value_loops,
)
from dynascope.compiler.lab.fix.search import CandidateSource

#: in the order in which they are tried: `parts` is last, because it leaves the break and only keeps the code around it compiled
CANDIDATE_SOURCES: tuple[CandidateSource, ...] = (
    setting_changes.candidates,
    raise_checks.candidates,
    empty_rows.candidates,
    scalars.candidates,
    branches.candidates,
    value_loops.candidates,
    hoist.candidates,
    printing.candidates,
    log_values.candidates,
    custom_ops.candidates,
    wraps.decorated,
    wraps.called,
    parts.candidates,
)
#: sources that wrap a function for its callers: not asked about the functions that the run compiles
NOT_FOR_ENTRIES: tuple[CandidateSource, ...] = (custom_ops.candidates, wraps.decorated)
