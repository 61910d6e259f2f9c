"""Everything that makes candidates, in the order in which they are tried: settings, rewrites, wraps."""

from __future__ import annotations

from dynascope.compiler.fixes import custom_ops, setting_changes, wraps
from dynascope.compiler.fixes.rewrites import (
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
from dynascope.compiler.fixes.search import CandidateSource

#: in the order in which they are tried: what removes a break first; `parts`, which only protects the code around it, last
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
#: those that wrap a function for its callers; they are not tried on the compiled function itself
NOT_FOR_ENTRIES: tuple[CandidateSource, ...] = (custom_ops.candidates, wraps.decorated)
