"""`accept` lets digests count anew, those of readers, too, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from timely import MisuseError
from timely.durable.accepting import accept
from timely.durable.bases.coverage import logs_of
from timely.durable.bases.facts import FoldFacts
from timely.durable.folder_store import FolderStore
from timely.durable.incarnations import announce, hello_of
from timely.durable.journal import Journal
from timely.durable.log import Log
from timely.durable.past import Past, read_orders


def write(store: FolderStore, digests: list[tuple[int, int]]) -> None:
    """An incarnation with three dataflows, of which the second reads the first, and the third the second."""
    incarnation = announce(store, 1)
    log = Log(store, incarnation.cluster, incarnation.number, 0)
    log.add(hello_of(incarnation, 0))
    journal = Journal(log, 0)
    for number in range(4):
        reads = [number - 1] if number in (1, 2) else []
        journal.flow(number, ["", b"", f"flow{number}", reads, 0, "", [], FoldFacts().plain()])
        journal.digest(number, "out", 5, digests)
    log.wait(log.position, 10)
    log.close()


def past_of(store: FolderStore) -> Past:
    return read_orders(logs_of(store, announce(store, 1)))


@pytest.mark.parametrize(("name", "accepted"), [("flow1", [1, 2]), ("0", [0, 1, 2]), ("3", [3])])
def test_digests_of_a_dataflow_and_its_readers_count_no_more(
    tmp_path: Path, name: str, accepted: list[int]
) -> None:
    store = FolderStore(tmp_path / "store")
    write(store, [(0, 7)])
    assert accept(store, name) == [(number, f"flow{number}") for number in accepted]
    flows = past_of(store).flows
    assert {number: set(flow.digests) for number, flow in flows.items()} == {
        number: set() if number in accepted else {"out"} for number in range(4)
    }


def test_digests_that_are_written_later_count_again(tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "store")
    write(store, [(0, 7)])
    accept(store, "0")
    incarnation = announce(store, 1)
    log = Log(store, incarnation.cluster, incarnation.number, 0)
    log.add(hello_of(incarnation, 0))
    Journal(log, 0).digest(0, "out", 2, [(1, 9)])
    log.wait(log.position, 10)
    log.close()
    digests = past_of(store).flows[0].digests["out"]
    assert (digests.before, digests.sums) == (2, {1: 9})


def test_a_dataflow_that_is_not_there_is_an_error_that_names_the_others(tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "store")
    write(store, [])
    with pytest.raises(MisuseError, match=r"no dataflow 7: it has 0 \(flow0\), 1 \(flow1\), "):
        accept(store, "7")
