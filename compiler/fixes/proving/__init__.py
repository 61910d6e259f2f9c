"""Holds a change of a program to eager: `trial` runs the recorded calls, compiled with the change and eagerly without it.

`observed` is what one of these runs did and how two of them differ, `variations` makes other inputs, `forcing` the other sides
of conditions, `fake_check` a backend that checks custom operators, `side_state` what a call changes beside its arguments;
`proof` puts them together.  `improvement` says whether the compiler does better.
"""
