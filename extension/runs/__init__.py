"""One run of a cell.

`cell_run` runs it, from the check of its input to the report, and has the right parts compiled; `display` shows the report;
`rerun` runs the cell again from its view.
"""
