"""Where the time of the compiles went.

`phases` pairs and nests the compiler's phases; `repeats` finds blocks of code that were compiled several times.
"""
