"""A few faults at random points; `make faults` runs 1,000."""

from __future__ import annotations

from pathlib import Path

import pytest

from faults import WAYS, inject
from processes import needs_mpi


@needs_mpi
@pytest.mark.parametrize("seed", range(len(WAYS)), ids=WAYS)
def test_a_fault_at_a_random_point(seed: int, tmp_path: Path) -> None:
    """An error of all others in time, which names rank, collective and tensor."""
    assert inject(seed, tmp_path, slack=8) == ""  # the suite keeps all processors busy
