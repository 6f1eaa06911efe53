"""A copy of a store whose cluster works holds whole epochs, whatever happens between its reads.

flowing_*   epochs flow while the store is copied
missing_*   files that go meanwhile, or are not there
command_*   the command line
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from durable_workers import DurableWorkers
from simulated_store import SimulatedDisk, SimulatedStore

import differential as dd
import timely
from timely import StoreError
from timely.durable import stored
from timely.durable.answers.manifest import Answer, answers_by_place, write_answer
from timely.durable.commands import main
from timely.durable.following.copying import copy_store
from timely.wire.requests import IN_OPEN, Deliver, Install

EXPORTING = "durable_flows:exporting"


def feed(workers: DurableWorkers, epoch: int) -> None:
    """Let a row come in at each of two workers, and seal the epoch."""
    for at in range(2):
        row = pa.table({"a": pa.array([epoch], pa.int64()), "b": pa.array([at], pa.int64())})
        workers.ask(Deliver(0, "rows", f"writer {at}", epoch, IN_OPEN, 0, 1), row, at)
    workers.seal(epoch)


def copied_while_epochs_flow(new_segments_at: int) -> tuple[SimulatedDisk, int]:
    """A copy, before each of whose reads an epoch is sealed, and how many reads it took; before one of them
    the log of worker 1 goes on in another segment.
    """
    target = SimulatedDisk()
    with DurableWorkers(SimulatedDisk(), 2) as workers:
        workers.ask(Install(EXPORTING, {}))
        feed(workers, 0)
        reads = 0

        def meanwhile(what: str, path: str) -> None:
            nonlocal reads
            reads += 1
            if reads == new_segments_at:
                workers.logs[1].begin_segment()
            feed(workers, reads)
            write_answer(workers.store, Answer(reads, 0, EXPORTING, "rows", reads))

        copy_store(SimulatedStore(workers.store.disk, meanwhile), SimulatedStore(target))
    return target, reads


def test_flowing_epochs_are_whole_in_the_copy_or_not_there() -> None:
    _, reads = copied_while_epochs_flow(-1)
    most = copied = 0
    for new_segments_at in range(reads + 1):
        disk, _ = copied_while_epochs_flow(new_segments_at)
        for count in (1, 3):
            with DurableWorkers(disk, count) as workers:
                epoch = workers.ask(Install(EXPORTING, {})).integer("epoch")
                rows = [(each, each, at, 1) for each in range(epoch) for at in range(2)]
                assert sorted(workers.read("rows", epoch)) == rows
        answers = answers_by_place(SimulatedStore(disk)).values()
        assert all(answer.epoch < epoch for answer in answers), "answers are of epochs that the copy has"
        copied += len(answers)
        most = max(most, epoch)
    assert most > 3 and copied


def test_missing_files_are_named_after_a_few_attempts() -> None:
    with DurableWorkers(SimulatedDisk(), 2) as workers:
        workers.ask(Install(EXPORTING, {}))
        feed(workers, 0)
    source, target = SimulatedStore(workers.store.disk), SimulatedStore()
    with pytest.raises(StoreError, match="no store of a durable cluster"):
        copy_store(SimulatedStore(), target)
    source.disk.files["base/000001.manifest"] = source.disk.files["members/000001.json"]
    with pytest.raises(StoreError, match=r"base/000001.manifest is damaged"):
        copy_store(source, target)
    assert not target.disk.files


def sums(flow: timely.Dataflow) -> None:
    rows = dd.input(flow, "rows", "a: string, b: int")
    rows.group_by("a").agg(sum=dd.sum("b")).output("sums", stored=True)


def test_command_copies_a_store_with_bases_and_answers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, to = tmp_path / "store", tmp_path / "copy"
    for run in range(3):
        with timely.connect(workers=2, embedded=True, durable=store, sync="system") as cluster:
            flow = cluster.install(sums)
            flow.input("rows").insert([("x", run), (f"y{run}", 5)])
            flow.seal()
    with timely.connect(workers=2, embedded=True, durable=store, sync="system") as cluster:
        flow = cluster.install(sums)
        flow.input("rows").insert([("x", 100)])
        flow.seal(wait=True)
        assert main(["copy", str(store), str(to)]) == 0
        expected = flow.output("sums").snapshot().to_pylist()
    shutil.rmtree(store)
    assert main(["verify", str(to)]) == 0
    answer = stored(to, "sums")
    assert (answer.epoch, answer.rows) == (2, 4) and Path(answer.path).is_relative_to(to)
    with timely.connect(workers=1, embedded=True, durable=to, sync="system") as cluster:
        flow = cluster.install(sums)
        assert flow.epoch == 4 and flow.output("sums").snapshot().to_pylist() == expected
    capsys.readouterr()
    assert main(["copy", str(to), str(to)]) == 1
    assert "is there already" in capsys.readouterr().err
    assert main(["copy", str(to), str(to / "answers" / ".." / "backup")]) == 1
    assert "is in the store itself, and would be lost with it" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy"], "nothing is left behind"
