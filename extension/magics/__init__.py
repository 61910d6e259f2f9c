"""The magics, their options and completion, and loading them into IPython."""
