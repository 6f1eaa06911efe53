"""Kill -9 of everything that Spark has started, and of Spark: each epoch is in each sink once and right.

rounds_*   four faults of each kind by seed; with the thorough profile ten rounds of each kind, of ten faults
chosen_*   which faults there are
judge_*    each kind of wrong sink is seen
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from spark.faults.model import Changes, Judge, WrongAnswer, batches_of, rows_after, wanted_of
from spark.faults.program import take_back_unplanned
from spark.faults.readers import FilesReader, FolderReader, Watch
from spark.faults.rounds import KINDS, Round, faults_of, some_of
from spark.faults.striking import DEATHS, Fault, Strikes


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One round of each kind, or ten."""
    if "number" in metafunc.fixturenames:
        is_thorough = metafunc.config.getoption("--hypothesis-profile") == "thorough"
        metafunc.parametrize("number", range(10 if is_thorough else 1))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", list(KINDS))
def test_rounds_every_epoch_is_in_every_sink_once_and_right(
    kind: str, number: int, seed: int, effort: int
) -> None:
    """Three epochs have room for all faults of a quick round; each further one is Spark's work alone."""
    is_quick = effort == 1
    game = Round(kind, seed + number, epochs=3 if is_quick else 5, is_quick=is_quick)
    try:
        game.run()
    except BaseException as error:
        error.add_note(f"seed {seed + number}, {kind}, life {game.lives}; struck: {game.struck}")
        raise
    assert len(game.struck) == (4 if is_quick else len(KINDS[kind].faults))


def test_chosen_are_twenty_faults_of_all_kinds() -> None:
    struck = Counter(victim for kind in KINDS.values() for _, victim in kind.faults)
    assert struck.total() == 20
    assert set(struck) == {"python", "executor", "driver", "java", "worker", "task", "host"}
    found = {
        (fault.victim, fault.point)
        for kind in KINDS.values()
        for seed in range(50)
        for fault in faults_of(kind, seed, 6)
    }
    assert {"staged", "sealed", "committed", "done"} <= {
        point for victim, point in found if victim == "driver"
    }


def test_chosen_for_a_quick_round_are_a_death_and_three_others() -> None:
    seen: Counter[str] = Counter()
    for kind in KINDS.values():
        for seed in range(50):
            faults = faults_of(kind, seed, 3)
            some = some_of(faults, seed)
            assert len(some) == 4 and [fault for fault in faults if fault in some] == some
            assert sum(fault.victim in DEATHS for fault in some) == 1
            seen.update(fault.victim for fault in some)
    assert set(seen) == {"python", "executor", "driver", "java", "worker", "task", "host"}


@pytest.mark.parametrize("epochs", [3, 4, 5, 6])
def test_chosen_are_faults_that_can_strike(epochs: int) -> None:
    for kind in KINDS.values():
        for seed in range(200):
            faults = faults_of(kind, seed, epochs)
            assert {fault.epoch for fault in faults} <= set(range(epochs))
            assert all(fault.epoch < epochs - 2 for fault in faults if fault.point == "forgets")
            hosts = [fault.epoch for fault in faults if fault.victim in ("task", "worker", "host")]
            assert len(set(hosts)) == len(hosts), "where one of them dies, so do the others"


