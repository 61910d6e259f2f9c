"""`--region`: `active` finds the regions of one run and sets them, `lines` rewrites statements that run inside one."""
