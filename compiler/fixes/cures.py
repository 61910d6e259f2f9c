"""Everything that makes candidates, in the order in which they are tried: settings, rewrites, wraps."""

from __future__ import annotations

from dynascope.compiler.fixes import custom_ops, setting_cures, wraps
from dynascope.compiler.fixes.rewrites import REWRITES, parts
from dynascope.compiler.fixes.search import Cure

#: `parts` comes last: it does not remove a break, it only protects the code around it
CURES: tuple[Cure, ...] = (
    setting_cures.candidates,
    *(rewrite for rewrite in REWRITES if rewrite is not parts.candidates),
    custom_ops.candidates,
    wraps.decorated,
    wraps.called,
    parts.candidates,
)
#: cures that wrap a function for its callers; they are not tried on the compiled function itself
NOT_FOR_ENTRIES: tuple[Cure, ...] = (custom_ops.candidates, wraps.decorated)
