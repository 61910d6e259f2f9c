"""Everything that makes candidates, in the order in which they are tried: settings, rewrites, wraps."""

from __future__ import annotations

from dynascope.compiler.fixes import custom_ops, setting_cures, wraps
from dynascope.compiler.fixes.rewrites import REWRITES, parts
from dynascope.compiler.fixes.search import Cure

#: `parts` is last: it keeps a break from spoiling what is around it, and leaves it there
CURES: tuple[Cure, ...] = (
    setting_cures.candidates,
    *(rewrite for rewrite in REWRITES if rewrite is not parts.candidates),
    custom_ops.candidates,
    wraps.decorated,
    wraps.called,
    parts.candidates,
)
#: those that change how a function is called, so that they say nothing about the one that is compiled
OF_CALLED: tuple[Cure, ...] = (custom_ops.candidates, wraps.decorated)
