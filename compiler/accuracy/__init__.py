"""`--check`: compares a compiled call with the eager one; `check` runs both, `compare` compares their values."""
