"""The process groups of torch.distributed, with their ranks and what the program calls them."""

from __future__ import annotations

import sys
from typing import Any


def process_groups() -> dict[str, tuple[str | None, list[int] | None]]:
    """torch's name of each group -> (its description, its ranks in the job); empty if torch does not list them."""
    c10d: Any = sys.modules.get("torch.distributed.distributed_c10d")
    world: Any = getattr(c10d, "_world", None)
    try:
        named = {group: str(name) for group, name in dict(world.pg_names).items()}
        ranks = dict(world.pg_group_ranks)
        return {name: (_description(group), sorted(ranks.get(group) or {}) or None) for group, name in named.items()}
    except (AttributeError, RuntimeError, TypeError):
        return {}


def _description(group: Any) -> str | None:
    """What the program calls a group: "default_pg", "mesh_tp"; None: nothing ("undefined")."""
    text = getattr(group, "group_desc", None)
    return None if text in (None, "", "undefined") else str(text)
