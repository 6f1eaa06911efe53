"""Capturing a stream: what is refused, and what is left when it fails."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from captured_streams import capture, replay

import timely
from timely.operators.captured import capture_files
from timely.operators.captured.capturing import CapturesInto, FileCaptureVertex
from timely.user_code.call_site import CallSite


@pytest.fixture(scope="module")
def cluster() -> Iterator[timely.Cluster]:
    with timely.connect(workers=2, embedded=True) as cluster:
        yield cluster


def test_a_stream_that_is_captured_goes_on_to_others(cluster: timely.Cluster, tmp_path: Path) -> None:
    written = capture(cluster, tmp_path / "a", [[1, "two"], [], [3.0]])
    assert list(written) == [0, 2] and sum(map(len, written.values())) == 3
    assert replay(cluster, tmp_path / "a") == written


def test_a_cluster_that_closes_leaves_all_epochs_that_were_over(tmp_path: Path) -> None:
    with timely.connect(workers=2, embedded=True) as cluster:
        flow = cluster.install(lambda dataflow: dataflow.input("n").capture(tmp_path / "a"))
        for epoch in range(3):
            flow.input("n").insert([epoch])
            flow.seal()
        flow.input("n").insert(["not sealed"])
        again = cluster.install(lambda dataflow: dataflow.input("n").capture(tmp_path / "b"))
        with pytest.raises(timely.MisuseError, match="which holds 'worker-.-of-2.capture' already"):
            cluster.install(lambda dataflow: dataflow.input("n").capture(tmp_path / "b"))
        again.uninstall()
    with timely.connect(workers=1, embedded=True) as cluster:
        assert replay(cluster, tmp_path / "a") == {0: [b"\0"], 1: [b"\1"], 2: [b"\2"]}
        assert replay(cluster, tmp_path / "b") == {}


def test_epochs_may_be_far_apart(tmp_path: Path) -> None:
    """And words of times are counted from a later epoch meanwhile."""

    class FarVertex(timely.Vertex):
        def on_open(self, capability: timely.Capability) -> None:
            for epoch in (3, 1_000, 1_700_000_000, 1_700_000_001):
                capability.downgrade((epoch,))
                self.send_by(0, [epoch], (epoch,))
            capability.drop()

    def far(dataflow: timely.Dataflow) -> None:
        dataflow.level_bits = (4,)
        dataflow.source("far", FarVertex, workers=[0]).capture(tmp_path / "a")

    with timely.connect(workers=2, embedded=True) as cluster:
        cluster.install(far).finish()
        flow = cluster.install(lambda dataflow: dataflow.output("out", dataflow.replay(tmp_path / "a")))
        flow.finish()
        changes = flow.output("out").changes()
        assert changes == [(epoch, epoch) for epoch in (3, 1_000, 1_700_000_000, 1_700_000_001)]


def test_a_record_that_cannot_be_written_is_shown_with_the_line(
    cluster: timely.Cluster, tmp_path: Path
) -> None:
    flow = cluster.install(
        lambda dataflow: dataflow.input("n").map(lambda n: object()).capture(tmp_path / "a")
    )
    flow.input("n").insert([1])
    with pytest.raises(
        timely.MisuseError, match="a record cannot be captured: can not serialize 'object'"
    ) as e:
        flow.seal(wait=True)
    assert "test_capturing.py:" in str(e.value)


def test_a_dataflow_that_is_refused_leaves_no_files(cluster: timely.Cluster, tmp_path: Path) -> None:
    def refused(dataflow: timely.Dataflow) -> None:
        dataflow.input("n").capture(tmp_path / "a")
        dataflow.replay(tmp_path / "missing").capture(tmp_path / "b")

    with pytest.raises(timely.MisuseError, match="no captured stream in"):
        cluster.install(refused)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_ends_the_dataflow_and_leaves_what_was_over(
    cluster: timely.Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = cluster.install(lambda dataflow: dataflow.input("n").capture(tmp_path / "a"))
    flow.input("n").insert(["whole"])
    flow.seal(wait=True)
    write = os.write

    def full(descriptor: int, data: memoryview) -> int:
        if len(data) < 3:
            raise OSError(28, "No space left on device")
        return write(descriptor, data[:2])

    monkeypatch.setattr(capture_files.os, "write", full)
    flow.input("n").insert(["lost"])
    with pytest.raises(timely.CaptureError, match="cannot write .*capture: No space left on device"):
        flow.seal(wait=True)
    monkeypatch.undo()
    assert replay(cluster, tmp_path / "a") == {0: [b"\xa5whole"]}


def test_a_durable_cluster_refuses_it(tmp_path: Path) -> None:
    def captured(dataflow: timely.Dataflow) -> None:
        dataflow.input("n").capture(tmp_path / "a")

    with (
        timely.connect(workers=1, embedded=True, durable=tmp_path / "store") as cluster,
        pytest.raises(timely.MisuseError, match=r"captures a stream into .*test_capturing.py:.* is durable"),
    ):
        cluster.install(captured)
    assert not (tmp_path / "a").exists()


def test_each_worker_has_a_vertex_of_its_own() -> None:
    made = CapturesInto("a", CallSite("mine.py", 7))
    assert isinstance(made(), FileCaptureVertex) and made() is not made()
