"""operators/loops/last_iterations.py: the text about the last iterations of a loop without end."""

from __future__ import annotations

import numpy as np
import pytest

import differential as dd
import timely
from differential import Collection, col
from differential.columns.schema import Schema
from differential.columns.update_batch import UpdateBatch
from differential.operators.loops.last_iterations import last_iterations
from timely import Dataflow, MisuseError

SCHEMA = Schema.of("k: int, v: int")


def batch(*rows: tuple[int, int, int]) -> UpdateBatch:
    """Rows (k, v, diff)."""
    return UpdateBatch(np.array([[k, v, 0, diff] for k, v, diff in rows], np.int64).T.copy())


def test_rows_that_change_most_often_come_first() -> None:
    said = last_iterations(SCHEMA)(
        [(7, batch((1, 2, 1), (3, 3, 1))), (8, batch((1, 2, -1))), (9, batch((1, 2, 1)))]
    )
    assert said.startswith(
        "Rows that came and went: (k=1, v=2) +1 at 7, -1 at 8, +1 at 9; (k=3, v=3) +1 at 7"
    )


def test_no_more_than_three_rows_with_their_last_four_changes() -> None:
    rounds = [(at, batch(*((k, 0, 1) for k in range(9)))) for at in range(20)]
    said = last_iterations(SCHEMA)(list(rounds))
    assert said.count("(k=") == 3 and said.count(" at ") == 12 and "+1 at 19" in said and "at 15" not in said


def test_nothing_is_said_of_nothing() -> None:
    assert last_iterations(SCHEMA)([]) == ""


@pytest.mark.parametrize("is_compiled", [True, False])
@pytest.mark.parametrize(("kind", "one", "two"), [("int", 1, 2), ("string", "a", "b")])
def test_rows_are_shown_as_they_go_round_though_the_next_stage_reads_fewer_columns(
    kind: str, one: object, two: object, is_compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connector leaves `v` out: its words at the join are no row of the loop."""
    monkeypatch.setenv("NAIAD_REGIONS", str(int(is_compiled)))

    def build(flow: Dataflow) -> None:
        pairs = dd.input(flow, "pairs", f"k: {kind}, v: {kind}")

        def swings(x: Collection) -> Collection:
            return x.select("k").join(pairs, on="k").select(k=col.v, v=col.k).distinct()

        start = pairs.filter(col.k == dd.lit(one))
        start.iterate(swings, iterations_max=12).output("result")

    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(build)
        flow.input("pairs").insert([(one, two), (two, one)])
        with pytest.raises(MisuseError, match="past its limit of 12 iterations") as caught:
            flow.wait(flow.seal())
    assert f"(k={one!r}, v={two!r}) " in str(caught.value)
    assert f"(k={two!r}, v={one!r}) " in str(caught.value)
