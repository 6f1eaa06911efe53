"""Where rows go: by a function of the record, to all, to one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from differential.columns.update_batch import UpdateBatch
from progress.errors import MisuseError, PeerError
from timely.building.exchange import Broadcast, Expects, RecordRoute, Route, ToWorker
from timely.building.record_hash import by
from timely.wire.batch import Records
from timely.wire.routing import BUCKETS, Routing


def split(route: Route, records: list[object], workers: int) -> list[list[object]]:
    parts = route.split(Records(records), 0, Routing.default(workers))
    assert len(parts) == workers
    found = []
    for part in parts:
        assert part is None or isinstance(part, Records)
        assert part is None or part.rows > 0, "an empty message would hold a time back for nothing"
        found.append([] if part is None else part.records)
    return found


@given(st.lists(st.integers()), st.integers(1, 5))
def test_every_record_goes_to_exactly_the_worker_of_its_number(numbers: list[int], workers: int) -> None:
    parts = split(RecordRoute(lambda record: int(str(record))), list(numbers), workers)
    for worker, part in enumerate(parts):
        assert part == [number for number in numbers if number % BUCKETS % workers == worker]


@pytest.mark.parametrize("answer", [None, "1", 1.0])
def test_a_function_that_returns_no_integer_is_named(answer: object) -> None:
    def route_by_nothing(record: object) -> int:
        return answer  # type: ignore[return-value]  # that is the mistake

    with pytest.raises(
        MisuseError, match="route_by_nothing.* must return an int; for 'x' it returned.*\n.*timely.by\\("
    ):
        split(RecordRoute(route_by_nothing), ["x"], 2)


def test_broadcast_gives_every_worker_every_record() -> None:
    assert split(Broadcast(), [1, 2], 3) == [[1, 2]] * 3


def test_to_worker_gives_all_to_one_whatever_the_number_of_workers() -> None:
    assert split(ToWorker(1), [1, 2], 3) == [[], [1, 2], []]
    assert split(ToWorker(1), [1, 2], 1) == [[1, 2]]


def test_descriptions_are_stable_texts_that_tell_routes_apart() -> None:
    routes: list[Route] = [RecordRoute(id), RecordRoute(hash), Broadcast(), ToWorker(0), ToWorker(1)]
    assert len({route.describe() for route in routes}) == len(routes)
    assert RecordRoute(hash).describe() == RecordRoute(hash).describe()


def test_hash_stands_for_the_whole_record_as_its_key() -> None:
    records: list[object] = ["a", "b", None, ("a", None), 1, 2.5, b"x"]
    assert split(RecordRoute(hash), records, 3) == split(RecordRoute(by()), records, 3)
    assert "hash" in RecordRoute(hash).describe()


def test_what_calls_hash_is_looked_at_again_where_it_arrives() -> None:
    """As if the sender were a process with another seed."""
    wrong = RecordRoute(lambda record: hash(record) + 1)
    assert wrong.is_doubtful
    assert RecordRoute(by(hash)).is_doubtful
    assert not any(RecordRoute(known).is_doubtful for known in (hash, by(), by(0, "a"), by(str), id))
    assert not RecordRoute(lambda record: hash(record), moves=True).is_doubtful
    wrong.confirm(Records([1, 3]), "stage 'count' on worker 0", 1, 0, 2)
    with pytest.raises(
        MisuseError, match="stage 'count' .* got the record 2, .* to worker 0 on worker 1, and"
    ):
        wrong.confirm(Records([1, 2]), "stage 'count' on worker 0", 1, 0, 2)


def test_an_exchange_of_records_takes_records_from_other_workers_and_nothing_else() -> None:
    route = RecordRoute(hash)
    assert isinstance(route, Expects) and not isinstance(Broadcast(), Expects)
    route.check(Records([1]), 1)
    updates = UpdateBatch(np.ones((2, 1), np.int64))
    with pytest.raises(PeerError, match="worker 1 sent a UpdateBatch where records are exchanged"):
        route.check(updates, 1)
