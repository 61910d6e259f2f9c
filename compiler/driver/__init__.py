"""From settings to a finished Report: `explain`, `compile`, regions, and tracing afresh (`retrace`)."""
