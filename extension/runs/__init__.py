"""One run of a cell.

`cell_run` runs it, from the check of its input to the report, and has the right parts compiled, inside the driver's run,
which also searches for fixes; `display` shows a live view from the beginning, and the report at the end; `rerun` runs the
cell again from its view.
"""
