"""The RanksReport: what the ranks of one job compiled, as plain data; needs neither torch nor the ranks' files.

`schema` has the parts of a RanksReport; `structure` reduces the Report of one rank to hashes, one for each compile;
`collectives` reads the collectives of its graphs; `compare` finds the first compile in which two ranks differ; `merge` makes
the RanksReport of many ranks; `report` has the RanksReport with its methods, `serialization` converts it to and from JSON-ready
data.
"""

from dynascope.compiler.ranks.merge import RankRecord as RankRecord
from dynascope.compiler.ranks.merge import merge as merge
from dynascope.compiler.ranks.report import RanksReport as RanksReport
from dynascope.compiler.ranks.schema import *  # noqa: F403
from dynascope.compiler.ranks.structure import Structure as Structure
from dynascope.compiler.ranks.structure import structure as structure
