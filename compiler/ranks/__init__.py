"""Jobs of several processes: what the ranks of one job compiled, where it differs, and how it gets into one RanksReport.

`report` has the RanksReport.  `recorder` writes the file of the rank that runs in this process (`identity` knows which one that
is), `record` has that file's content, and `logs` reads the same from a TORCH_TRACE log.  `folder` reads the files of all ranks,
and `merge` makes the RanksReport: `structure` reduces each rank to hashes, `compare` finds the first step in which two groups
differ, and `collectives` reads the collectives of a graph.
"""

from dynascope.compiler.ranks.merge import merge as merge
from dynascope.compiler.ranks.record import RankRecord as RankRecord
from dynascope.compiler.ranks.report import *  # noqa: F403
from dynascope.compiler.ranks.structure import Structure as Structure
from dynascope.compiler.ranks.structure import structure as structure
