"""Guards and symbols: what they are about, and the line of the program that made them.

`places` reads stacks, `tree` the guards of a frame, `symbols` its symbols; `recompiles` joins the reasons of a recompile with
the guards of the versions that could not be used.  `undecided` reads what depends on data.
"""
