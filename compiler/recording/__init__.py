"""Where events come from: a live `recording`, or the `trace_files` of TORCH_TRACE.

Both give the same events to `assembly`; what they cannot know stays unknown.  `cache_hits` finds code that was compiled before
the recording, `late_backwards` completes a report whose backward graphs are compiled later.
"""
