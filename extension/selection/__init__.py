"""Which parts of a cell are compiled.

`named` compiles what `-f` names, `entry_points` the functions and modules that the cell defines (`definitions` finds them), and
`statements` the cell's own statements if it defines neither (`global_reads` finds the names that they may read).
"""
