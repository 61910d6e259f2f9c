"""Checks that a backend or a device that the user names exists here."""

from __future__ import annotations

import difflib

from dynascope.compiler.torch_private import internals


def check_backend(name: str) -> None:
    """Raise ValueError, in one line that says what to do, where torch has no backend of this name."""
    known = internals.backends()
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1)
        cure = f"did you mean {close[0]}?" if close else "use eager, aot_eager, or one of torch.compiler.list_backends()"
        raise ValueError(f"unknown backend {name!r}: {cure}")


def check_device(name: str) -> None:
    """Raise ValueError, in one line that says what to do, where this device is not available."""
    import torch

    try:
        device = torch.device(name)
    except RuntimeError:
        raise ValueError(f"unknown device {name!r}: write it as torch does, for example cpu, cuda, cuda:1, mps") from None
    if device.type in ("cpu", "meta"):
        return
    module = getattr(torch, device.type, None)
    if module is None or not getattr(module, "is_available", lambda: False)():
        raise ValueError(f"device {name!r} is not available here: leave --device out, or use cpu")
    count = getattr(module, "device_count", lambda: 1)()
    if device.index is not None and device.index >= count:
        raise ValueError(f"device {name!r} is not available here: there {'is' if count == 1 else 'are'} {count} of them")
