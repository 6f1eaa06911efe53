"""All workers start the same dataflow, or none does; in whatever order builds and offers come."""

from __future__ import annotations

import pytest
from dataflows import broken_builder, word_count

import timely
from timely.handshake import Offer
from timely.installation import Installations, describe
from timely.transport.memory import MemoryNetwork
from timely.worker.core import Worker


def pair() -> tuple[Installations, Installations]:
    network = MemoryNetwork(2)
    first, second = (Installations(Worker(index, 2, network.transport(index))) for index in range(2))
    return first, second


def offer_of(installations: Installations, worker: int) -> Offer:
    return installations._offers[0][worker]


def test_nothing_starts_before_all_offers_are_in() -> None:
    first, second = pair()
    first.begin(0, "words", word_count, {})
    assert first.finish(0) is None and first.missing(0) == [1]
    second.receive(0, offer_of(first, 0))
    second.begin(0, "words", word_count, {})
    started = second.finish(0)
    assert started is not None and started.index == 0
    first.receive(1, Offer(0, started.frozen.fingerprint, (), ""))
    assert first.finish(0) is not None


def test_a_worker_that_fails_raises_its_own_error_and_the_others_hear_of_it() -> None:
    first, second = pair()
    first.begin(0, "words", word_count, {})
    second.begin(0, "broken", broken_builder, {})
    offers = offer_of(first, 0), offer_of(second, 1)
    first.receive(1, offers[1])
    second.receive(0, offers[0])
    with pytest.raises(
        timely.GraphError, match="worker 1 could not build it: VertexError: the builder 'broken' failed"
    ):
        first.finish(0)
    with pytest.raises(timely.VertexError, match="no such query"):
        second.finish(0)
    assert first.specs == second.specs == {}


def test_a_vertex_that_cannot_be_made_refuses_the_dataflow() -> None:
    class Fails(timely.Vertex):
        def __init__(self) -> None:
            raise OSError("no file")

    installations = Installations(Worker())
    installations.begin(0, "fails", lambda flow: flow.input("x").stage("fails", Fails), {})
    with pytest.raises(timely.VertexError, match="a vertex of 'fails' could not be made: OSError: no file"):
        installations.finish(0)


def test_indices_are_handed_out_once_also_after_a_failure() -> None:
    installations = Installations(Worker())
    assert [installations.reserve(), installations.reserve()] == [0, 1]
    installations.begin(4, "words", word_count, {})
    assert installations.reserve() == 5
    with pytest.raises(timely.MisuseError, match="dataflow 4 exists already"):
        installations.begin(4, "words", word_count, {})
    instance = installations.finish(4)
    assert instance is not None and describe(instance, "words").text("name") == "words"
