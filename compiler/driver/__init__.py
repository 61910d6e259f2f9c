"""Runs the user's code with given settings and makes the finished Report: `pipeline`, for `explain` and all other callers.

`compile` calls torch.compile as the settings say, `regions` is the API of regions, `retrace` makes Dynamo trace known functions
again, `fixing` and `second_call` try the calls again, `latest` keeps the latest report.
"""
