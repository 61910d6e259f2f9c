"""Interrupts at random points of cells with regions leave every object as it was."""

from __future__ import annotations

from pathlib import Path

from processes import printed_by


def test_interrupts_at_random_points_restore_every_object(tmp_path: Path) -> None:
    """In a process of its own: an interrupt may leave torch half changed, which the tests after it would see."""
    printed = printed_by(Path(__file__).parent / "interrupted_cells.py", tmp_path)
    assert int(printed.split()[-1]) > 0  # interrupts that came while the cell ran
