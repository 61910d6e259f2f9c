"""The report builder: makes a Report from events, without importing torch or reading the clock.

The only files that it reads are source files and the installed torch's table of graph breaks (`dynamo_texts.registry`).

`compile_records` groups the events by compile, and `report_builder` turns each group into a frame with its graph.  `outcomes`
says what became of a frame, `graphs` what became of a graph, `breaks` collects the graph breaks, `guards` and `symbols` find
the line behind each guard and symbol, `frame_links` links callers and resume functions, `compile_time` times the compiler's
phases, and `notes` adds the report's notes and the error.  `dynamo_texts` and `graph_parser` parse what torch prints.
"""
