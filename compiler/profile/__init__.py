"""`--profile`: where the time of a call goes.

`measure` runs the calls, `profiler_trace` reads what torch.profiler wrote, `attribution` cuts each call into slices, `segments`
makes the Profile of them, `break_costs` computes what a break costs; `inputs` measures a list of inputs, `timing` times calls.
"""
