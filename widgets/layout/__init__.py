"""Positions and edge lines: `split_graph`, `fx_graph` with `wrap`, `geometry` for both."""
