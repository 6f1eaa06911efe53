"""`append(epoch="a column")`: many epochs in one call, beside the rows accumulated up to each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import differential as dd
import timely
from timely.operators.inputs import handle
from timely.operators.inputs.deliveries import Deliveries

ROWS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 3), st.sampled_from([1, 2])), max_size=12)


def table(rows: list[tuple[int, int, int]]) -> pa.Table:
    """Of (epoch, k, diff)."""
    columns = list(zip(*rows, strict=True)) or [()] * 3
    return pa.table(
        {name: pa.array(c, pa.int64()) for name, c in zip(("at", "k", "diff"), columns, strict=True)}
    )


def counts(flow: timely.Dataflow) -> None:
    dd.input(flow, "rows", "k: int").group_by("k").agg(n=dd.count()).output("counts")


def latest(flow: timely.Dataflow) -> None:
    dd.input(flow, "rows", "k: int, v: int?", key="k", mode="upsert").output("rows")


@settings(max_examples=60)
@given(
    st.lists(st.tuples(ROWS, st.integers(0, 4)), min_size=1, max_size=6),
    st.integers(1, 3),
    st.sampled_from([None, (3,), (4,)]),
)
def test_at_each_epoch_there_is_what_its_rows_and_those_before_add_up_to(
    calls: list[tuple[list[tuple[int, int, int]], int]], workers: int, bits: tuple[int, ...] | None
) -> None:
    """Also where words hold eight epochs only, so that those that wait have other words when they enter."""

    def build(flow: timely.Dataflow) -> None:
        flow.level_bits = bits
        counts(flow)

    with timely.connect(workers=workers, embedded=True) as cluster:
        flow = cluster.install(build)
        came: list[tuple[int, int, int]] = []
        for number, (ahead, sealed) in enumerate(calls):
            rows = [(flow.epoch + at, k, diff) for at, k, diff in ahead]
            came += rows
            for again in (False, True):
                is_new = flow.input("rows").append(table(rows), epoch="at", writer="w", sequence=number)
                assert is_new == (not again or not rows), "what has no epochs is remembered nowhere"
            if sealed:
                flow.wait(flow.seal(through=flow.epoch + sealed - 1))
        last = flow.seal(through=flow.epoch + 6)
        flow.wait(last)
        found = flow.output("counts").changes().to_pylist()
    for epoch in range(last + 1):
        expected = Counter[int]()
        for at, k, diff in came:
            expected[k] += diff if at <= epoch else 0
        at_epoch = Counter[tuple[int, int]]()
        for change in found:
            if change["epoch"] <= epoch:
                at_epoch[change["k"], change["n"]] += change["diff"]
        assert {row for row, n in at_epoch.items() if n} == {(k, n) for k, n in expected.items() if n}


def values(flow: timely.Dataflow) -> None:
    dd.input(flow, "rows", "k: int, v: int", key="k", mode="upsert").output("out")


def values_or_null(flow: timely.Dataflow) -> None:
    dd.input(flow, "rows", "k: int, v: int?", key="k", mode="upsert").output("out")


def rows_of_two(flow: timely.Dataflow) -> None:
    dd.input(flow, "rows", "k: int, v: int?").output("out")


SAID = st.tuples(
    st.integers(-1, 5),
    st.integers(0, 2),
    st.sampled_from([7, 8, 9, None]),
    st.sampled_from([1, 1, 1, -1, -1, 0]),
)
"""How far ahead, key, value, diff."""


@settings(max_examples=80)
@given(
    st.sampled_from([values, values_or_null, rows_of_two]),
    st.lists(
        st.tuples(st.lists(SAID, max_size=8), st.booleans(), st.booleans(), st.integers(0, 2)), max_size=6
    ),
    st.integers(1, 3),
)
def test_one_append_of_many_epochs_does_what_one_of_each_epoch_does(
    build: Callable[[timely.Dataflow], None],
    calls: list[tuple[list[tuple[int, int, int | None, int]], bool, bool, int]],
    workers: int,
) -> None:
    """Named, or in the order of calls; with epochs that are sealed, where it is refused as the first of them
    would be; repeated, which changes nothing.
    """
    with timely.connect(workers=workers, embedded=True) as cluster:
        once, apart = cluster.install(build), cluster.install(build)
        flows = (once, apart)
        for number, (ahead, is_named, is_again, sealed) in enumerate(calls):
            rows = [(max(0, once.epoch + at), *row) for at, *row in ahead]
            said = pa.table(
                {
                    name: pa.array([row[at] for row in rows], pa.int64())
                    for at, name in enumerate(("at", "k", "v", "diff"))
                }
            )
            name = {"writer": "w", "sequence": number} if is_named else {}
            by_epoch = {
                epoch: said.filter(pa.array([row[0] == epoch for row in rows])).drop_columns("at")
                for epoch in sorted({row[0] for row in rows})
            }
            if any(epoch < once.epoch for epoch in by_epoch):
                with pytest.raises(timely.InputClosedError):
                    once.input("rows").append(said, epoch="at", **name)
                with pytest.raises(timely.InputClosedError):
                    apart.input("rows").append(by_epoch[min(by_epoch)], epoch=min(by_epoch), **name)
            else:
                for again in range(1 + (is_again and is_named)):
                    assert once.input("rows").append(said, epoch="at", **name) == (not again or not rows)
                    for epoch, own in by_epoch.items():
                        assert apart.input("rows").append(own, epoch=epoch, **name) == (not again)
            if sealed:
                for flow in flows:
                    flow.seal(through=flow.epoch + sealed - 1)
        for flow in flows:
            flow.wait(flow.seal(through=flow.epoch + 5))
        assert once.epoch == apart.epoch
        order = [(name, "ascending") for name in ("epoch", "k", "v", "diff")]
        found, expected = (flow.output("out").changes().sort_by(order).to_pylist() for flow in flows)
    assert found == expected


def test_rows_enter_all_their_epochs_or_none() -> None:
    with timely.connect(workers=2, embedded=True) as cluster:
        flow = cluster.install(counts)
        rows = flow.input("rows")
        flow.wait(flow.seal(through=2))
        with pytest.raises(timely.InputClosedError, match="epoch 2 is sealed"):
            rows.append(table([(5, 1, 1), (2, 1, 1)]), epoch="at", writer="w", sequence=0)
        with pytest.raises(timely.TimelyError, match="-1"):
            rows.append(table([(5, 1, 1), (-1, 1, 1)]), epoch="at", writer="w", sequence=0)
        with pytest.raises(timely.TimelyError, match=str(2**62)):
            rows.append(table([(5, 1, 1), (2**62, 1, 1)]), epoch="at", writer="w", sequence=0)
        assert rows.append(table([(5, 1, 1), (3, 1, 1)]), epoch="at", writer="w", sequence=0)
        flow.wait(flow.seal(through=3))
        assert not rows.append(table([(5, 1, 1), (3, 1, 1)]), epoch="at", writer="w", sequence=0), "of 5, too"
        flow.wait(flow.seal(through=5))
        changes = flow.output("counts").changes()
        assert changes.sort_by([("epoch", "ascending"), ("n", "ascending")]).to_pylist() == [
            {"k": 1, "n": 1, "epoch": 3, "diff": 1},
            {"k": 1, "n": 1, "epoch": 5, "diff": -1},
            {"k": 1, "n": 2, "epoch": 5, "diff": 1},
        ]


def test_a_repetition_is_known_as_long_as_one_of_its_epochs_is_open() -> None:
    """Of those that were sealed earlier than last nothing is remembered."""
    with timely.connect(workers=2, embedded=True) as cluster:
        flow = cluster.install(counts)
        rows, said = flow.input("rows"), table([(0, 1, 1), (1, 1, 1), (6, 1, 1)])
        assert rows.append(said, epoch="at", writer="w", sequence=0)
        flow.seal(through=4)
        assert not rows.append(said, epoch="at", writer="w", sequence=0)
        assert flow.seal([("rows", "w", 0)], through=6) == 6
        assert not rows.append(said, epoch="at", writer="w", sequence=0), "the last that was sealed is known"
        flow.wait(flow.seal())
        with pytest.raises(timely.InputClosedError, match="epoch 0 is sealed"):
            rows.append(said, epoch="at", writer="w", sequence=0)
        assert [row["n"] for row in flow.output("counts").snapshot().to_pylist()] == [3]


def test_who_seals_an_epoch_may_expect_them() -> None:
    with timely.connect(workers=2, embedded=True) as cluster:
        flow = cluster.install(counts)
        flow.input("rows").append(table([(0, 1, 1), (4, 1, 1)]), epoch="at", writer="w", sequence=7)
        assert [flow.seal([("rows", "w", 7)]) for _ in range(5)] == [*range(5)], "also of no rows"
        assert flow.seal([("rows", "w", 7)]) == 5, "as long as it may be repeated"
        with pytest.raises(timely.MisuseError, match="have not arrived"):
            flow.seal([("rows", "w", 7)])


def test_without_a_name_each_call_is_new() -> None:
    with timely.connect(workers=2, embedded=True) as cluster:
        flow = cluster.install(counts)
        for _ in range(3):
            assert flow.input("rows").append(table([(0, 1, 1), (1, 1, -1)]), epoch="at")
        flow.wait(flow.seal(through=1))
        assert flow.output("counts").changes().to_pylist() == [
            {"k": 1, "n": 3, "epoch": 0, "diff": 1},
            {"k": 1, "n": 3, "epoch": 1, "diff": -1},
        ]


def test_last_values_are_said_epoch_by_epoch() -> None:
    with timely.connect(workers=2, embedded=True) as cluster:
        flow = cluster.install(latest)
        said = pa.table(
            {
                "v": [1, 2, 3, None, 9],
                "diff": [1, 1, 1, -1, 1],
                "at": [1, 0, 1, 3, 2],
                "k": [7, 7, 7, 7, 8],
            }
        )
        flow.input("rows").append(said, epoch="at", writer="w", sequence=0)
        flow.wait(flow.seal(through=3))
        found = flow.output("rows").changes().to_pylist()
    assert sorted((row["epoch"], row["diff"], row["k"], row["v"]) for row in found) == [
        (0, 1, 7, 2),
        (1, -1, 7, 2),
        (1, 1, 7, 3),
        (2, 1, 8, 9),
        (3, -1, 7, 3),
    ]


def test_of_several_calls_of_a_writer_the_last_number_says_the_value() -> None:
    """In whichever order they come, and also beside appends to one epoch."""

    def said(value: int, *epochs: int) -> pa.Table:
        return pa.table(
            {"at": epochs, "k": [7] * len(epochs), "v": [value] * len(epochs), "diff": [1] * len(epochs)}
        )

    with timely.connect(workers=2, embedded=True) as cluster:
        flow = cluster.install(latest)
        rows = flow.input("rows")
        rows.append(said(5, 0, 1), epoch="at", writer="w", sequence=2)
        rows.append(said(9, 2, 1, 0), epoch="at", writer="w", sequence=1)
        rows.append(said(8, 1).drop_columns(["at"]), epoch=1, writer="w", sequence=3)
        rows.append(said(7, 3, 2, 1), epoch="at", writer="w", sequence=0)
        flow.wait(flow.seal(through=3))
        found = flow.output("rows").changes().to_pylist()
    assert [(row["epoch"], row["v"]) for row in found if row["diff"] > 0] == [(0, 5), (1, 8), (2, 9), (3, 7)]


def test_where_the_order_counts_numbers_of_appends_have_an_end() -> None:
    said = pa.table({"at": [0, 1], "k": [7, 7], "v": [1, 2], "diff": [1, 1]})
    with timely.connect(workers=2, embedded=True) as cluster:
        flow = cluster.install(latest)
        rows = flow.input("rows")
        with pytest.raises(timely.MisuseError, match="numbers from 0 to 2,147,483,647, not 2147483648"):
            rows.append(said, epoch="at", writer="w", sequence=2**31)
        flow.wait(flow.seal())
        assert not flow.output("rows").snapshot().num_rows
        later = said.set_column(0, "at", pa.array([1, 2]))
        assert rows.append(later, epoch="at", writer="w", sequence=2**31 - 1)
        flow.wait(flow.seal(through=2))
        assert flow.output("rows").snapshot().to_pylist() == [{"k": 7, "v": 2}]


@pytest.mark.parametrize("epoch", [0, "at"])
def test_appends_without_a_name_are_in_the_order_of_calls(epoch: int | str) -> None:
    def said(v: int) -> pa.Table:
        columns = {"k": [7], "v": [v], "diff": [1]}
        return pa.table(columns if epoch == 0 else {**columns, "at": [0]})

    with timely.connect(workers=3, embedded=True) as cluster:
        flow = cluster.install(latest)
        rows = flow.input("rows")
        for v in range(0, 30, 3):  # the order of names, which are made anew for each client, would be chance
            rows.append(said(v), epoch=epoch)
            rows.upsert([(7, v + 1)])
            cluster.flow(flow.index).input("rows").append(said(v + 2), epoch=epoch)
        flow.seal()
        assert flow.output("rows").snapshot().to_pylist() == [{"k": 7, "v": 29}]


def test_appends_to_epochs_leave_no_gaps_in_the_numbers_of_insertions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(handle, "Deliveries", partial(Deliveries, gaps_max=2))
    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(counts)
        rows = flow.input("rows")
        for _ in range(5):
            rows.append(table([(0, 1, 1)]).drop_columns("at"))
            rows.append(table([(0, 1, 1)]), epoch="at")
            rows.append(table([(0, 1, 1)]).drop_columns("at"), epoch=0)
        flow.seal()
        assert flow.output("counts").snapshot().to_pylist() == [{"k": 1, "n": 15}]


def test_what_repeats_another_only_in_part_is_refused() -> None:
    """Its other rows would be lost in silence."""
    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(counts)
        rows = flow.input("rows")
        rows.append(table([(0, 1, 1)]).drop_columns("at"), epoch=0, writer="job", sequence=0)
        with pytest.raises(timely.MisuseError, match="append 0 of .* epoch 0 and none of epoch 1"):
            rows.append(table([(0, 1, 1), (1, 2, 1)]), epoch="at", writer="job", sequence=0)
        assert rows.append(table([(0, 1, 1), (1, 2, 1)]), epoch="at", writer="job", sequence=1)


def test_no_rows_for_a_closed_input_are_refused_as_any() -> None:
    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(counts)
        flow.input("rows").close()
        for rows in ([], [(0, 1, 1)]):
            with pytest.raises(timely.InputClosedError):
                flow.input("rows").append(table(rows), epoch="at", writer="w", sequence=0)


def test_an_epoch_before_all_is_none() -> None:
    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(counts)
        with pytest.raises(timely.MisuseError, match="-1") as raised:
            flow.input("rows").append(table([(-1, 1, 1)]), epoch="at")
        assert not isinstance(raised.value, timely.InputClosedError), "it was never open"


def test_who_completes_several_epochs_may_expect_what_has_rows_of_one_of_them() -> None:
    with timely.connect(workers=2, embedded=True) as cluster:
        flow = cluster.install(counts)
        flow.input("rows").append(table([(0, 1, 1), (1, 2, 1)]), epoch="at", writer="job", sequence=0)
        assert flow.seal([("rows", "job", 0)], through=2) == 2


def test_rows_keep_their_epochs_when_words_count_from_another_one() -> None:
    """A table begins in the epoch in which the one before ended, and meanwhile the anchor has moved."""

    def numbers(flow: timely.Dataflow) -> None:
        flow.level_bits = (3,)
        dd.input(flow, "numbers", "n: int").output("all")

    for first in range(5, 12):
        with timely.connect(workers=1, embedded=True) as cluster:
            flow = cluster.install(numbers)
            for epochs in ([*range(first)], [first - 1, first], [first, first + 1, first + 7]):
                given = pa.table({"n": epochs, "at": epochs, "diff": [1] * len(epochs)})
                flow.input("numbers").append(given, epoch="at")
                flow.wait(flow.seal(through=epochs[-2]))
            flow.wait(flow.seal(through=first + 7))
            found = flow.output("all").changes().to_pylist()
        assert all(row["n"] == row["epoch"] for row in found)
        often = Counter({row["n"]: row["diff"] for row in found})
        assert often == Counter([*range(first), first - 1, first, first, first + 1, first + 7])
