"""Runs a recorded call again and restores what it changed.

`replay` records a call and replays it, on `clone`s of its tensors.  `reachable` finds the objects that a call can reach,
`state` knows what of each can change, `snapshot` keeps and restores it, and `process_state` does so for the process.  What is
reported and not restored stands in `side_effects`.
"""
