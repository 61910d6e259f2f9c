"""The report builder: makes a Report from events, without importing torch or reading the clock.

The only files that it reads are source files and the installed torch's table of graph breaks (`dynamo_texts.registry`).

`events` has the types of what is recorded, `trace_records` the records of torch's structured trace among them.

`compile_records` groups the events by compile, and says what became of each; `report_builder` turns each into a frame with its
graph.  `graphs` reads a graph and says what became of it, `breaks` collects the graph breaks and links callers and resume
functions, `guards` finds the line behind each guard and symbol, `compile_time` times the compiler's phases, and `notes` adds
the report's notes and the error.  `dynamo_texts` parses what Dynamo prints.
"""
