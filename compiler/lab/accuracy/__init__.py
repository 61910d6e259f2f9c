"""`--check`: `outcome` replays a call and collects its result and effects, `compare` compares values, `check` decides."""
