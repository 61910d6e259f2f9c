"""Renders a report or a job's ranks as a page, a picture, terminal text (`overview_text`: of a large report) and static output.

`compile_trace` writes the compile time for Perfetto; `front_end` reads the built JavaScript and CSS.
"""
