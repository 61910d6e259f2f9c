"""Drives torch.compile, records what it does, and makes the Report; imports neither IPython nor the widgets."""

#: the version of dynascope, which every report carries
__version__ = "0.1.0"
