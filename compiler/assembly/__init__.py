"""*Events in, Report out*: a pure function, without torch or clock.

The only files that it reads are the user's sources and the installed torch's table of graph breaks (`break_text.registry`).

`compile_records` groups the events by frame, `assemble` turns each group into a frame with its graph, `breaks` collects the
graph breaks, `frame_links` links callers and resume functions, `compile_time` times the compiler's phases, and `notes` adds the
report's notes and the error.  Each other module handles one kind of fact: `break_text`, `guard_text` and `graph_text` parse
what torch prints; `skip_reasons`, `region_flags`, `stages` and `summary` derive facts from the events.
"""
