"""`--profile`: shows where the time of a call goes.

`measure` runs the calls, `profiler_trace` reads what torch.profiler wrote, `attribution` cuts each call into slices, `segments`
makes the Profile from them, `break_costs` and `guard_costs` compute what breaks and guards cost; `inputs` measures a list of
inputs, `timing` times calls.
"""
