"""The same call again, without a trace in the user's world.

`repeat` runs it, on `copies` of the arguments, and puts back what else it changed: `world` finds it; `states`, `putting`
and, for the process's settings, `ambient` keep and restore it; `outward` tells what cannot be undone.  `check` compares
compiled with eager through it (`compared`).
"""
