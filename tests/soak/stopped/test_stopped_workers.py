"""A worker process that is stopped under full load: the memory of all processes stays bounded.

The long form stops for 20 s: `PYTHONPATH=tests python -m soak.stopped`.
"""

from __future__ import annotations

import pytest
from soak.stopped.scenes import SCENES, measure

GROWTH_MIB_MAX = 64


@pytest.mark.parametrize("name", ["tables", "join"])
def test_stopped_under_full_load_no_process_grows_and_nothing_is_lost(name: str) -> None:
    """Without a bound a worker grows by 100 MiB a second (tables), or by 250 (join)."""
    growth = measure(SCENES[name], seconds=3.0)
    assert max(growth.mib.values()) < GROWTH_MIB_MAX, growth
    before, during, behind = growth.calls
    assert min(before, during, behind) > 0, growth
