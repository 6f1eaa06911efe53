"""What workers say beside their data: there and back, and what makes them refuse one another."""

from __future__ import annotations

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from timely import Dataflow, PeerError, Vertex
from timely.handshake import (
    PROTOCOL_VERSION,
    Control,
    Farewell,
    Greeting,
    Offer,
    check_greeting,
    decode_control,
    encode_control,
    first_difference,
)

CONTROLS = st.one_of(
    st.builds(Greeting, st.integers(0, 99), st.integers(1, 99), st.integers(0, 99), st.text()),
    st.builds(Offer, st.integers(0, 99), st.text(), st.lists(st.text()).map(tuple), st.text()),
    st.builds(Farewell, st.text()),
)


@given(CONTROLS)
def test_what_is_said_comes_back_as_it_was(control: Control) -> None:
    assert decode_control(encode_control(control), 0) == control


@pytest.mark.parametrize(
    "said",
    [
        b"", b"\xc1", msgpack.packb(3), msgpack.packb([]), msgpack.packb(["hello"]),
        msgpack.packb(["farewell", 1]),
        msgpack.packb(["greeting", 1, 2, 3]), msgpack.packb(["greeting", True, 2, 3, ""]),
        msgpack.packb(["offer", 0, "", [1], ""]), msgpack.packb([["farewell"], ""]),
    ],
)  # fmt: skip
def test_anything_else_is_an_error_of_the_peer(said: bytes) -> None:
    with pytest.raises(PeerError, match="worker 4 sent"):
        decode_control(said, 4)


MINE = Greeting(PROTOCOL_VERSION, 3, 0, "here")


@pytest.mark.parametrize(
    ("theirs", "message"),
    [
        (Greeting(PROTOCOL_VERSION + 1, 3, 1, "there"), "speaks protocol version 2, worker 0 version 1"),
        (Greeting(PROTOCOL_VERSION, 4, 1, "there"), "was started for 4 workers, worker 0 for 3"),
        (Greeting(PROTOCOL_VERSION, 3, 2, "there"), "calls itself worker 2"),
    ],
)
def test_workers_on_other_terms_are_refused_by_name(theirs: Greeting, message: str) -> None:
    with pytest.raises(PeerError, match=message):
        check_greeting(MINE, theirs, 1)
    check_greeting(MINE, Greeting(PROTOCOL_VERSION, 3, 1, "there"), 1)


def offer(*names: str, bits: tuple[int, ...] | None = None) -> Offer:
    flow = Dataflow("flow", level_bits=bits)
    stream = flow.input("numbers")
    for name in names:
        stream = stream.stage(name, Vertex)
    frozen = flow.freeze()
    return Offer(0, frozen.fingerprint, tuple(frozen.graph.describe()), "")


def test_equal_offers_work_together() -> None:
    assert first_difference({0: offer("a", "b"), 1: offer("a", "b"), 2: offer("a", "b")}) is None


def test_the_first_stage_that_differs_is_named_with_both_workers() -> None:
    found = first_difference({0: offer("a", "b", "c"), 1: offer("a", "b", "c"), 2: offer("a", "x", "y")})
    assert found is not None
    assert (
        "worker 2 built stage 2 as" in found
        and "worker 0 as" in found
        and "'x'" in found
        and "'c'" not in found
    )


def test_a_missing_stage_and_another_layout_are_named_too() -> None:
    found = first_difference({0: offer("a", "b"), 1: offer("a")})
    assert found is not None and "stage 2 as\n    nothing: it has fewer stages" in found
    found = first_difference({0: offer("a"), 1: offer("a", bits=(40,))})
    assert found is not None and "built the layout of times as" in found


def test_a_worker_that_could_not_build_is_named_before_any_difference() -> None:
    found = first_difference({0: offer("a"), 1: Offer(0, "", (), "GraphError: no"), 2: offer("b")})
    assert found == "worker 1 could not build it: GraphError: no"


def test_all_workers_come_to_the_same_verdict() -> None:
    offers = {0: offer("a"), 1: offer("b"), 2: offer("a")}
    assert len({first_difference(dict(sorted(offers.items(), reverse=turn))) for turn in (False, True)}) == 1
