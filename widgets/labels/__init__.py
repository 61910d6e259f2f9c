"""Turns facts of a report into the words that views show.

`summary` has words about a report as a whole, `run_time` about run times and what breaks and guards cost, `comparisons` about
diffs and expectations, `advice` about a graph break, `causes` about causes of breaks and recompiles, `recompiles` about
recompiles, guards and symbols, `fixes` about what `--fix` finds, `compile_time` about the compiler's phases, `rank_words` about
the ranks of a job.  `words` makes text safe to show and names places, `bands` finds the lines of regions, `syntax` parses the
source.
"""
