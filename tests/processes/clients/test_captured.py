"""Captured streams of worker processes: what is left of them when one is killed, and replaying on others."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from captured_streams import by_epoch, replay

import timely


def test_what_was_over_before_a_worker_was_killed_is_replayed_by_others(
    two_workers: timely.Cluster, tmp_path: Path
) -> None:
    folder, again = str(tmp_path / "first"), str(tmp_path / "again")
    with timely.connect(workers=2) as cluster:
        flow = cluster.install("captured_streams:capturing", folder=folder)
        for epoch in range(6):
            flow.input("records").insert([(epoch, number) for number in range(10 * epoch)])
            flow.seal(wait=True)
        flow.input("records").insert(["of an epoch that is not over"])
        with pytest.raises(timely.MisuseError, match="is still being written"):
            two_workers.install("captured_streams:replaying", folder=folder)
        os.kill(int(str(cluster.stats()[1]["process"])), signal.SIGKILL)
        with pytest.raises(timely.PeerError, match="was killed by SIGKILL"):
            flow.seal(wait=True)
    written = by_epoch((epoch, (epoch, number)) for epoch in range(6) for number in range(10 * epoch))
    flow = two_workers.install("captured_streams:replaying", folder=folder, into=again)
    flow.finish(timeout=60)
    found = by_epoch(flow.output("out").changes())
    flow.uninstall()
    last = max(found)
    assert last >= 4
    assert found == {epoch: records for epoch, records in written.items() if epoch <= last}
    with timely.connect(workers=3, embedded=True) as cluster:
        assert replay(cluster, Path(again)) == found
