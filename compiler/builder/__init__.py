"""Makes a Report from events, without importing torch or reading the clock.

The only files that it reads are source files and the installed torch's table of graph breaks (`break_parser.registry`).

`compile_records` groups the events by compile, and `assemble` turns each group into a frame with its graph.  `breaks` collects
the graph breaks, `guards` finds the line behind each guard and symbol, `frame_links` links callers and resume functions,
`compile_time` times the compiler's phases, and `notes` adds the report's notes and the error.  `facts` has what a Report needs
besides the events.  Each other module handles one kind of fact: `break_parser`, `guard_parser` and `graph_parser` parse what
torch prints; `skip_reasons`, `region_flags`, `stages` and `data_parallel` derive facts from the records; `summary` counts.
"""
