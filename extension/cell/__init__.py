"""A cell as code: text in, statements run.

`source` parses a cell and runs its statements, `ast_tools` reads and makes syntax trees, `mutations` finds the objects that a
cell changes, `tracebacks` shows errors without the frames of torch, dynascope and the notebook, `interrupts` keeps Ctrl-C out
of setup and cleanup.
"""
