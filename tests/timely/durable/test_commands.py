"""`python -m timely.durable`: what is in a store, whether it is whole, and what can go.

inspected_*, verified_*, folded_*, pruned_*, accepted_*   one family for each command
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import differential as dd
import timely
from timely import StoreError
from timely.durable import commands, stored
from timely.durable.answers.asking import requests_in
from timely.durable.commands import main, run_command
from timely.durable.folder_store import FolderStore


def late_behind_state(flow: timely.Dataflow) -> None:
    rows = dd.input(flow, "rows", "a: int")
    rows.distinct().split_late("a", 1, clock=dd.clock(0, every=1))[0].delay(2).output("late")


def counts(flow: timely.Dataflow) -> None:
    dd.input(flow, "rows", "a: int").group_by("a").agg(n=dd.count()).output("counts")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "store"
    with timely.connect(workers=2, embedded=True, durable=folder, sync="system") as cluster:
        for query in (counts, late_behind_state):
            flow = cluster.install(query)
            for number in range(4):
                flow.input("rows").insert([(number,)])
                flow.seal()
        cluster.install(counts).output("counts").changes(stop=3)
    return folder


def ran(capsys: pytest.CaptureFixture[str], *arguments: object, fails: bool = False) -> str:
    assert main([str(argument) for argument in arguments]) == int(fails)
    captured = capsys.readouterr()
    assert not (captured.out if fails else captured.err) or "whole" in captured.out
    return captured.err if fails else captured.out


def test_inspected_store_before_and_after_a_fold(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = ran(capsys, "inspect", folder)
    assert "incarnation 1 with 2 workers" in text and "dataflow 0 (" in text and "base" in text
    assert "epoch 4 is open" in text
    assert "the whole history is kept of input 'rows': split_late (" in text
    assert "answers look back 2 epochs" in text
    assert "is at epoch 0" in text or "is at epoch" in text
    ran(capsys, "fold", folder, "--forget")
    text = ran(capsys, "inspect", folder)
    assert "base 1: " in text and "logs since the newest base: 0 bytes" in text
    assert "inputs are summed up to epoch 3; answers begin at epoch 3" in text
    assert "input 'rows': 4 rows in the base" in text
    assert "output 'counts': changes before epoch 4 are forgotten" in text


def test_inspected_is_no_store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "there is no folder" in ran(capsys, "inspect", tmp_path / "nothing", fails=True)
    assert not (tmp_path / "nothing").exists()
    (tmp_path / "empty").mkdir(mode=0o700)
    assert "is no store of a durable cluster" in ran(capsys, "verify", tmp_path / "empty", fails=True)


def test_verified_store_names_what_is_damaged(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ran(capsys, "fold", folder)
    log = next((folder / "log" / "000001").glob("*.log.*"))
    data = bytearray(log.read_bytes())
    log.write_bytes(data[:-8])
    assert f"{log.name} is damaged" in ran(capsys, "verify", folder, fails=True)
    log.write_bytes(data)
    ran(capsys, "fold", folder, "--forget")
    text = ran(capsys, "verify", folder)
    assert "base 1 is whole" in text and "base 2 is whole" in text and "the logs are whole: " in text
    damaged = next((folder / "base").glob("000002-*-in-rows-*.parquet"))
    data = bytearray(damaged.read_bytes())
    data[7] ^= 1
    damaged.write_bytes(data)
    text = ran(capsys, "verify", folder, fails=True)
    assert f"base/{damaged.name} is damaged" in text and "Beside that, base 1 is whole." in text


def test_folded_store_goes_on(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ran(capsys, "fold", folder, "--forget").startswith("base 1: ")
    with timely.connect(workers=3, embedded=True, durable=folder) as cluster:
        flow = cluster.install(counts)
        flow.input("rows").insert([(0,)])
        flow.seal()
        rows = flow.output("counts").snapshot().to_pylist()
        assert {row["a"]: row["n"] for row in rows} == {0: 2, 1: 1, 2: 1, 3: 1}


@pytest.mark.parametrize("command", ["fold", "prune", "fold --forget"])
def test_folded_and_pruned_store_is_not_at_work(
    command: str, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "REPLY_SECONDS_MAX", 0.1)
    store = FolderStore(folder)
    store.lock()
    name, *options = command.split()
    text = ran(capsys, name, folder, *options, fails=True)
    assert "is in use by process" in text
    assert ("has asked it to fold" in text) == (command == "fold") and requests_in(store) == []
    store.unlock()
    assert ran(capsys, name, folder, *options)
    assert json.loads((folder / "lock").read_text())["command"] == name, "a cluster waits for it"


def test_pruned_store_has_one_base(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        ran(capsys, "fold", folder)
    text = ran(capsys, "prune", folder, "--keep", 1)
    assert "removed base/000001.manifest" in text
    assert [path.name for path in (folder / "base").glob("*.manifest")] == ["000002.manifest"]
    assert "keep at least one base" in ran(capsys, "prune", folder, "--keep", 0, fails=True)
    with timely.connect(embedded=True, durable=folder) as cluster:
        assert cluster.install(counts).output("counts").snapshot().num_rows == 4


def passing(flow: timely.Dataflow) -> None:
    flow.output("out", flow.input("in"))


def test_accepted_dataflow_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = str(tmp_path / "store")
    with timely.connect(embedded=True, durable=store, sync="system") as cluster:
        flow = cluster.install(passing)
        flow.input("in").insert([1])
        flow.seal(wait=True)
        with pytest.raises(StoreError, match="is in use by"):
            run_command(["accept", store, "0"])
    (line,) = run_command(["accept", store, "0"])
    assert line.startswith("dataflow 0 (passing): the answers that it gives from the next start on count.")
    assert json.loads(Path(store, "lock").read_text())["command"] == "accept"
    assert main(["accept", store, "5"]) == 1
    assert "timely.durable: the store" in capsys.readouterr().err
    with timely.connect(embedded=True, durable=store) as cluster:
        assert cluster.install(passing).output("out").changes(0) == [(0, 1)]


def test_accepted_folder_without_a_store_stays_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no folder"):
        run_command(["accept", str(tmp_path / "nowhere"), "0"])
    assert not list(tmp_path.iterdir())


def test_accepted_line_is_not_malformed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run_command(["forget", "store"])
    assert "usage: python -m timely.durable" in capsys.readouterr().err


@pytest.fixture
def with_answers(tmp_path: Path) -> Path:
    """A store with three answers of an output, and one of another that fails."""
    for number in range(3):
        with timely.connect(workers=2, embedded=True, durable=tmp_path, sync="system") as cluster:
            flow = cluster.install(divided)
            flow.input("rows").insert([(number, 1), (7, 2 - number)])
            flow.seal()
    return tmp_path


def divided(flow: timely.Dataflow) -> None:
    rows = dd.input(flow, "rows", "a: int, b: int")
    rows.output("rows", stored=True)
    rows.select(q=dd.col.a // dd.col.b).output("quotients", stored=True)


def test_inspected_store_names_what_is_stored(with_answers: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = ran(capsys, "inspect", with_answers)
    size = stored(with_answers, "rows").size_bytes
    assert f"output 'rows' is stored as of epoch 2: 6 rows, {size:,} bytes in answers/0-rows.000003-" in text
    assert "output 'quotients' is stored as of epoch 1: 4 rows, " in text
    assert "output 'quotients' is not stored as of epoch 2: it has no answer: " in text


def test_verified_store_names_answers_that_are_damaged(
    with_answers: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = ran(capsys, "verify", with_answers)
    assert "answer 0-rows.000001 is whole: 1 file, " in text and "answer 0-rows.000003 is whole" in text
    (part,) = Path(stored(with_answers, "rows").path).iterdir()
    data = part.read_bytes()
    part.write_bytes(data[:-1])
    text = ran(capsys, "verify", with_answers, fails=True)
    assert f"{part} is damaged" in text and "Remove the manifests that name it" in text
    part.unlink()
    assert f"{part} is missing" in ran(capsys, "verify", with_answers, fails=True)
    (with_answers / "answers" / "0-rows.000003.json").unlink()  # as the error says
    assert "answer 0-rows.000002 is whole" in ran(capsys, "verify", with_answers)
    assert stored(with_answers, "rows").epoch == 1


def test_pruned_store_has_one_answer_of_each_output(
    with_answers: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = ran(capsys, "prune", with_answers, "--keep", 1)
    assert "removed answers/0-rows.000001.json" in text and "removed answers/0-rows.000002.json" in text
    assert "removed answers/0-rows.000003" not in text
    assert len(list((with_answers / "answers").iterdir())) == 4
    assert stored(with_answers, "rows").epoch == 2 and stored(with_answers, "quotients").epoch == 1
    ran(capsys, "verify", with_answers)


def test_inspected_answers_of_an_ended_dataflow_stay(
    with_answers: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with timely.connect(embedded=True, durable=with_answers, sync="system") as cluster:
        cluster.install(divided).uninstall()
    ran(capsys, "fold", with_answers)
    text = ran(capsys, "inspect", with_answers)
    assert text.index("dataflow 0 has ended") < text.index("output 'rows' is stored as of epoch 2")


MEANWHILE = [
    ("verify", "read_base"),
    ("verify", "checked_file"),
    ("verify", "_count_records"),
    ("inspect", "_orders"),
    ("inspect", "read_base"),
]


@pytest.mark.parametrize(("command", "reads"), MEANWHILE)
def test_verified_and_inspected_store_may_be_folded_meanwhile(
    command: str,
    reads: str,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As by a running cluster: it removes what was about to be read, and that is no damage."""
    ran(capsys, "fold", folder)
    with timely.connect(embedded=True, durable=folder, sync="system") as cluster:
        flow = cluster.install(counts)
        flow.input("rows").insert([(9,)])
        flow.seal()
    read = getattr(commands, reads)
    calls: list[object] = []

    def late(*arguments: object) -> object:
        calls.append(arguments)
        if len(calls) == 1:
            for _ in range(2):  # then no base that stays needs what is there
                run_command(["fold", str(folder), "--forget"])
        return read(*arguments)

    monkeypatch.setattr(commands, reads, late)
    text = ran(capsys, command, folder)
    assert calls and ("the logs are whole: " if command == "verify" else "dataflow 0 (") in text
