"""Gets the compiler's events: from a live `recording`, or from logs of TORCH_TRACE (`trace_files`).

Both give events of the same types to `assembly`; facts that a source does not have stay unknown.  `cache_hits` finds code that
was compiled before the recording, `late_backwards` completes a report whose backward graphs are compiled later.
"""
