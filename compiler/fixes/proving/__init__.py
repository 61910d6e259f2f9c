"""Compares a changed program with eager: `trial` runs the recorded calls, compiled with the change and eagerly without it.

`observed` is what one of these runs did and how two of them differ, `variations` makes other inputs, `forcing` the other sides
of conditions, `fake_check` a backend that checks custom operators; `side_state` reads what a call changes besides its
arguments, and `caller_changes` applies the part of a fix that the repeated calls do not run; `proof` puts them together.
`improvement` says whether the compiler does better.
"""
