"""`--region TARGET=error|allow`: another `error_on_graph_break` for a function or for lines of the cell.

`active` resolves the targets of one run's regions, sets the regions while the run lasts and removes them afterwards; `lines`
rewrites statements so that they run inside a region.
"""
