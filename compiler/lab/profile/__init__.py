"""`--profile`: shows where the time of a call goes.

`measure` runs the calls, `profiler_trace` reads what torch.profiler wrote, `attribution` cuts each call into slices, `segments`
makes the Profile from them, `costs` computes what breaks and guards cost; `inputs` measures a list of
inputs, `timing` times calls.
"""
