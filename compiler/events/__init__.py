"""The input of `assembly`: the types of all events (`schema`), the list of known structured-trace records (`records`), and the
compiler's phases in them (`chromium`).
"""
