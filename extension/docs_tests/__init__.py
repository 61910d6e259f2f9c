"""`dynascope test`: notebooks as tests.

`runner` tests one page or many, `pages` reads and writes them, `kernel` executes them, `outputs` compares the outputs with the
stored ones and makes them fit to be committed.
"""
