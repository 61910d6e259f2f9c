"""Fixes for graph breaks: each is tried on the recorded calls and shown as a fix only if it is proved.

`candidate` says what a candidate is, `problem` what it is made from; `registry` lists what makes candidates:
`setting_changes`, `rewrites`, `custom_ops` and `wraps`.  `calls` keeps the calls of a run, `plan` the candidates that are in
force together, `live_edit` puts edited source into the running process and takes it out again, `proving` compares with eager.
`search` finds the set that holds, `result` makes the data of the Report, `patch` the diff, `session` is `report.fixed()`;
`text_edits` works on texts.
"""
