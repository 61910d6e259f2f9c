"""The RanksReport: what the ranks of one job compiled, as plain data; needs neither torch nor the ranks' files.

`report` has the RanksReport with its methods, and `schema` its parts.  `merge` makes the RanksReport of many ranks.
`structure` reduces the Report of one rank to hashes of its compiles, with `normal`, which replaces what differs between
equal ranks.  `compare` finds the first compile in which two groups of ranks differ, and `collectives` reads the collectives of
a graph.
"""

from dynascope.compiler.ranks.merge import RankRecord as RankRecord
from dynascope.compiler.ranks.merge import merge as merge
from dynascope.compiler.ranks.report import RanksReport as RanksReport
from dynascope.compiler.ranks.schema import *  # noqa: F403
from dynascope.compiler.ranks.structure import Structure as Structure
from dynascope.compiler.ranks.structure import structure as structure
