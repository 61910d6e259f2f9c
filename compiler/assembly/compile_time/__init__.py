"""Where the time of the compiles went.

`phases` pairs and nests the compiler's phases, and `autotuning` reads what some of them found; `repeats` finds blocks of code
that were compiled several times.
"""
