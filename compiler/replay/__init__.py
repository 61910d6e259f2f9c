"""Runs a recorded call again and restores what it changed.

`replay` records a call and replays it, on `clone`s of its tensors.  `reachable` finds the objects that a call can reach,
`object_state` knows what can change in each kind of object (support for a new type goes there), `snapshot` keeps and restores
it, and `process_state` does so for the process.  `side_effects` lists what is reported, but not restored.
"""
