"""Runs the user's code with given settings and makes the finished Report.

`pipeline` has the `Run` in which `explain` and all other callers run the code.  `compile` calls torch.compile as the settings
say, `regions` has the API of regions and parses `--region`, and `retrace` makes Dynamo trace known functions again.  `fixing`
searches for fixes, `second_call` traces the calls once more, `latest` keeps the latest report.
"""
