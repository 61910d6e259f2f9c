"""Jobs of several processes: what the ranks of one job compiled, where it differs, and how it gets into one RanksReport.

`report` has the RanksReport.  `recorder` writes the file of the rank that runs in this process.  `folder` reads the files of
all ranks, or the same from their TORCH_TRACE logs, and `merge` makes the RanksReport: `structure` reduces each rank to hashes,
reads the collectives of a graph, and has the content of a rank's file, `compare` finds the first step in which two groups
differ.
"""

from dynascope.compiler.ranks.merge import merge as merge
from dynascope.compiler.ranks.report import *  # noqa: F403
from dynascope.compiler.ranks.structure import RankRecord as RankRecord
