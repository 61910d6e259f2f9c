"""Changes to source text that may remove a graph break or a recompile: each module makes candidates of one kind.

A rewrite reads source text with the help of `fixes.syntax` and returns edits; it runs nothing and does not import torch.  It
offers only changes that keep the meaning of the code as far as its text shows; the candidate's assumption says what no test can
see.

`branches` rewrites an `if` on values (with `branch_functions` and `branch_parts`), `value_loops` a `while` on values,
`raise_checks` checks that raise, `empty_rows` an `if` around indexing, `scalars` and `log_values` numbers taken from tensors,
and `counters` numbers that cause recompiles.  `printing` moves messages, `hoist` calls and imports, and `parts` moves blocks
into functions of their own.  `unfixable` says why there is no candidate.
"""
