"""Changes that may remove a graph break or a recompile: each module makes candidates of one kind.

A rewrite reads source text (`source`, `reading`) and returns candidates: edits or settings; it runs nothing.  It looks at
what no trial can show, such as effects outside of the process; the trials show the rest.  The candidate's assumption says
what neither can see.

`branches` rewrites an `if` or `while` on values, `guards` an `if` that raises or is around indexing, and `messages` prints
and logs; `numbers` keeps a number a tensor, `comprehensions` writes a comprehension as a loop.  `settings` changes the
compiler's settings, `wraps` puts a wrapper around a function.
"""
