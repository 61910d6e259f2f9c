"""Fixes for graph breaks and recompiles: candidates are tried on the recorded calls and chosen only if they are verified.

`candidate` turns a break into problems, for which `rewrites` makes candidates.  `search` tries them one by one, combines
those that hold, and begins anew with the breaks that are left; `plan` is such a combination.  `trial` runs the calls under a
plan and `improvement` compares what the compiler made of it; `verification` compares the changed program with eager on
`variations` of the inputs, and `difference` says how two runs differ.  `live_edit` puts edited source into the running
process temporarily.  `result` adds the outcome to the Report and has it in force for `report.fixed()`, `patch` makes the
diff, and `text_edits` reads and edits source text.
"""
