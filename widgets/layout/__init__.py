"""Positions of boxes and lines of edges: `split_graph`, `fx_graph` (tall ones: `wrap`); `geometry` is what both use."""