def test_chosen_faults_strike_once_and_where_they_should(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed: list[int] = []
    monkeypatch.setattr(os, "kill", lambda process, number: killed.append(process))
    faults = (Fault(0, "python", "a", "x", 2, 1), Fault(1, "python", "b", "x", 2))
    strikes = Strikes(str(tmp_path), faults).of("a")
    for epochs, nth in ((range(2), 1), (range(2, 3), 0), (range(2, 4), 1), (range(2, 3), None)):
        strikes.at("x", epochs, nth)
        strikes.at("y", epochs, nth)
    assert killed == [os.getpid()] and [path.name for path in tmp_path.iterdir()] == ["0"]
    gone = Strikes(str(tmp_path), (Fault(2, "executor", "a", "x", 2),))
    gone.at("x", range(3))
    assert len(killed) == 1, "there is no Java above this process"


@pytest.mark.parametrize(("planned", "left"), [(0, []), (2, ["0", "1"]), (3, ["0", "1", "2"])])
def test_chosen_batches_have_one_file_each_whenever_the_driver_was_killed(
    tmp_path: Path, planned: int, left: list[str]
) -> None:
    take_back_unplanned(tmp_path)
    (tmp_path / "sources" / "0").mkdir(parents=True)
    (tmp_path / "offsets").mkdir()
    for number in range(3):
        for name in (str(number), f".{number}.crc"):
            (tmp_path / "sources" / "0" / name).touch()
    for number in range(planned):
        (tmp_path / "offsets" / str(number)).write_text(
            f'v1\n{{"batchWatermarkMs":0}}\n{{"logOffset":{number}}}'
        )
        (tmp_path / "offsets" / f".{number}.crc").touch()
    take_back_unplanned(tmp_path)
    there = sorted(path.name for path in (tmp_path / "sources" / "0").iterdir())
    assert there == sorted([*left, *(f".{name}.crc" for name in left)])


BATCHES = batches_of("judge", 4, 12)
WANTED = wanted_of(BATCHES)


def test_judge_knows_what_comes_and_goes() -> None:
    assert len(WANTED) == 4 and all(WANTED)
    total: Changes = Counter()
    for epoch, changes in enumerate(WANTED):
        total.update(changes)
        assert {row for row, count in total.items() if count} == rows_after(BATCHES[: epoch + 1])
    assert wanted_of([[(1, 5, 1), (1, 2, 1)], [(1, 5, -1)], [(1, 2, -1)]]) == [
        {(1, 2, 7): 1},
        {(1, 2, 7): -1, (1, 1, 2): 1},
        {(1, 1, 2): -1},
    ]


@pytest.mark.parametrize("wrong", ["twice", "half", "gap", "again", "more"])
def test_judge_sees_epochs_that_are_wrong(wrong: str) -> None:
    judge = Judge("sink", WANTED)
    judge.saw(0, WANTED[0])
    half = Counter(dict(list(WANTED[1].items())[1:]))
    double = Counter({row: 2 * diff for row, diff in WANTED[1].items()})
    with pytest.raises(WrongAnswer):
        if wrong == "more":
            for epoch in (1, 2, 3, 4):
                judge.saw(epoch, WANTED[min(epoch, 3)])
        else:
            seen = {"twice": (1, double), "half": (1, half), "gap": (2, WANTED[2]), "again": (0, WANTED[0])}
            judge.saw(*seen[wrong])


def log(folder: Path, epochs: dict[int, Changes]) -> None:
    for name, found in epochs.items():
        rows = [(*row, name, diff) for row, diff in found.items()]
        columns = zip(*rows, strict=True)
        table = pa.table(dict(zip(("key", "n", "total", "epoch", "diff"), map(list, columns), strict=True)))
        pq.write_table(table, folder / f"epoch-{name:08}.parquet")


def snapshot(folder: Path, rows: set[tuple[int, int, int]]) -> None:
    folder.mkdir(exist_ok=True)
    columns = dict(zip(("key", "n", "total"), map(list, zip(*rows, strict=True)), strict=True))
    pq.write_table(pa.table(columns), folder / "snapshot.parquet")


def test_judge_reads_folders_as_their_readers_do(tmp_path: Path) -> None:
    folder = tmp_path / "changes"
    folder.mkdir()
    snapshot(tmp_path / "snapshot", rows_after(BATCHES))
    reader = FolderReader(tmp_path, WANTED, rows_after(BATCHES))
    log(folder, dict(enumerate(WANTED)))
    with Watch([reader]) as watch:
        pass
    watch.check()
    reader.check_all()
    snapshot(tmp_path / "snapshot", rows_after(BATCHES[:3]))
    with pytest.raises(WrongAnswer, match="the snapshot"):
        reader.check_all()
    log(folder, {1: WANTED[0]})
    with pytest.raises(WrongAnswer, match="read again: epoch 1 has"):
        reader.check_all()
    (folder / "epoch-00000003.parquet").unlink()
    with pytest.raises(WrongAnswer, match=r"epochs \[0, 1, 2\] are there, and were 4"):
        reader.look()
    (folder / "epoch-00000001.parquet").unlink()
    fresh = FolderReader(tmp_path, WANTED, set())
    with Watch([fresh]) as watch:
        watch._thread.join(20)
    with pytest.raises(WrongAnswer, match=r"the epochs \[0, 2\]"):
        watch.check()


def test_judge_reads_what_spark_has_committed(tmp_path: Path) -> None:
    entries = tmp_path / "_spark_metadata"
    entries.mkdir()
    log(tmp_path, dict(enumerate(WANTED)))

    def entry(number: int, *epochs: int) -> None:
        lines = [f'{{"path":"file://{tmp_path}/epoch-{epoch:08}.parquet"}}' for epoch in epochs]
        (entries / str(number)).write_text("\n".join(["v1", *lines]))

    reader = FilesReader(tmp_path, WANTED)
    entry(0, 1, 0)
    entry(1)
    reader.look()
    assert reader.judge.seen == 2
    entry(2, 3, 2)
    reader.check_all()
    entry(3, 3)
    with pytest.raises(WrongAnswer, match="epoch 3 is there where 4 is next"):
        reader.look()
