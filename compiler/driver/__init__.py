"""From settings to a finished Report: `pipeline` runs it all, for `explain` and every other caller.

`compile` calls torch.compile as the settings say, `regions` is the API of regions, `retrace` makes Dynamo trace known functions
again, `latest` keeps the latest report.
"""
