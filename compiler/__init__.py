"""Drives torch.compile, records what it does, and makes the Report; imports neither IPython nor the widgets.

`driver` has one run: it records the code, has the events made into a Report, and runs the experiments that are asked for, the
search for fixes last.  `settings` are the options of all ways in, checked by `validate`; `compiling` calls torch.compile with
them, and `retrace` traces code that was compiled before.

`capture` gets the compiler's events, `builder` makes the `report` of them, `lab` repeats and changes calls (and has `fix`),
`ranks` compares the processes of a job, `source` knows files and code.  `formats` lets a report call what it must not import.
"""

#: the version of dynascope, which every report carries
__version__ = "0.1.0"
