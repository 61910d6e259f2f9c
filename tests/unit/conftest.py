"""Which unit tests `make check` leaves to `make test`: those that compile much, generate code or start a kernel."""

from __future__ import annotations

import pytest

SLOW = {
    "test_check", "test_graph_runs", "test_inputs", "test_invisible_hooks", "test_profile", "test_recording",
    "test_replayed_calls", "test_break_places", "test_distributed", "test_fix_magic",
    "test_fix_reports", "test_errors", "test_frames", "test_isolation",
    "test_recompiles", "test_guard_lines", "test_stages", "test_compile_time", "test_trace_files",
    "test_control", "test_control_table", "test_entries", "test_graph_button", "test_guarded_display", "test_interrupts",
    "test_kernel", "test_profile_magic", "test_programs_in_cells", "test_real_models",
}  # fmt: skip


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark them."""
    if item.path.stem in SLOW:
        item.add_marker("slow")
