"""Changes of the user's own source that may remove a graph break: each module makes candidates of one kind.

A rewrite reads source text and returns edits; it runs nothing and imports no torch. It offers nothing where the change would
not keep the meaning; what a test cannot see is said in the candidate's assumption. `source_text` finds nodes and edits lines,
`names` knows what code reads, binds and does, `conditions` writes conditions on values as tensors.  `unfixable` says
why there is no candidate.
"""

from __future__ import annotations

from collections.abc import Callable

from dynascope.compiler.fixes.candidate import Candidate, Problem
from dynascope.compiler.fixes.rewrites import (
    branches,
    empty_rows,
    guards,
    hoist,
    log_values,
    parts,
    printing,
    scalars,
    value_loops,
)

#: in the order in which they are tried: what removes a break first, what only keeps it from doing harm last
REWRITES: tuple[Callable[[Problem], list[Candidate]], ...] = (
    guards.candidates,
    empty_rows.candidates,
    scalars.candidates,
    branches.candidates,
    value_loops.candidates,
    hoist.candidates,
    printing.candidates,
    log_values.candidates,
    parts.candidates,
)
