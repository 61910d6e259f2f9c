"""Gets the compiler's events: from a live `recording`, or from logs of TORCH_TRACE (`trace_files`).

`builder` makes a Report of the events of either; facts that a source does not have stay unknown.
"""
