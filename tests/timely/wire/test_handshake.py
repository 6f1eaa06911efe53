"""What workers say beside their data: there and back, and what makes them refuse one another."""

from __future__ import annotations

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from timely import Dataflow, PeerError, Vertex
from timely.wire.handshake import (
    PROTOCOL_VERSION,
    Build,
    Control,
    Decided,
    Ended,
    EndHeard,
    Entering,
    Farewell,
    Greeting,
    HoldInputs,
    InputsHeld,
    Offer,
    Switched,
    TakenOver,
    Verdict,
    check_greeting,
    decode_control,
    encode_control,
    first_difference,
)

TEXTS = st.lists(st.text(), max_size=4).map(tuple)
ENTERING = st.builds(
    Entering,
    st.text(),
    st.text(),
    st.integers(0, 2**62),
    st.integers(-1, 2**62),
    st.integers(0, 2**40),
    st.none() | TEXTS,
    st.integers(-1, 2**22),
)
CONTROLS = st.one_of(
    st.builds(
        Greeting, st.integers(0, 99), st.integers(1, 99), st.integers(0, 99), st.text(), st.text(), TEXTS
    ),
    st.builds(Farewell, st.text()),
    st.builds(Build, st.integers(0, 99), st.text(), st.binary()),
    st.builds(Offer, st.integers(0, 99), st.text(), TEXTS, st.text(), TEXTS),
    st.builds(Verdict, st.integers(0, 99), st.text(), TEXTS),
    st.builds(Decided, st.integers(0, 99), st.integers(-1, 2**62)),
    st.builds(
        Decided, st.integers(0, 99), st.integers(-1, 2**62), st.lists(ENTERING, max_size=3).map(tuple), TEXTS
    ),
    st.builds(HoldInputs, st.integers(0, 99), st.integers(0, 99), st.integers(0, 2**62)),
    st.builds(InputsHeld, st.integers(0, 99)),
    st.builds(Switched, st.integers(0, 99), st.integers(0, 99), st.integers(0, 2**62)),
    st.builds(TakenOver, st.integers(0, 99)),
    st.builds(Ended, st.integers(0, 99), st.text(), TEXTS),
    st.builds(EndHeard, st.integers(0, 99)),
)


@given(CONTROLS)
def test_what_is_said_comes_back_as_it_was(control: Control) -> None:
    assert decode_control(encode_control(control), 0) == control


def test_text_that_is_no_utf_8_comes_back_too() -> None:
    """Errors quote what users wrote; one that cannot be told would end the cluster, not its dataflow."""
    for control in (
        Ended(0, "bad \ud800", ("MisuseError",)),
        Offer(0, "", ("\udcff",), "\ud800"),
        Farewell("\udfff"),
    ):
        assert decode_control(encode_control(control), 0) == control


@pytest.mark.parametrize(
    "said",
    [
        b"", b"\xc1", msgpack.packb(3), msgpack.packb([]), msgpack.packb(["hello"]),
        msgpack.packb(["farewell", 1]),
        msgpack.packb(["greeting", 1, 2, 3]), msgpack.packb(["greeting", True, 2, 3, "", "", []]),
        msgpack.packb(["offer", 0, "", [1], "", []]), msgpack.packb([["farewell"], ""]),
        msgpack.packb(["sealed", 0]), msgpack.packb(["sealed", 0, "1"]),
        msgpack.packb(["ended", 0, "x", "y"]),
        b"\x81\x90\x01", msgpack.packb(["sealed", 0, 1, 2]), b"\x91" * 600,
        *(
            msgpack.packb(["decided", 0, 1, [entering], []])
            for entering in (3, ["in", "w", 0, 1, 0, None], ["in", "w", 0, 1, 0, None, 1, 2],
                             ["in", "w", 0, 1, 0, None, "1"], ["in", "w", 0, 1, 0, [3], 1])
        ),
    ],
)  # fmt: skip
def test_anything_else_is_an_error_of_the_peer(said: bytes) -> None:
    with pytest.raises(PeerError, match="worker 4 sent"):
        decode_control(said, 4)


MINE = Greeting(PROTOCOL_VERSION, 3, 0, "here")


@pytest.mark.parametrize(
    ("theirs", "message"),
    [
        (
            Greeting(PROTOCOL_VERSION + 1, 3, 1, "there"),
            f"speaks protocol version {PROTOCOL_VERSION + 1}, worker 0 version {PROTOCOL_VERSION}",
        ),
        (Greeting(PROTOCOL_VERSION, 3, 1, "there", "3.1"), "runs Python 3.1, worker 0 Python "),
        (
            Greeting(PROTOCOL_VERSION, 3, 1, "there", "", ("a:b",)),
            "was started with --install a:b, worker 0 with no --install",
        ),
        (Greeting(PROTOCOL_VERSION, 4, 1, "there"), "was started for 4 workers, worker 0 for 3"),
        (Greeting(PROTOCOL_VERSION, 3, 2, "there"), "calls itself worker 2"),
        (
            Greeting(PROTOCOL_VERSION, 3, 1, "there", progress="host, 16 workers each"),
            "tells progress by mode host, 16 workers each, worker 0 by mode eager: give all hosts the same "
            "--progress, -w and -n",
        ),
        (
            Greeting(PROTOCOL_VERSION, 3, 1, "there", silence_ms=30_000),
            "bears a silence of 30 s, worker 0 one of 2.5 s: give all hosts the same --silence",
        ),
        (
            Greeting(PROTOCOL_VERSION, 3, 1, "there", hashing="siphash13, PYTHONHASHSEED=7: 5"),
            r"worker 1 .* text otherwise \(siphash13, PYTHONHASHSEED=7: 5\) than .* the same PYTHONHASHSEED",
        ),
    ],
)
def test_workers_on_other_terms_are_refused_by_name(theirs: Greeting, message: str) -> None:
    with pytest.raises(PeerError, match=message):
        check_greeting(MINE, theirs, 1)
    check_greeting(MINE, Greeting(PROTOCOL_VERSION, 3, 1, "there"), 1)


def offer(*names: str, bits: tuple[int, ...] | None = None) -> Offer:
    dataflow = Dataflow("flow", level_bits=bits)
    stream = dataflow.input("numbers")
    for name in names:
        stream = stream.stage(name, Vertex)
    frozen = dataflow.freeze()
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


def test_all_workers_come_to_the_same_verdict() -> None:
    offers = {0: offer("a"), 1: offer("b"), 2: offer("a")}
    assert len({first_difference(dict(sorted(offers.items(), reverse=turn))) for turn in (False, True)}) == 1
