"""Which is right where compiled and eager code differ, where the difference begins, what makes it, and what helps.

`verdict` compares both with a run in float64.
"""
