"""The events from which `assembly` makes a Report; `schema` has their types.

`record_kinds` lists the known kinds of records in torch's structured trace, `field_types` checks the types of their fields, and
`chromium` reads the compiler's phases from chromium events.
"""
