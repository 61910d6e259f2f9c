"""Where the time of a call goes: measured with `profile`, read from a `profiler_trace`, told as segments.

`cutting` cuts a call at the compiled regions, `segments` sorts and sums the pieces, `break_costs` says what each break costs,
`inputs` compares calls on several inputs; `stopwatch` is every clock there is.
"""
