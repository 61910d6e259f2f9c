"""Reading and changing source text with libcst; nothing is run.

`source_text` parses a file, finds statements and makes edits; `names` says which names code reads and binds, `torch_names` how
a module writes torch's functions, `flow` what is bound before a statement and read after it, `effects` what code changes,
`conditions` how a condition is written for tensors, `guarded_indices` which indices it guards.
"""
