"""Compares a changed program with eager: `trial` runs the recorded calls with the change, and eagerly without it.

`observed` holds what one run did and compares two runs, and `side_state` adds what a call changes besides its arguments.
`variations` makes other inputs, `tested_values` other values for what conditions ask about, `forcing` chooses the sides of
conditions, `fake_check` is a backend that checks custom operators, `caller_changes` applies the part of a fix that the repeated
calls do not run, and `time_limit` limits the time of a call.  `proof` combines these.  `improvement` says whether the compiler
does better with a change.
"""
