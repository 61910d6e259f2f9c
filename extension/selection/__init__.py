"""Which parts of a cell are compiled.

`named`: what `-f` names; `entry_points`: the functions and modules that the cell defines (`definitions` finds them);
`statements`: the cell's own statements, where it defines nothing (`global_reads` says which names they may read).
"""
