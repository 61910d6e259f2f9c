"""Experiments on the user's program: everything that calls it again, or edits it, after the cell has run.

`recorded_call` records a call and repeats it; `reachable` finds the objects that it can reach, `objects` reads and writes their
state, and `snapshot` restores it.  `experiment` runs the call under a variant and observes it; `comparison` compares values.
`check`, `profile` (with `slices` and `segments`), `inputs` and `second_call` are experiments; `graph_run` runs one
captured graph alone, which `graph_rebuild` builds from the report.  `fix` searches for changes.
"""
