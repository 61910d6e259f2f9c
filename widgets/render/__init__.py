"""Renders a report or a job's ranks as a page, a picture, text for a terminal and static output.

`overview_text` has the text of a large report's overview; `compile_trace` writes the compile time for Perfetto; `front_end`
reads the built JavaScript and CSS.
"""
