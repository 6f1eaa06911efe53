"""How `connect` starts workers: the progress mode, which all workers of a cluster share."""

from __future__ import annotations

import pytest

import timely


def rows_of(progress: str | None, threads: bool = False) -> list[object]:
    with timely.connect(workers=3, embedded=not threads, threads=threads, progress=progress) as cluster:
        flow = cluster.install("dataflows:word_count")
        flow.input("lines").insert(["a b a", "b c"])
        flow.seal()
        flow.input("lines").insert(["c c"])
        flow.seal()
        return sorted(map(repr, flow.output("counts").changes()))


@pytest.mark.parametrize("progress", [None, "demand", "host"])
@pytest.mark.parametrize("threads", [False, True])
def test_answers_are_the_same_in_each_mode(progress: str | None, threads: bool) -> None:
    assert rows_of(progress, threads) == rows_of("eager") != []


@pytest.mark.parametrize("embedded", [True, False])
@pytest.mark.parametrize("progress", ["later", 3])
def test_a_mode_that_does_not_exist_is_refused(progress: object, embedded: bool) -> None:
    with pytest.raises(timely.MisuseError, match="progress=.*'eager'.*'demand'.*'host'"):
        timely.connect(workers=2, embedded=embedded, progress=progress)  # type: ignore[arg-type]


def test_the_mode_of_a_running_cluster_was_decided_when_it_was_started() -> None:
    with pytest.raises(timely.MisuseError, match="decided when those .* started, .* progress,"):
        timely.connect("127.0.0.1:1", progress="host")
