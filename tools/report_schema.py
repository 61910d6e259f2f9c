"""docs/report.schema.json: the JSON Schema of a saved report, made from the dataclasses of `dynascope.compiler.report`.

python -m tools.report_schema           print it
python -m tools.report_schema --write   put it into docs/
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from dynascope.compiler.report import Report
from dynascope.compiler.report.serialization import json_schema

TARGET = Path(__file__).resolve().parent.parent / "docs" / "report.schema.json"


def text() -> str:
    """The file as it should be."""
    return json.dumps(json_schema(Report), indent=1) + "\n"


def main(arguments: list[str]) -> int:
    """Print the schema, or write it."""
    if "--write" in arguments:
        TARGET.write_text(text(), encoding="utf-8")
    else:
        print(text(), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
