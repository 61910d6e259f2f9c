"""Fixes for graph breaks: each is tried on the recorded calls and shown as a fix only if it is proved.

`candidate` says what a candidate is, `problem` what it is made from, `setting_cures`, `wraps` and `rewrites` make candidates.
`calls` keeps the calls of a run, `live_edit` puts edited source into the running process and takes it out again, `trial` runs
the calls with a candidate in force, `observed` is what one of these runs did, `variations` and `forcing` make other inputs and
other sides of conditions, `proof` compares with eager, `search` combines what holds into one set, `result` makes the data of
the Report, `patch` the diff, `session` is `report.fixed()`.
"""
