"""Everything that makes candidates, in the order in which they are tried: settings, rewrites, wraps."""

from __future__ import annotations

from dynascope.compiler.fixes import setting_cures, wraps
from dynascope.compiler.fixes.rewrites import REWRITES
from dynascope.compiler.fixes.search import Cure

CURES: tuple[Cure, ...] = (setting_cures.candidates, *REWRITES, wraps.candidates)
