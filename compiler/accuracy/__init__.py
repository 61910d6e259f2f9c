"""`--check`: `outcome` replays a call and collects what it gives and leaves, `compare` compares parts, `check` reports."""
