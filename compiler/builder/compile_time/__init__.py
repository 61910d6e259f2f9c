"""Where the time of the compiles went.

`phases` pairs the beginnings and ends of the compiler's phases, and nests them; `autotuning` reads which kernels were fastest;
`repeats` finds blocks of code that were compiled several times.
"""
