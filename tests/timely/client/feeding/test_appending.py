"""An append as a request, of whoever sends it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import differential as dd
import timely
from timely import MisuseError
from timely.client.feeding import appending
from timely.client.feeding.appending import LastName, append_request, is_large, is_small
from timely.wire.requests import BY_COLUMN, IN_EPOCH, Deliver


@pytest.mark.parametrize("epoch", [3, np.int64(3)])
def test_a_number_is_one_epoch_and_a_text_a_column_that_says_many(epoch: object) -> None:
    request = append_request(1, "rows", epoch, "w", 7)
    assert request == Deliver(1, "rows", "w", 7, IN_EPOCH, 3, 0) and type(request.epoch) is int  # type: ignore[union-attr]
    assert append_request(1, "rows", "day", "w", 7) == Deliver(
        1, "rows", "w", 7, BY_COLUMN, 0, 0, column="day"
    )


@pytest.mark.parametrize("epoch", [True, 1.0, None, b"day"])
def test_what_is_neither_is_refused_before_it_is_sent(epoch: object) -> None:
    with pytest.raises(MisuseError, match=r"append\(epoch=…\) takes the number of an epoch, or the name of"):
        append_request(1, "rows", epoch, "w", 7)


@pytest.mark.parametrize(
    "column",
    [
        pa.array(range(5_000), pa.int32()),
        pa.array([None, 1.5] * 2_500),
        pa.array([True, None] * 2_500),
        pa.array(["a long text, which takes more than a number"] * 5_000),
        pa.array(["one of few long texts, each of which is stored once"] * 5_000).dictionary_encode(),
        pa.array([[1, 2, 3]] * 5_000),
    ],
)
def test_a_table_is_small_or_large_by_its_own_bytes_and_not_by_what_it_is_a_slice_of(
    column: pa.Array, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = pa.table({"n": column})
    monkeypatch.setattr(appending, "POSTED_BYTES_MAX", whole.nbytes // 10)
    monkeypatch.setattr(appending, "APPEND_BYTES_MAX", whole.nbytes // 2)
    for rows in (0, 1, 8, 100, 1_000, 4_000, 5_000):
        part = whole.slice(5_000 - rows)
        assert is_small(part, 1) == (part.nbytes <= whole.nbytes // 10)
        assert is_large(part, 1) == (part.nbytes > whole.nbytes // 2)


@pytest.mark.parametrize("values", [pa.array(range(1_000)), pa.array(["a text of some length"] * 1_000)])
def test_memory_that_chunks_or_columns_share_counts_for_each_of_them(
    values: pa.Array, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request has it several times."""
    one = pa.table({"n": values})
    monkeypatch.setattr(appending, "POSTED_BYTES_MAX", 2 * one.nbytes)
    monkeypatch.setattr(appending, "APPEND_BYTES_MAX", 10 * one.nbytes)
    for count in (1, 2, 3, 10, 11, 40):
        for table in (pa.concat_tables([one] * count), pa.table({f"c{at}": values for at in range(count)})):
            assert is_small(table, 1) == (count <= 2)
            assert is_large(table, 1) == (count > 10)


class Orders:
    """An input that takes all rows but "fails"."""

    def __init__(self) -> None:
        self.last_name = LastName("orders")
        self.calls: list[str] = []

    def add(self, call: str, data: object, writer: str = "cron", sequence: int = 3) -> int:
        def add() -> int:
            if data == "fails":
                raise MisuseError("no rows")
            self.calls.append(call)
            return 7

        return self.last_name.once((writer, sequence), call, data, add)


def test_a_name_is_not_for_two_calls() -> None:
    """The second would count as a repetition of the first."""
    orders = Orders()
    assert orders.add("insert", [1, 2]) == 7
    orders.add("insert", [2, 1])  # a repetition
    with pytest.raises(MisuseError, match=r"remove\(…\) .*sequence=3, which insert\(…\)") as raised:
        orders.add("remove", [1])
    assert "'orders'" in str(raised.value) and "writer='cron/remove'" in str(raised.value)
    with pytest.raises(MisuseError, match=r"insert\(…\) has the name .*, which another insert\(…\)"):
        orders.add("insert", [1])
    orders.add("insert", iter([1, 2]))  # of a length that nobody knows
    orders.add("remove", [1], sequence=4)
    orders.add("remove", [1], "cron/remove")
    orders.add("insert", [1], "cron/remove", 4)
    assert len(orders.calls) == 6


def test_calls_that_have_failed_take_no_name() -> None:
    orders = Orders()
    with pytest.raises(MisuseError, match="no rows"):
        orders.add("insert", "fails")
    orders.add("remove", [1])
    assert orders.calls == ["remove"]


@pytest.mark.parametrize("rows", [[(1,)], pa.table({"n": [1]})])
def test_an_input_refuses_a_name_that_its_last_call_had(rows: object) -> None:
    def numbers(flow: timely.Dataflow) -> None:
        dd.input(flow, "numbers", "n: int").output("numbers")

    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(numbers)
        numbers_in = flow.input("numbers")
        numbers_in.insert(rows, writer="cron", sequence=0)
        with pytest.raises(MisuseError, match=r"remove\(…\) has the name writer='cron', sequence=0"):
            numbers_in.remove(rows, writer="cron", sequence=0)
        numbers_in.insert(rows)
        numbers_in.insert(rows, writer="cron", sequence=0)
        numbers_in.remove(rows, writer="cron", sequence=1)
        flow.seal()
        assert flow.output("numbers").to_pylist() == [{"n": 1}]
