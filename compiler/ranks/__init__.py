"""The RanksReport: many ranks of one job as plain data, without torch, clock or files.

`schema` has its parts; `structure` reduces the Report of one rank to hashes, one for each compile; `collectives` reads the
collectives of its graphs; `compare` finds the first compile in which two ranks differ; `merge` makes the RanksReport of many
ranks; `report` has its methods, `serialization` saves and loads it.
"""

from dynascope.compiler.ranks.merge import RankRecord as RankRecord
from dynascope.compiler.ranks.merge import merge as merge
from dynascope.compiler.ranks.report import RanksReport as RanksReport
from dynascope.compiler.ranks.schema import *  # noqa: F403
from dynascope.compiler.ranks.structure import Structure as Structure
from dynascope.compiler.ranks.structure import structure as structure
