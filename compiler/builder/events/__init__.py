"""What a Report is made from: `schema` has the types of events, `trace_records` the records of torch's structured trace."""
