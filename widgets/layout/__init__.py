"""Boxes and edges in, positions and edge lines out; knows nothing of reports."""
