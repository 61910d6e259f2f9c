"""Fixes for graph breaks and recompiles: candidates are tried on the recorded calls and chosen only if they are proved.

`problem` turns a break or recompile into problems, for which `setting_changes`, `rewrites`, `custom_ops` and `wraps` make
candidates; `candidate` defines both types, and `registry` lists the sources for breaks.  `search` tries the candidates and
combines those that hold; `plan` is such a combination.  `calls` keeps calls of a run, `live_edit` puts edited source into
the running process temporarily, and `proving` compares the changed program with eager.  `result` adds the outcome to the
Report, `patch` makes the diff, and `session` implements `report.fixed()`.  `syntax` and `text_edits` read and edit source text.
"""
