"""Runs a recorded call again and restores what it changed.

`replay` runs the call, `clone` copies its arguments, `snapshot` remembers what the call can reach, `restore` undoes each kind
of change.
"""
