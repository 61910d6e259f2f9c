"""Runs one captured graph on its own.

`rebuild` builds the graph from its text, `synthetic_inputs` makes its inputs, `benchmark` times its calls, and `region_trial`
measures what compiling a repeated block only once would save.
"""
