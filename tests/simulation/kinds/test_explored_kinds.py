"""All orders in which more of the runtime can happen, kind by kind: `scenarios.py` says what each of them is.

kinds_*      all of a small scenario and the nearest states of a large one are as they must be
reduced_*    what may be left out, compared with what there is
mutants_*    the runtime is broken on purpose, each way by name; what the explorer says of it

At length: `./scripts/explore KIND`.
"""

from __future__ import annotations

import pytest
from simulation.kinds.scenarios import KINDS, DividedExplorer, divided

from differential.operators.edge.table_in import TableIn
from progress.checking.counterexample import Counterexample
from timely.failure import EndedDataflows
from timely.operators.outputs.exported_streams import StreamExportVertex
from timely.operators.router import RouterVertex
from timely.running.core import Worker
from timely.wire.batch import Batch
from timely.worker.server import Server

SMALL = [name for name, kind in KINDS.items() if kind.small is not None]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", KINDS)
def test_kinds_in_every_order(name: str, effort: int) -> None:
    kind = KINDS[name]
    left = kind.states
    if kind.small is not None:
        small = kind.all_of_small()
        assert small.ends >= 1, small
        left -= small.states
    for scenario in kind.large[: 1 if effort == 1 else None]:
        found = kind.some_of(scenario, left)
        assert found.states >= left, found


PARTS = divided((0, [(1, 2), (2, 3), (3, 4), (4, 5)]), (1, [(4, 4)]))


def test_kinds_a_divided_insertion_enters_once_and_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its four rows on worker 0 enter in pieces, and several are sent to worker 1: 712 states."""
    sent: list[int] = []
    send_data = Worker.send_data

    def counted(self: Worker, peer: int, dataflow: int, connector: int, word: int, batch: Batch) -> None:
        sent.append(batch.rows)
        send_data(self, peer, dataflow, connector, word, batch)

    monkeypatch.setattr(Worker, "send_data", counted)
    explored = DividedExplorer(PARTS, whole=True).run()
    assert explored.states > 600 and explored.ends >= 1, explored
    assert sent and set(sent) == {1}, "two rows of worker 1 never come in one message"


@pytest.mark.parametrize("name", [name for name in SMALL if name not in ("rounds", "rings")])
def test_reduced_by_independent_actions_all_states_of_workers_and_all_ends_are_there(name: str) -> None:
    """Of compiled loops: `test_explored_loops.py`. Rings are not reduced."""
    explored, reduced = KINDS[name].all_of_small(), KINDS[name].all_of_small(reduced=True)
    assert reduced.states < 0.8 * explored.states, (explored, reduced)
    assert reduced.worker_states == explored.worker_states and reduced.ends == explored.ends


def test_reduced_a_large_scenario_stands_for_more_states_than_are_visited() -> None:
    """Workers 1 and 2 of three do the same: nearly each state stands for two."""
    kind = KINDS["flows"]
    (scenario,) = [each for each in kind.large if each.alike]
    found = kind.some_of(scenario, 600, reduced=True)
    assert found.states >= 600 and found.images > 1.5 * found.states and found.put_off > 0, found
    assert "stand for" in str(found) and "not followed" in str(found)


def test_reduced_what_no_small_scenario_proves_is_visited_as_it_is() -> None:
    kind = KINDS["replaced"]
    found = kind.some_of(kind.large[0], 150, reduced=True)
    assert found.states >= 150 and found.put_off == found.images == 0, found


# mutants_


def found_by(name: str) -> str:
    with pytest.raises(Counterexample) as caught:
        KINDS[name].all_of_small()
    return caught.value.what


def test_mutants_rows_do_not_wait_for_the_version_of_their_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    on_start = RouterVertex.on_start

    def too_sure(self: RouterVertex) -> None:
        on_start(self)
        self._versions_before += 1

    monkeypatch.setattr(RouterVertex, "on_start", too_sure)
    assert found_by("routed").startswith("the result is")


def test_mutants_of_two_simultaneous_errors_each_worker_keeps_the_later_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    add = EndedDataflows.add

    def later(self: EndedDataflows, number: int, reason: Exception, origin: int, read: object = None) -> bool:
        self._ranks.pop(number, None)
        self.pop(number, None)
        self.count -= 1
        return add(self, number, reason, origin, read)  # type: ignore[arg-type]

    monkeypatch.setattr(EndedDataflows, "add", later)
    assert found_by("failed").startswith("workers have different reasons for ends")


def test_mutants_the_end_of_a_dataflow_is_told_to_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Server, "_on_failure", lambda self, dataflow, error: None)
    assert found_by("uninstalled").startswith("workers run different dataflows: [[], [0, 1]]")


def test_mutants_an_import_begins_without_what_the_owner_has_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StreamExportVertex, "kept_from", lambda self, epoch: [])
    assert found_by("installed").startswith("the result is")


def test_mutants_of_a_large_table_the_last_piece_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """A part of one piece loses all of its rows."""
    encode = TableIn.encode_folded
    monkeypatch.setattr(TableIn, "encode_folded", lambda self, table, diff: encode(self, table, diff)[:-1])
    with pytest.raises(Counterexample) as caught:
        DividedExplorer(PARTS, whole=True).run()
    assert caught.value.what.startswith("the result is")
