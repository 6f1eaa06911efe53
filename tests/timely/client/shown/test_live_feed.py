"""The thread of a live table: what it shows, when it ends, and that nobody waits for it or is held back."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest
from failing_flows import divides
from house import ROOT

import differential as dd
import timely
from timely.client.reading import FlowOutput
from timely.client.shown import first_rows
from timely.client.shown.live_feed import LiveFeed
from timely.client.shown.live_rows import Frame, LiveRows, RowOrder

SECONDS = 60.0


def counts(flow: timely.Dataflow) -> None:
    rows = dd.input(flow, "rows", "k: int")
    rows.group_by("k").agg(n=dd.count()).output("counts")


class Shown:
    """The frames of a live table, and its thread."""

    def __init__(self, output: FlowOutput, most: int = 10) -> None:
        self.frames: list[Frame] = []
        self._news = threading.Condition()
        assert output.schema is not None
        self.feed = LiveFeed(output, LiveRows(output.schema, most), self._take)
        self.feed.start()

    def _take(self, frame: Frame) -> None:
        with self._news:
            self.frames.append(frame)
            self._news.notify_all()

    def until(self, is_so: Callable[[Frame], bool]) -> Frame:
        """The first frame that is so."""
        with self._news:
            assert self._news.wait_for(lambda: any(map(is_so, self.frames)), SECONDS), self.frames[-1]
            return next(filter(is_so, self.frames))

    def ended(self) -> None:
        until = time.monotonic() + SECONDS
        while self.feed.is_alive:
            assert time.monotonic() < until
            time.sleep(0.01)


@pytest.fixture(params=[{"embedded": True}, {"workers": 2, "threads": True}, {"workers": 2}], ids=str)
def cluster(request: pytest.FixtureRequest) -> Iterator[timely.Cluster]:
    with timely.connect(**request.param) as made:
        yield made


def test_a_live_table_follows_the_output_and_ends_with_the_cluster(cluster: timely.Cluster) -> None:
    flow = cluster.install(counts)
    table = Shown(FlowOutput(flow, "counts", "", flow.output("counts").schema))
    assert table.frames[0]["note"] == "no epoch is complete yet"
    for n in range(5):
        flow.input("rows").insert([(n,), (0,)])
        flow.seal()  # and nothing here waits for the work
    last = table.until(lambda frame: frame["epoch"] == 4)
    assert last["rows"] == [["0", "6"], ["1", "1"], ["2", "1"], ["3", "1"], ["4", "1"]]
    table.feed.sort(RowOrder("n", descending=True))
    assert table.until(lambda frame: frame["order"] == ["n", True])["rows"] == last["rows"]
    assert [frame["number"] for frame in table.frames] == list(range(1, len(table.frames) + 1))
    cluster.close()
    table.ended()
    assert "closed" in str(table.frames[-1]["error"])


def test_a_closed_table_has_given_up_its_position(cluster: timely.Cluster) -> None:
    flow = cluster.install(counts)
    table = Shown(FlowOutput(flow, "counts", "", flow.output("counts").schema))
    flow.input("rows").insert([(1,)])
    flow.seal()
    table.until(lambda frame: frame["epoch"] == 0)

    def readers() -> list[object]:
        outputs = [told["dataflows"][flow.index]["outputs"] for told in cluster.stats()]  # type: ignore[index]
        return [reader for (output,) in outputs for reader in output["readers"]]

    assert readers()
    table.feed.close()
    table.ended()
    assert not readers()


def test_an_epoch_without_an_answer_is_shown_and_the_next_one_follows() -> None:
    with timely.connect(embedded=True) as cluster:
        flow = cluster.install(divides)
        table = Shown(FlowOutput(flow, "quotients", "", flow.output("quotients").schema))
        flow.input("rows").insert([(1, 50)])
        flow.seal()
        table.until(lambda frame: frame["rows"] == [["1", "2"]])
        flow.input("rows").insert([(2, 0)])
        flow.seal()
        assert "has no answer at epoch 1" in str(table.until(lambda frame: bool(frame["error"]))["error"])
        flow.input("rows").remove([(2, 0)])
        flow.input("rows").insert([(2, 25)])
        flow.seal()
        last = table.until(lambda frame: frame["rows"] == [["1", "2"], ["2", "4"]])
        assert last["error"] == ""
        flow.uninstall()
        table.ended()
        assert "UninstalledError" in str(table.frames[-1]["error"])


def test_too_many_rows_are_refused_before_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_rows, "LIVE_ROWS_MAX", 3)
    with timely.connect(embedded=True) as cluster:
        flow = cluster.install(counts)
        flow.input("rows").insert([(n,) for n in range(9)])
        flow.seal(wait=True)
        table = Shown(FlowOutput(flow, "counts", "", flow.output("counts").schema))
        table.ended()
        assert "the output has about 9" in str(table.frames[-1]["error"])
        assert "MisuseError" in str(table.frames[-1]["error"]) and table.frames[-1]["rows"] == []
        assert table.frames[-1]["note"] == "", "an epoch is complete"


class Changing:
    """An output that has a change in each answer."""

    has_ended = False

    def __init__(self) -> None:
        self.asked: list[float] = []

    def complete_before(self) -> int:
        return 1

    def rows_kept(self) -> int:
        return 0

    def follow(
        self, *, snapshot: bool = False, empty: bool = True, timeout: float | None = None
    ) -> Iterator[tuple[int, pa.Table | timely.TimelyError]]:
        yield 0, pa.table({"k": [1], "epoch": [0], "diff": [1]})

    def changes_nowait(self) -> pa.Table:
        self.asked.append(time.monotonic())
        return pa.table({"k": [1], "epoch": [len(self.asked)], "diff": [1]})

    def leave(self) -> None:
        pass


class SlowRows(LiveRows):
    def change(self, changes: pa.Table) -> None:
        time.sleep(0.2)
        super().change(changes)


def test_the_thread_merges_and_shows_for_a_fifth_of_the_time() -> None:
    output = Changing()
    feed = LiveFeed(output, SlowRows(pa.schema([("k", pa.int64())]), 5), lambda frame: None)
    feed.start()
    until = time.monotonic() + SECONDS
    while len(output.asked) < 3:
        assert time.monotonic() < until
        time.sleep(0.01)
    feed.close()
    assert output.asked[2] - output.asked[1] > 5 * 0.2 - 0.05


def test_a_wait_in_vain_does_not_wait_for_a_live_table() -> None:
    with timely.connect(embedded=True) as cluster:
        flow = cluster.install(counts)
        table = Shown(FlowOutput(flow, "counts", "", flow.output("counts").schema))
        with pytest.raises(timely.WaitTimeoutError, match="not sealed yet"):
            flow.wait(0)
        assert table.feed.is_alive


def test_its_files_come_with_the_package() -> None:
    folder = ROOT / "timely" / "client" / "shown"
    assert {path.suffix for path in folder.iterdir() if path.is_file()} >= {".js", ".css", ".py"}
