"""A cell as code: text in, statements run.

`source` parses a cell and runs its statements, `ast_tools` answers questions about syntax trees, `mutations` finds the objects
that a cell changes, `tracebacks` shows errors without the frames of libraries, `interrupts` keeps Ctrl-C out of setup and
cleanup.
"""
