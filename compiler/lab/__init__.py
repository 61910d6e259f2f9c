"""Everything that calls or edits the user's code again, after it was recorded: check, profile, inputs, second call, fixes."""
