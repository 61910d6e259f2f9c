"""Write requirements/constraints.txt from what is installed in this environment (`make pins`).

torch is left out: its version is chosen by `make`.  A pin that Python 3.10 cannot have gets a marker;
lines for Python 3.10 alone (made by hand, from a resolution under 3.10) are kept as they are.
"""

from __future__ import annotations

import re
import sys
from importlib import metadata
from pathlib import Path

TARGET = Path(__file__).resolve().parent.parent / "requirements" / "constraints.txt"
OLD_PYTHON = '; python_version < "3.11"'
NEW_PYTHON = ' ; python_version >= "3.11"'
NOT_PINNED = {"dynascope", "pip", "torch"}
HEADER = """\
# What `make` installs: the versions that the whole test suite passed with.  torch itself is chosen by `make TORCH=...`.
# To renew: upgrade in .venv, run `make test`, then `make pins`.
"""


def canonical(name: str) -> str:
    """The name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def lines(kept: list[str]) -> list[str]:
    """The pins, sorted; `kept` are the present lines, of which those for the oldest Python stay."""
    pins = {}
    for found in metadata.distributions():
        name = canonical(found.metadata["Name"])
        if name in NOT_PINNED:
            continue
        needs = str(found.metadata.json.get("requires_python") or "")
        too_new = re.search(r">=?\s*3\.1[1-9]", needs) is not None
        pins[name] = "{}=={}{}".format(name, found.version.partition("+")[0], NEW_PYTHON if too_new else "")
    old = [line for line in kept if line.endswith(OLD_PYTHON)]
    return sorted([*pins.values(), *old])


def main() -> int:
    """Rewrite the file in place."""
    kept = TARGET.read_text().splitlines() if TARGET.exists() else []
    found = lines(kept)
    TARGET.write_text(HEADER + "\n".join(found) + "\n")
    print(f"{TARGET}: {len(found)} pins")
    return 0


if __name__ == "__main__":
    sys.exit(main())
