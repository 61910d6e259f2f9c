"""Runs a recorded call again and restores what it changed.

`replay` records a call and replays it, on `clone`s of its tensors.  `reachable` finds the objects that a call can reach,
`object_state` knows what can change in each kind of object (support for a new type goes there), `process_state` knows it for
the process, and `snapshot` keeps and restores all of it.  `side_effects` finds what is reported but not restored, and
`last_call` keeps the last call of a run.
"""
