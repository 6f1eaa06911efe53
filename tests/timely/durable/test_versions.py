"""What logs say of new versions of dataflows.

plain_*   facts come back from msgpack as they were
taken_*   what several workers know of deliveries adds up
"""

from __future__ import annotations

from collections import Counter

import msgpack
from hypothesis import given
from hypothesis import strategies as st

from timely.durable.bases.manifest import QueryBase
from timely.durable.bases.names import TakenNames
from timely.durable.versions import PastSwitch, TakenFacts, ToldFailure, take_in
from timely.errors import MisuseError, ReplacedError, revive

TEXTS = st.text(max_size=4)
WORDS = st.integers(-(2**63), 2**63 - 1)
TOLD = st.builds(ToldFailure, st.integers(0, 99), TEXTS, st.lists(TEXTS, max_size=2).map(tuple), WORDS)
SWITCHES = st.builds(
    PastSwitch,
    st.integers(0, 9),
    st.integers(0, 9),
    st.integers(0, 2**62),
    TEXTS,
    st.lists(TEXTS, max_size=2).map(tuple),
    st.dictionaries(TEXTS, st.lists(TOLD, max_size=2).map(tuple), max_size=2),
    st.dictionaries(TEXTS, TEXTS, max_size=2),
    st.dictionaries(TEXTS, st.binary(max_size=3), max_size=2),
)


@given(SWITCHES)
def test_plain_facts_of_a_switch_come_back(switch: PastSwitch) -> None:
    packed: bytes = msgpack.packb(switch.plain())
    assert PastSwitch.of(msgpack.unpackb(packed)) == switch
    assert PastSwitch.of(switch.plain()[:7]) == switch._replace(forms={}), "a log of an earlier release"


def test_plain_end_of_an_old_version_is_the_error_that_clients_get() -> None:
    reason, classes = PastSwitch(3, 5, 7, "sums", (), {}, {}).end
    error = revive(list(classes), reason)
    assert isinstance(error, ReplacedError) and str(error) == "dataflow 3 was replaced by dataflow 5"


def test_plain_failure_is_told_as_it_was() -> None:
    error = ToldFailure(4, "no answer", ("MisuseError",)).error()
    assert isinstance(error, MisuseError) and str(error) == "no answer"
    assert ToldFailure(5).error() is None


NUMBERS = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 9), st.integers(0, 5)), max_size=8)
QUERIES = st.dictionaries(st.sampled_from("qr"), st.tuples(st.integers(0, 9), st.sampled_from([None, "s"])))


@given(st.lists(st.tuples(NUMBERS, QUERIES), min_size=1, max_size=3))
def test_taken_facts_of_all_workers_add_up(
    known: list[tuple[list[tuple[str, int, int]], dict[str, tuple[int, str | None]]]],
) -> None:
    names, queries = TakenNames(), {}
    appends: list[tuple[str, int, list[int]]] = []
    for number, (own, rows) in enumerate(known):
        taken = TakenNames()
        for writer, sequence, epoch in own:
            taken.take(writer, sequence, epoch)
        plain = [
            taken.plain(),
            [["w", number, [number]]],
            [[query, 7, count, stream] for query, (count, stream) in rows.items()],
            0,
        ]
        packed: bytes = msgpack.packb(plain)
        take_in(TakenFacts.of(msgpack.unpackb(packed)), names, appends, queries)
    every = {(writer, sequence) for own, _ in known for writer, sequence, _ in own}
    assert {(w, n) for w in "ab" for n in range(12) if (w, n) in names} == every
    assert appends == [("w", number, [number]) for number in range(len(known))]
    sums = Counter[str]()
    for _, rows in known:
        sums.update({query: count for query, (count, _) in rows.items()})
    assert {query: each.rows for query, each in queries.items()} == {q: sums[q] for q in queries}
    for query, each in queries.items():
        streams = [rows[query][1] for _, rows in known if query in rows]
        last = [stream for stream in streams if stream is not None]
        assert each == QueryBase(query, 7, sums[query], last[-1] if last else None)
