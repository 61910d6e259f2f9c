"""Experiments on the user's program: everything that calls it again, or edits it, after the cell has run.

`recorded_call` keeps the inputs of a call while the cell runs, repeats it afterwards and restores what it changes; `objects`
finds the objects that it can reach, and reads and writes their state.  `experiment` runs the call under a variant and
observes it; `comparison` compares values. `check`, `profile` (with `slices`), `inputs` and `second_call` are experiments;
`graph_run` builds one captured graph from the report, and runs it alone.  `fix` searches for changes.
"""
