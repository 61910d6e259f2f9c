"""Where events come from: a live `recording`, or the `trace_files` of TORCH_TRACE.

Both give the same events to `assembly`; what they cannot know stays unknown.  `cache_hits` names what was compiled before a
recording began, `late_backwards` completes a report whose backward graphs come later.
"""
