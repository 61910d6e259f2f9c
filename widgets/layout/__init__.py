"""Positions and edge lines: `columns` for the split graph, `layered` with `wrap` for FX graphs, `geometry` for both."""
