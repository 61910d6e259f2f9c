"""One run of a cell.

`cell_run` runs it, from the check of its input to the report; `compiled_cell` has the right parts compiled; `display` shows the
report, `history` keeps earlier ones, `saving` saves it, `inputs` checks `--inputs`, and `fixed_cell` puts fixes into the text
of the cell.  `rerun` runs the cell again from its view: `view_target` finds what a click points at, `rerun_output` shows the
output of the run in the view.
"""
