"""Positions of boxes and lines of edges: `split_graph`, and `fx_graph` with `wrap` for tall graphs; both use `geometry`."""
