"""The one place where private parts of torch are touched: each name guarded, each that does not fit named in the report.

`hook_points` are the points that are observed, installed and undone by `hooks`, which get their facts from what the points are
handed through `translators`; `inside` adds the calls to torch's functions without a frame on the stack.  `internals` steers;
`engines` calls a backend directly; `marks` reads and sets what torch.compile leaves on functions and modules; `surroundings`
puts aside what the caller has set.
"""
