"""*Events in, Report out*: a pure function, without torch, clock or files.

`compile_records` groups the events by frame, `assemble` makes frames, graphs and breaks of them, `frame_links` finds who
called and who continues whom; the others read one kind of fact each: `break_text`, `guard_text` and `graph_text` what torch
writes, `skip_reasons`, `region_flags`, `stages` and `summary` what follows from it.
"""
