"""Gets the compiler's events: from a live `recording`, or from logs of TORCH_TRACE (`trace_files`).

`builder` makes a Report of the events of either; facts that a source does not have stay unknown.  For a live recording,
`cache_hits` finds code that was compiled before it, and `late_backwards` completes the report if backward graphs are compiled
later.  For logs, `log_reader` reads the records, `processes` finds processes, ranks and runs, and `outside_compiles`
notes exports whose graph is not in the log.
"""
