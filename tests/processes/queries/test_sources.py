"""Sources of worker processes: their threads wake them, and otherwise they sleep."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from source_flows import COUNT, PARTS

import timely
from timely.worker.launcher import Launcher


def ticks(cluster: timely.Cluster) -> int:
    """Hundredths of a second that the workers have used."""
    launcher = getattr(cluster._workers, "_launcher")  # noqa: B009 - a test looks behind the curtain
    assert isinstance(launcher, Launcher)
    stats = [Path(f"/proc/{pid}/stat").read_text() for pid in launcher.pids]
    fields = [stat.rpartition(")")[2].split() for stat in stats]
    return sum(int(field[11]) + int(field[12]) for field in fields)


def test_what_threads_of_a_worker_hear_comes_epoch_by_epoch_and_the_dataflow_ends() -> None:
    with timely.connect(workers=2) as cluster:
        flow = cluster.install("source_flows:heard", numbers=5)
        assert flow.wait(2, timeout=60) == 2
        assert flow.finish(timeout=60) == 5
        assert flow.output("heard").changes() == [(number, number) for number in range(5)]
        with pytest.raises(timely.MisuseError, match="its epochs come from its sources"):
            flow.seal()
        waiting = cluster.install("source_flows:waits_long")
        waiting.refresh()
        used: list[int] = []
        while not used or (min(used) > 5 and len(used) < 15):  # until they have tidied up
            before = ticks(cluster)
            time.sleep(0.6)
            used.append(ticks(cluster) - before)
        assert min(used) <= 5, "an alarm in an hour costs nothing until then"
        waiting.uninstall()


def test_workers_that_are_killed_go_on_reading_where_the_log_ends(tmp_path: Path) -> None:
    """With another number of workers in the end, which follow while the source goes on."""
    with timely.connect(workers=2, durable=tmp_path) as cluster:
        flow = cluster.install("source_flows:reads_parts")
        keeper = getattr(cluster._workers, "_launcher")  # noqa: B009 - a test looks behind the curtain
        shown = flow.output("read").changes(0, 5)
        os.kill(keeper.pids[1], signal.SIGKILL)
        assert flow.output("read").changes(0, 12)[: len(shown)] == shown
        cluster.rescale(3)
        flow.input("rows").close()
        flow.finish(timeout=60)
        read = [record for _, record in flow.output("read").changes()]
        assert sorted(read) == [(part, number) for part in range(PARTS) for number in range(COUNT)]
        assert len(flow.output("both").changes()) == len(read)
