"""Guards and symbols: what each is about, and the line of the program that made it.

`places` reads the stacks of guards and symbols, `tree` reads the guards of a frame, and `symbols` its symbols;
`compiled_version` combines them.  `recompiles` joins the reasons of a recompile with the guards of the versions that could not
be used.  `undecided` finds the condition or number that depends on data at a break.
"""
