"""Where events come from: a live `recording`, or the `trace_files` of TORCH_TRACE.

Both hand the same plain dicts to `assembling`; what they cannot know stays unknown.  `cached` names what was compiled before a
recording began, `backwards` completes a report whose backward graphs come later.
"""
