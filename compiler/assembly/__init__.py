"""*Events in, Report out*: a pure function, without torch, clock or files.

`compile_records` groups the events by frame, `assemble` turns each group into a frame with its graph, `breaks` collects the
graph breaks, `frame_links` links callers and resume functions, `compile_time` times the compiler's phases, and `notes` adds the
report's notes and the error.  Each other module handles one kind of fact: `break_text`, `guard_text` and `graph_text` parse
what torch prints; `skip_reasons`, `region_flags`, `stages` and `summary` derive facts from the events.
"""
