"""Runs the user's code with given settings and makes the finished Report.

`pipeline` has the `Run` in which `explain` and all other callers run the code.
"""
