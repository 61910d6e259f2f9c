"""The choices for a compile: backends, modes, options and flags of the compiler's configuration."""

from __future__ import annotations

import contextlib
import difflib
import typing
from collections.abc import Iterator
from typing import Any

from dynascope.compiler.torch_private.availability import guarded


def backends() -> list[str]:
    """Names of every backend that torch.compile takes."""
    import torch._dynamo

    return sorted(torch._dynamo.list_backends(exclude_tags=()))


def modes() -> list[str]:
    """The modes that Inductor knows; [] if this torch does not list them."""
    import torch._inductor

    with guarded("Inductor's modes"):
        return list(torch._inductor.list_mode_options())
    return []


def refused_option(options: dict[str, Any]) -> str | None:
    """Why Inductor would refuse one of these options, in one line; None if it accepts them all."""
    if not options:
        return None
    import torch._inductor.config as inductor

    config: Any = inductor
    with guarded("Inductor's options"):
        known = config.get_config_copy()
        for name, value in options.items():
            name = name.replace("-", "_")
            if name not in known:
                close = difflib.get_close_matches(name, known, n=1)
                return f"Inductor has no option {name!r}" + (f": did you mean {close[0]}?" if close else "")
            kind = config.get_type(name)
            if typing.get_origin(kind) is None and not isinstance(value, kind):
                return f"Inductor's option {name} takes a {type(known[name]).__name__}, not {value!r}"
    return None


def has_nested_graph_breaks() -> bool:
    """Whether this torch can resume all callers of a break at once."""
    import torch._dynamo

    return hasattr(torch._dynamo.config, "nested_graph_breaks")


@contextlib.contextmanager
def dynamo_config(**values: Any) -> Iterator[None]:
    """Set these values in torch._dynamo.config for the duration; restored exactly."""
    import torch._dynamo

    config: Any = torch._dynamo.config
    with config.patch(**values):
        yield


@contextlib.contextmanager
def no_caches() -> Iterator[None]:
    """Turn off Inductor's and AOTAutograd's caches for the duration; restored exactly.

    Not torch's `force_disable_caches`: that one warns in the user's notebook.
    """
    import torch._functorch.config as functorch
    import torch._inductor.config as inductor

    off = {
        inductor: ("fx_graph_cache", "fx_graph_remote_cache"),
        functorch: ("enable_autograd_cache", "enable_remote_autograd_cache"),
    }
    with contextlib.ExitStack() as stack:
        for module, names in off.items():
            config: Any = module
            stack.enter_context(config.patch({name: False for name in names if hasattr(config, name)}))
        yield


def has_dynamo_setting(name: str) -> bool:
    """Whether torch._dynamo.config has this name."""
    import torch._dynamo

    return hasattr(torch._dynamo.config, name)
