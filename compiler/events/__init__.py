"""The input of `assembly`: the types of all events (`schema`).

`record_kinds` lists the known records of the structured trace, `field_types` checks the types of their fields, and `chromium`
reads the compiler's phases in them.
"""
