"""The Report: plain data about one recording.

`schema` has its parts, `report` the whole, `diff` compares two reports, `expect` holds one to expected counts.
"""

from dynascope.compiler.report.report import *  # noqa: F403
