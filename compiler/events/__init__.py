"""The input of `assembly`: the types of all events (`schema`), and the list of known structured-trace records (`records`)."""
