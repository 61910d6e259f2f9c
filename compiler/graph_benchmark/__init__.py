"""Runs one captured graph by itself: `rebuild` makes it from its text, `synthetic_inputs` its inputs, `benchmark` measures."""
