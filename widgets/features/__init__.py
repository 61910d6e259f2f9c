"""What views say about a report, one module a feature: its words, its data for the view, and its lines for a terminal.

`places` is the index of a report that all of them use, `regions` finds the regions that set a flag.  `summary` has the headline
and what stands beside it, `breaks`, `frames` and `graphs` have the lists and details of these, `recompiles` also guards and
symbols, `fixes` what `--fix` found, `run_time` and `compile_time` what was measured, `source_view` the lines of the source, and
`overview` what a large report opens with.  `comparisons` is about diffs and expectations, `ranks` about the ranks of a job.
"""
