"""The code of one cell, and which parts of it are compiled.

`source` turns the cell's text into code and runs it, `interrupts` and `tracebacks` are about how it ends.  `targets` finds what
can be compiled: definitions in the cell, and objects of a name.  `named` compiles what `-f` names, `entry_points` the functions
and modules that the cell defines, and `statements` the cell's own statements if it defines neither.  `regions` puts parts of it
into regions for `--region`.
"""
