"""Runs one captured graph on its own: `rebuild` builds it from its text, `synthetic_inputs` makes its inputs, `benchmark` times
its calls, and `region_trial` times its compile with a repeated block as one region.
"""
