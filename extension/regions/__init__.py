"""`--region TARGET=error|allow`: another `error_on_graph_break` for a stretch of code.

`active` resolves the targets of one run's regions, sets the regions while it runs and removes them afterwards; `lines` rewrites
statements so that they run inside a region.
"""
