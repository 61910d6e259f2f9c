"""`--region TARGET=error|allow`: another `error_on_graph_break` for a stretch of code.

`active` finds the regions of one run, sets them while it runs and removes them afterwards; `lines` rewrites statements so that
they run inside a region; `patching` replaces an attribute or a dictionary entry for a while.
"""
