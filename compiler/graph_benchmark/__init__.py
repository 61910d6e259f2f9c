"""One captured graph on its own: `rebuild` builds it from its text, `synthetic_inputs` its inputs, `benchmark` times it."""
