"""iterations.py: how many rows went round in each iteration of a loop."""

from __future__ import annotations

import contextlib
import time

import pytest

import differential as dd
import timely
from differential import Collection, col
from progress.errors import MisuseError
from timely.building.dataflow import Dataflow
from timely.client.reports.iterations import iterations_of
from timely.wire.requests import Reply


def counted_down(dataflow: Dataflow) -> None:
    """n, n - 1, … 1, by a filter ahead of what is kept; and a loop in a loop that adds up to 11."""
    numbers = dd.input(dataflow, "numbers", "n: int")

    def down(found: Collection) -> Collection:
        return numbers.concat(found.filter(col.n > 1).select(n=col.n - 1)).distinct()

    numbers.iterate(down, name="down").output("down")

    def up(found: Collection) -> Collection:
        inner = found.iterate(lambda x: found.concat(x.select(n=col.n + 1)).distinct(), name="in", times=2)
        return inner.concat(numbers).filter(col.n <= 11).distinct()

    numbers.iterate(up, name="out").output("up")


@pytest.mark.parametrize("workers", [1, 2])
def test_each_iteration_says_what_went_on_to_it_and_a_change_what_changed(workers: int) -> None:
    with timely.connect(workers=workers, embedded=True) as cluster:
        flow = cluster.install(counted_down)
        numbers = flow.input("numbers")
        numbers.insert([(4,), (9,)])
        flow.wait(flow.seal())
        numbers.remove([(9,)])
        flow.wait(flow.seal())
        found = flow.iterations("down").to_pylist()
        both = flow.iterations()
        with pytest.raises(MisuseError, match=r"no loop 'upwards'; its loops: 'down', 'out', 'out / in'"):
            flow.iterations("upwards")
    assert all(row["loop"] == "down" and row["around"] == [] for row in found)
    # 9 and 4 with 8 and 3, then a number less of each, until 4 is met; the way back is that of 9 alone.
    sizes = {(row["epoch"], row["iteration"]): row["rows"] for row in found}
    assert sizes == {(0, 1): 4, (0, 2): 2, (0, 3): 2, (0, 4): 1, (1, 1): 2, (1, 2): 1, (1, 3): 1, (1, 4): 1}
    inner = [row for row in both.to_pylist() if row["loop"] == "out / in"]
    assert {len(row["around"]) for row in inner} == {1} and {row["iteration"] for row in inner} == {1}
    assert {row["around"][0] for row in inner} >= {0, 1}
    assert {row["loop"] for row in both.to_pylist()} == {"down", "out", "out / in"}


def test_two_processes_are_asked_and_summed() -> None:
    loops = [[{"name": "a", "rounds": [[[0, 5, 2], rows]]}] for rows in (4, 3)]
    replies = [Reply({"dataflows": {3: {"loops": said}}}) for said in loops]
    table = iterations_of([*replies, Reply({})], 3, "a")
    assert table.to_pylist() == [{"loop": "a", "epoch": 0, "around": [5], "iteration": 2, "rows": 7}]
    assert iterations_of([Reply({"dataflows": {}})], 3, None).num_rows == 0
    with pytest.raises(MisuseError, match="its loops: none"):
        iterations_of([Reply({})], 3, "a")


@pytest.mark.parametrize("where", [{"workers": 1, "embedded": True}, {"workers": 2}])
def test_a_wait_that_is_over_names_the_loop_that_still_goes_round(where: dict[str, int]) -> None:
    def endless(dataflow: Dataflow) -> None:
        numbers = dd.input(dataflow, "numbers", "n: int, text: string")
        numbers.iterate(lambda x: x.select("text", n=1 - col.n), name="swinging").output("never")
        numbers.output("numbers")

    with timely.connect(**where) as cluster:
        flow = cluster.install(endless)
        flow.seal(wait=True)
        flow.input("numbers").insert([(0, "a")])
        flow.seal()
        began = time.monotonic()
        with pytest.raises(
            timely.WaitTimeoutError,
            match=r"after 1 s: the work on it is not done yet "
            r"\(the loop 'swinging' has come to iteration [\d,]+ of epoch 1\); complete",
        ):
            flow.output("never").snapshot(timeout=1)
        assert time.monotonic() - began < 30, "embedded workers stop at the limit, too"
        for _ in range(20):  # on a busy machine the limit may be over before this has had its turn
            with contextlib.suppress(timely.WaitTimeoutError):
                assert flow.output("numbers").snapshot(timeout=3).num_rows == 1
                break
        else:
            pytest.fail("the loop leaves nobody a turn")
        flow.input("numbers").remove([(0, "a")])
        began = time.monotonic()
        flow.seal()  # the row is corrected, but the loop of the epoch before goes round all the same
        assert time.monotonic() - began < 30, "a seal does not stay with work that was late"
        flow.uninstall()
