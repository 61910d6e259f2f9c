"""A cell's text as code to run (`source`), its tracebacks, and interrupts."""
