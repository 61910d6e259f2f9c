"""The Report: plain data about one recording.

`schema`, `measurements` and `fixes` have its parts, `data` the whole without methods and `report` with them; `serialization`
saves, validates and loads it, `upgrade` reads older data; `diff` compares two reports, `expect` one with expected counts.
"""
# ruff: noqa: F403

from dynascope.compiler.report.data import *
from dynascope.compiler.report.diff import Diff as Diff
from dynascope.compiler.report.fixes import *
from dynascope.compiler.report.formatting import *
from dynascope.compiler.report.guards import *
from dynascope.compiler.report.lowerings import *
from dynascope.compiler.report.measurements import *
from dynascope.compiler.report.report import Report as Report
from dynascope.compiler.report.schema import *
