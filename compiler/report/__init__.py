"""The Report: plain data about one recording.

`schema` has its data, `measurements` their measured parts, `fixes` what `--fix` finds, and `report` the methods;
`serialization` saves, validates and loads it, `upgrade` reads older data; `diff` compares two reports, `expect` compares one
with expected counts.  `call_tree` and `causes` give the frames and breaks of a large report in an order for readers.
"""
# ruff: noqa: F403

from dynascope.compiler.report.diff import Diff as Diff
from dynascope.compiler.report.fixes import *
from dynascope.compiler.report.formatting import *
from dynascope.compiler.report.guards import *
from dynascope.compiler.report.measurements import *
from dynascope.compiler.report.report import Report as Report
from dynascope.compiler.report.schema import *
