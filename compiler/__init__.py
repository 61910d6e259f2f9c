"""Drives torch.compile, records what it does, and makes the Report: no IPython, no widgets."""

#: of dynascope; every report carries it
__version__ = "0.1.0"
