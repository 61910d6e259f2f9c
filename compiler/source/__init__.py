"""Where code stands and what it says: files, cells, lines, and which of it is the user's."""
