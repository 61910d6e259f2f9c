"""The Report: plain data about one recording.

`schema` has the recorded data, `measurements` the measured data and the results of `--fix`, and `report` the Report with its
methods.  `data` has the base of all parts, and the parts on guards and symbols.  `comparison` compares two reports, or one with
expected counts, and has the few facts that docs tests compare.  `overview` groups the frames of a large report by function, and
its graph breaks and recompiles by cause.  `formatting` turns numbers and places into text.
"""
# ruff: noqa: F403

from dynascope.compiler.report.comparison import Diff as Diff
from dynascope.compiler.report.data import *
from dynascope.compiler.report.formatting import *
from dynascope.compiler.report.measurements import *
from dynascope.compiler.report.report import Report as Report
from dynascope.compiler.report.schema import *
