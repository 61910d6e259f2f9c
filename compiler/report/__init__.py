"""The Report: plain data about one recording.

`schema` has the recorded data, `guards` the data on guards and symbols, `measurements` the measured data, `fixes` the results
of `--fix`, and `report` the Report with its methods.  `data` has the base of all parts.  `diff`
compares two reports, `expect` compares one with expected counts.  `call_tree` groups the frames of a large report by function,
and `causes` its graph breaks and recompiles by cause.  `outline` has the few facts that docs tests compare, and `formatting`
turns numbers and places into text.
"""
# ruff: noqa: F403

from dynascope.compiler.report.diff import Diff as Diff
from dynascope.compiler.report.fixes import *
from dynascope.compiler.report.formatting import *
from dynascope.compiler.report.guards import *
from dynascope.compiler.report.measurements import *
from dynascope.compiler.report.report import Report as Report
from dynascope.compiler.report.schema import *
