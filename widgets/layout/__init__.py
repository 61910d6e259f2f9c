"""Positions and edge lines: of the split graph (`split_graph`), of FX graphs (`fx_graph`, `wrap`); `geometry` is for both."""
