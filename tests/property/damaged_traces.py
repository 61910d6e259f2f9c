"""Damage to TORCH_TRACE logs, made from a seed: each function takes a log's bytes and returns other bytes.

Letters and digits of a record's JSON are not changed into others: torch protects payloads by a sum, but not this.
"""

from __future__ import annotations

import gzip
import json
import random
import re
from collections.abc import Callable
from pathlib import Path

TRACES = Path(__file__).parents[1] / "traces"


def corpus() -> dict[str, bytes]:
    """All logs by name."""
    return {f.name.removesuffix(".log.gz"): gzip.decompress(f.read_bytes()) for f in sorted(TRACES.glob("*.log.gz"))}


def records(log: bytes) -> list[bytes]:
    """The records, each with its payload and without its last line's end."""
    return re.split(rb"\n(?!\t)", log.removesuffix(b"\n"))


def joined(parts: list[bytes]) -> bytes:
    return b"\n".join(parts) + b"\n"


def _some(parts: list[bytes], chance: random.Random, most: int = 4) -> list[int]:
    return sorted(chance.sample(range(len(parts)), min(len(parts), chance.randint(1, most))))


def cut(log: bytes, chance: random.Random) -> bytes:
    return log[: chance.randrange(len(log))]


def lines_deleted(log: bytes, chance: random.Random) -> bytes:
    lines = log.split(b"\n")
    for index in reversed(_some(lines[:-1], chance)):
        del lines[index]
    return b"\n".join(lines)


def lines_doubled(log: bytes, chance: random.Random) -> bytes:
    lines = log.split(b"\n")
    for index in reversed(_some(lines[:-1], chance)):
        lines.insert(index, lines[index])
    return b"\n".join(lines)


def records_deleted(log: bytes, chance: random.Random) -> bytes:
    parts = records(log)
    for index in reversed(_some(parts, chance, 2)):
        del parts[index]
    return joined(parts)


def payload_bytes_changed(log: bytes, chance: random.Random) -> bytes:
    changed = bytearray(log)
    places = [m.start(1) for m in re.finditer(rb"^\t(.+)$", log, re.M)]
    for _ in range(chance.randint(1, 20)):
        if places:
            at = chance.choice(places)
            changed[at] = (changed[at] + chance.randint(1, 255)) % 256
    return bytes(changed)


def heads_broken(log: bytes, chance: random.Random) -> bytes:
    """Bytes that torch never writes there, in the first lines of records."""
    parts = records(log)
    for index in _some(parts, chance):
        line = bytearray(parts[index])
        end = line.find(b"\n") if b"\n" in line else len(line)
        line[chance.randrange(end)] = chance.choice([0, 1, 7, 0x7F + 1, 0xFF])
        parts[index] = bytes(line)
    return joined(parts)


def types_changed(log: bytes, chance: random.Random) -> bytes:
    """Values of other JSON types, in the record itself or in its content."""
    parts = records(log)
    for index in _some(parts, chance, 8):
        head, newline, payload = parts[index].partition(b"\n")
        prefix, _, text = head.partition(b"] {")
        try:
            metadata = json.loads(b"{" + text)
        except ValueError:
            continue
        name = next(iter(metadata))
        target = metadata[name] if isinstance(metadata[name], dict) and metadata[name] and chance.random() < 0.6 else metadata
        key = chance.choice(list(target))
        target[key] = chance.choice(
            [v for v in ("x", 7.5, [1, [2]], {"a": {"b": None}}, True) if type(v) is not type(target[key])]
        )
        parts[index] = prefix + b"] " + json.dumps(metadata).encode() + newline + payload
    return joined(parts)


def crlf(log: bytes, chance: random.Random) -> bytes:
    return log.replace(b"\n", b"\r\n")


def junk_lines(log: bytes, chance: random.Random) -> bytes:
    lines = log.split(b"\n")
    for _ in range(chance.randint(1, 6)):
        junk = chance.choice([b"hello", b"\x00\xff", b"\t", b"V1122 99:00:00.000000 1 a.py:1] {}", b"{" * 5000, b"\tmore"])
        lines.insert(chance.randrange(len(lines)), junk)
    return b"\n".join(lines)


def packed_and_cut(log: bytes, chance: random.Random) -> bytes:
    packed = gzip.compress(log, 1)
    return packed[: chance.randrange(20, len(packed))]


DAMAGE: dict[str, Callable[[bytes, random.Random], bytes]] = {
    f.__name__: f
    for f in (
        cut, lines_deleted, lines_doubled, records_deleted, payload_bytes_changed,
        heads_broken, types_changed, crlf, junk_lines, packed_and_cut,
    )
}  # fmt: skip
#: damage that a log does not always show: a record that is gone, or comes twice, looks as if torch had written the log so
SILENT = {"lines_deleted", "lines_doubled", "records_deleted"}
