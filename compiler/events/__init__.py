"""What reaches `assembly`: the events (`schema`) and torch's structured-trace records (`records`)."""
