"""Normalizes texts: replaces what differs between ranks that compile the same code.

Addresses, ids, times and the numbers of processes, threads, ranks and ports are replaced, and folders are removed.  Devices,
process groups without a name and symbols are numbered in the order of their first use, so that rank 3, which uses `cuda:3`
throughout, equals rank 0, which uses `cuda:0`; a rank that uses two devices equals neither.
"""

from __future__ import annotations

import re

_PATH = re.compile(r"(?:[A-Za-z]:)?(?:[\\/][\w.+@~<>-]+)+[\\/](?P<name>[\w.+@<>-]+)")
_VOLATILE = re.compile(
    r"0x[0-9a-fA-F]+"  # an address
    r"|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"  # a UUID
    r"|\b\d{9,}\b"  # an id(), a time
    r"|\b(?P<word>pid|PID|process|thread|rank|port)(?P<sign>[ =:]+)\d+"
)
_DEVICE = re.compile(r"\b(?P<kind>cuda|xpu|hpu|npu|mtia|privateuseone|cpu):(?P<index>\d+)\b|index=(?P<alone>\d+)\b")
_SYMBOL = re.compile(r"\b(?P<kind>[suf]|zuf|z)(?P<number>\d+)\b")
_COLLECTIVE = re.compile(r"_c10d_functional|distributed")
_QUOTED = re.compile(r"(?P<quote>['\"])(?P<name>[\w:.-]+)(?P=quote)(?=\s*\))")
#: torch's name of the default process group
WORLD = "0"


class Normal:
    """Normalizes the texts of one rank, which must come in order.

    `groups`: torch's name of a process group -> a name that is the same on all ranks.
    """

    def __init__(self, groups: dict[str, str] | None = None) -> None:
        self._groups = dict(groups or {})
        self._devices: dict[str, str] = {}
        self._symbols: dict[str, str] = {}

    def text(self, text: str) -> str:
        """The text without folders; addresses, ids and the like (`_VOLATILE`) and device numbers are replaced."""
        text = _PATH.sub(lambda m: m["name"], text) if "/" in text or "\\" in text else text
        text = _VOLATILE.sub(_replace_volatile, text)
        return _DEVICE.sub(self._device, text) if ":" in text or "index=" in text else text

    def code(self, code: str) -> str:
        """The code of a node of an FX graph: like `text`, with symbols and names of process groups replaced, too."""
        code = _SYMBOL.sub(self._symbol, self.text(code))
        if _COLLECTIVE.search(code):
            code = _QUOTED.sub(lambda m: f"'{self.group(m['name'])}'", code)
        return code

    def size(self, size: int | str) -> int | str:
        """A size in a shape, with symbols replaced if it is an expression."""
        return size if isinstance(size, int) else _SYMBOL.sub(self._symbol, size)

    def group(self, name: str) -> str:
        """A process group's name: the one that the program gave it; else "world" (the default group), "group 1", ..."""
        if name == WORLD:
            return self._groups.get(name, "world")
        if name not in self._groups:
            self._groups[name] = f"group {sum(v.startswith('group ') for v in self._groups.values()) + 1}"
        return self._groups[name]

    def device(self, device: str | None) -> str | None:
        return None if device is None else _DEVICE.sub(self._device, device)

    def _device(self, match: re.Match[str]) -> str:
        kind, index = match["kind"], match["index"] or match["alone"]
        if kind == "cpu":
            return "cpu"
        # `index=3` is from `device(type='cuda', index=3)`, another way to write "cuda:3"
        number = self._devices.setdefault(index, f"#{len(self._devices)}")
        return f"{kind}:{number}" if kind else f"index={number}"

    def _symbol(self, match: re.Match[str]) -> str:
        kind = match["kind"]
        count = sum(name.startswith(kind) for name in self._symbols)
        return self._symbols.setdefault(match[0], f"{kind}#{count}")


def basename(file: str) -> str:
    """The last part of a path of any operating system."""
    return re.split(r"[\\/]", file)[-1]


def _replace_volatile(match: re.Match[str]) -> str:
    return f"{match['word']}{match['sign']}#" if match["word"] else "#"
