"""The Report: plain data about one recording.

`schema` and `measurements` have its parts, `data` the whole without methods and `report` with them; `serialization` saves,
validates and loads it, `upgrade` reads older data; `diff` compares two reports, `expect` compares one with expected counts.
"""

from dynascope.compiler.report.report import *  # noqa: F403
