"""One captured graph, run again by itself: `rebuild` makes it from its text, `made_up` its inputs, `graph_runs` measures.

`operations` is the list of what a graph that was read from a file may call.
"""
