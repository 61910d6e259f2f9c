"""`dynascope test`: notebooks and MyST pages as tests.

`command` is the command line, `runner` tests one page, `pages` reads and writes it, `kernel` executes it, `normalize` makes its
outputs fit to be committed, `compare` finds what differs.
"""
