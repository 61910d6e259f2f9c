"""Runs one captured graph on its own.

`rebuild` builds the graph from its text, `synthetic_inputs` makes its inputs, and `benchmark` times its calls.
"""
