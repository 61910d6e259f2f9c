"""`dynascope test`: notebooks and MyST pages as tests.

`command` runs many pages, `runner` tests one page, `pages` reads and writes it, `kernel` executes it, `normalize` makes its
outputs fit to be committed, `compare` compares them with the stored ones.
"""
