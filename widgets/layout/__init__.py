"""Positions of boxes and lines of edges: `split_graph`, and `fx_graph`; both use `geometry`, which also wraps tall graphs."""
