"""Every word that a view shows.

`sentences` has those of a report, `comparisons` of a diff and of expectations, `advice` of a graph break, `causes` of groups of
breaks, `recompiles` of recompiles, guards and symbols, `guard_costs` of what guards cost, `fixes` of what `--fix` finds,
`compile_time` of the compiler's phases, `rank_words` of the ranks of a job; `words` has places and text that is safe to show,
`bands` the lines of regions, `syntax` the recorded source, parsed.
"""
