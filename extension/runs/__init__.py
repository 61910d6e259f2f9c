"""One run of a cell.

`cell_run` runs it, `display` shows its report, `history` keeps the reports, `rerun` runs it again from the view.
"""
