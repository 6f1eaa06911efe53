"""plan/grouping: what is chosen of a group, beside sums and alone, against what plain Python says.

values_*   lists of values
agrees_*   all aggregates that choose, with rows that come and go, on one and two workers
refused_*  what has no order
"""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies_collections import examples

import differential as dd
import timely
from differential import col
from differential.errors import ExpressionError
from differential.plan.grouping.collecting import values_of, values_once
from timely.building.dataflow import Dataflow

Row = tuple[int, str | None, int | None]

ROWS = st.tuples(
    st.integers(0, 2),
    st.sampled_from(
        ["b", "a", "Zoë", None, "long enough to share a start 1", "long enough to share a start 2"]
    ),
    st.one_of(st.none(), st.integers(-2, 2)),
)


def test_values_of_one_type_are_in_their_order() -> None:
    assert values_of((), [(("b",), 1), (("a",), 2), ((None,), 1), (("c",), -1)]) == [(["a", "a", "b"],)]
    assert values_once((), [((10,), 1), ((9,), 2)]) == [([9, 10],)]


def test_values_of_several_types_are_in_some_order_that_holds() -> None:
    members = [((1,), 1), (("a",), 1), ((2.5,), 1)]
    assert values_of((), members) == values_of((), members[::-1])


def build(flow: timely.Dataflow) -> None:
    rows = dd.input(flow, "rows", "k: int, s: string?, n: int?")
    groups = rows.group_by("k")
    groups.agg(
        count=dd.count(),
        least=dd.min("n"),
        most=dd.max("s"),
        at=dd.argmin("s", by="n"),
        top=dd.argmax(col.n, by=col.s),
        first=dd.first("n", by=["s", "n"]),
        last=dd.last("s", by=[col.n, col.s]),
        all=dd.collect("n"),
        different=dd.collect_set("s"),
    ).output("mixed")
    groups.agg(least=dd.min("s")).output("alone")


def _expected(rows: Counter[Row]) -> dict[int, dict[str, object]]:
    found: dict[int, dict[str, object]] = {}
    for k in {row[0] for row in rows}:
        group = [(s, n) for (key, s, n), count in rows.items() if key == k for _ in range(count)]
        texts = sorted(s for s, _ in group if s is not None)
        numbers = sorted(n for _, n in group if n is not None)
        by_n = [(n, (s is None, s or ""), s) for s, n in group if n is not None]
        by_s = [(s, n) for s, n in group if s is not None]
        best = max((s for s, _ in by_s), default=None)
        of_best = [n for s, n in by_s if s == best]
        nulls_first = sorted(group, key=lambda r: (r[0] is not None, r[0] or "", r[1] is not None, r[1] or 0))
        latest = max(group, key=lambda r: (r[1] is not None, r[1] or 0, r[0] is not None, r[0] or ""))
        found[k] = {
            "count": len(group),
            "least": numbers[0] if numbers else None,
            "most": texts[-1] if texts else None,
            "at": min(by_n)[2] if by_n else None,
            "top": min(of_best, key=lambda n: (n is None, n or 0)) if of_best else None,
            "first": nulls_first[0][1],
            "last": latest[0],
            "all": numbers,
            "different": sorted(set(texts)),
        }
    return found


@examples(0.4)
@given(st.lists(st.lists(ROWS, max_size=6), min_size=1, max_size=3), st.integers(1, 2), st.data())
def test_agrees_with_plain_words(epochs: list[list[Row]], workers: int, data: st.DataObject) -> None:
    with timely.connect(workers=workers, embedded=True) as cluster:
        flow = cluster.install(build)
        there: Counter[Row] = Counter()
        for come in epochs:
            gone = data.draw(st.lists(st.sampled_from(sorted(there, key=repr)), unique=True)) if there else []
            flow.input("rows").insert(come)
            flow.input("rows").remove(gone)
            there = Counter({row: n for row, n in (there + Counter(come) - Counter(gone)).items() if n > 0})
            flow.seal()
            got = {row.pop("k"): row for row in _plain(flow, "mixed")}
            assert got == _expected(there)
            alone = {row["k"]: row["least"] for row in _plain(flow, "alone")}
            assert alone == {
                k: min((s for key, s, _ in there if key == k and s is not None), default=None) for k in got
            }


def _plain(flow: timely.Flow, name: str) -> list[dict[str, object]]:
    import msgpack

    rows = flow.output(name).snapshot().to_pylist()
    lists = {"all", "different"}
    return [
        {key: msgpack.unpackb(value) if key in lists else value for key, value in row.items()} for row in rows
    ]


def test_refused_what_has_no_order() -> None:
    rows = dd.input(Dataflow("queries"), "rows", "k: int, x: any")
    with pytest.raises(ExpressionError, match="no order"):
        rows.group_by("k").agg(least=dd.min("x"))
    with pytest.raises(ExpressionError, match=r"argmax\(x, by=.*column 'x' is any.*no order"):
        rows.group_by("k").agg(top=dd.argmax("x", by="x"))
    with pytest.raises(ExpressionError, match=r"first\(x, by=.*no order"):
        rows.group_by("k").agg(top=dd.first("x", by=["k", "x"]))
    with pytest.raises(ExpressionError, match="compares by one column"):
        dd.argmin("k", by=["x", "k"])  # type: ignore[arg-type]  # that is the point
