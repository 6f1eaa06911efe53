"""Equal keys meet on one worker, whatever process computes where they go.

meeting_*    words that go through two exchanges are counted once
refusing_*   workers that hash in different ways do not begin; a function that differs between them is named
"""

from __future__ import annotations

import pytest

import timely
from timely.worker.launcher import Launcher, LocalFolder
from timely.worker.settings import local_settings

WORDS = [f"word{number}" for number in range(100)]
LINES = [" ".join(WORDS), " ".join([*WORDS, "x"]), " ".join([*WORDS, "xy"])]


@pytest.mark.parametrize("exchange", ["hash", "a function that calls hash", "by", "by a function"])
@pytest.mark.parametrize("threads", [False, True], ids=["processes", "threads"])
def test_meeting_words_are_counted_once_behind_two_exchanges(
    exchange: str, threads: bool, workers_by_command: None
) -> None:
    with timely.connect(workers=2, threads=threads) as cluster:
        flow = cluster.install("dataflows:words_twice_exchanged", exchange=exchange)
        flow.input("lines").insert(LINES)
        flow.seal()
        counted = sorted((word, count) for _, (word, count) in flow.output("counts").changes())
        assert counted == sorted([*((word, 3) for word in WORDS), ("x", 1), ("xy", 1)])
        (stage,) = [s for s in cluster.stats()[1]["dataflows"][0]["stages"] if s["name"] == "count words"]  # type: ignore[index]
        assert stage["activations"] > 0, "both count"


def test_refusing_a_function_that_differs_between_processes(workers_by_command: None) -> None:
    with timely.connect(workers=2) as cluster:
        flow = cluster.install("dataflows:words_twice_exchanged", exchange="by a process")
        flow.input("lines").insert(LINES)
        with pytest.raises(timely.MisuseError, match=r"calls hash\(\), .* Write exchange=timely.by"):
            flow.wait(flow.seal())
        again = cluster.install("dataflows:words_twice_exchanged", exchange="by")
        again.input("lines").insert(LINES)
        again.wait(again.seal())


def test_refusing_a_worker_that_hashes_otherwise_at_once() -> None:
    folder = LocalFolder()
    first, second = local_settings(2, folder.path)
    with (
        Launcher([first], folder=folder) as one,
        Launcher([second], environment={"PYTHONHASHSEED": "7"}) as other,
        pytest.raises(
            timely.PeerError,
            match=r"worker \d .* hashes text otherwise .*PYTHONHASHSEED=\d.* than .*PYTHONHASHSEED=\d",
        ),
    ):
        one.wait_ready()
        other.wait_ready()
