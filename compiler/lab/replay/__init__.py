"""Runs a recorded call again and restores what it changed.

`replay` records a call and replays it, on `clone`s of its tensors.  `reachable` finds the objects that a call can reach.
`object_state` reads and writes the state of each kind of object (support for a new type goes there), `process_state` that of
the process, and `snapshot` keeps and restores the state of both.  `side_effects` finds what is not restored, which is reported
or makes `replay` refuse the call; `last_call` keeps the last call of a run.
"""
