"""The benchmark of progress modes: does it count what is sent, and does every worker get through?"""

from __future__ import annotations

import random

import pytest

from bench.timely.progress_modes import QUANTILES, Network, barrier, drawn, told


@pytest.mark.parametrize(
    ("mode", "workers", "messages"), [("eager", 6, 30), ("demand", 6, 30), ("host", 6, 12), ("host", 2, 2)]
)
def test_a_barrier_takes_the_messages_that_the_documents_say(mode: str, workers: int, messages: int) -> None:
    result = barrier(mode, workers, 6, seed=3, per_host=2)
    assert result.messages == messages
    assert (
        len(result.rounds) >= 6 and min(result.rounds) > 0 and result.processor_most >= result.processor > 0
    )


def test_messages_of_a_pair_never_overtake_one_another_however_long_they_take() -> None:
    network = Network(3, 2, random.Random(1))
    for number in range(200):
        network.put(0, 1, [b"%d" % number])
    while network.events:
        network.arrive()
    assert [int(bytes(frames[0])) for _, frames in network.arrived[1]] == [*range(200)]


def test_what_is_drawn_follows_the_quantiles() -> None:
    rng, values = random.Random(1), [float(number) for number in range(len(QUANTILES))]
    some = sorted(1e6 * drawn(rng, values) for _ in range(4_000))
    assert some[0] >= 0 and some[-1] <= values[-1]
    assert abs(some[2_000] - values[2]) < 0.1 and abs(some[3_600] - values[4]) < 0.1


def test_each_mode_tells_less_than_the_one_before_if_many_epochs_are_open() -> None:
    title = "three exchanges, 100 epochs at once"
    eager, demand, host = (told(mode, title, 4, 2, 6, seed=1)[0] for mode in ("eager", "demand", "host"))
    assert eager >= demand > host > 0
