"""Changes of the user's own source that may remove a graph break: each module makes candidates of one kind.

A rewrite reads source text and returns edits; it runs nothing and imports no torch. It offers nothing where the change would
not keep the meaning; what a test cannot see is said in the candidate's assumption. `source_text` finds nodes and edits lines,
`names` knows what code reads, binds and does, `conditions` writes conditions on values as tensors.  `unfixable` says
why there is no candidate.
"""
