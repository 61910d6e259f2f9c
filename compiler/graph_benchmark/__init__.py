"""One captured graph on its own: `rebuild` builds it from its text, `synthetic_inputs` its inputs, `benchmark` times it, and
`region_trial` times its compile with a repeated block as one region.
"""
