"""One run of a cell.

`cell_run` runs it from check to report, `compiled_cell` has the right parts compiled, `display` shows the report, `history`
keeps earlier ones, `saving` and `inputs` check `--save` and `--inputs`.  `rerun` runs the cell again from its view:
`view_target` finds what the view points at, `rerun_output` collects what the run prints.
"""
