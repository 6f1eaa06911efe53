"""Every reader of others' bytes reads them or refuses them, in proportion to their size.

corpus_*     what once was too much
valid_*      the messages that mutation begins with
mutated_*    valid messages made odd
tables_*     Arrow tables as nobody declared them
slow_*       what takes a reader too long
"""

from __future__ import annotations

import random
import time
import tracemalloc
from dataclasses import replace
from pathlib import Path

import msgpack
import pytest
from fuzz.__main__ import odd_rows
from fuzz.mutations import mutated
from fuzz.odd_tables import bombs
from fuzz.probing import CORPUS, Defect, kept, probe, read_kept
from fuzz.targets import TARGETS
from hypothesis import given, settings
from hypothesis import strategies as st

from timely.wire.handshake import PROTOCOL_VERSION

BOMBS = bombs()


@pytest.mark.parametrize(
    "path", [path for name in TARGETS for path in kept(name)], ids=lambda path: path.stem
)
def test_corpus_what_was_too_much_once_is_borne(path: Path) -> None:
    probe(TARGETS[path.parent.name], read_kept(path))


def test_corpus_messages_of_clients_and_workers_speak_the_present_version() -> None:
    """Else they are refused for that, and what was odd about them is not looked at."""
    versions: set[object] = set()
    for path in [*kept("request"), *kept("reply")]:
        try:
            header = msgpack.unpackb(read_kept(path)[0], strict_map_key=False)
        except Exception:  # nobody reads that
            continue
        if isinstance(header, list) and len(header) == 4 and isinstance(header[0], int):
            versions.add(header[0])
    assert versions == {PROTOCOL_VERSION}


def test_corpus_every_folder_belongs_to_a_target() -> None:
    assert {path.name for path in CORPUS.iterdir()} <= TARGETS.keys()


@pytest.mark.parametrize("name", sorted(TARGETS.keys() - {"rows"}))
def test_valid_messages_are_read(name: str) -> None:
    target = TARGETS[name]
    assert [probe(target, frames) for frames in target.seeds] == ["read"] * len(target.seeds)


def test_valid_rows_are_read_and_claims_are_not() -> None:
    target = TARGETS["rows"]
    # A value that many rows share is kept once.
    claims = {content for name, content in BOMBS.items() if name != "one_value_shared"}
    for frames in target.seeds:
        if frames[0] != BOMBS["one_value_shared"]:
            assert (probe(target, frames) == "read") == (frames[0] not in claims)
    assert probe(target, [BOMBS["one_value_shared"], b"\0\1"]) == "MisuseError"
    assert probe(target, [BOMBS["one_value_shared"], b"\2\1"]) == "read"


@pytest.mark.parametrize("name", sorted(TARGETS))
@settings(max_examples=200)
@given(choose=st.randoms(use_true_random=False), rounds=st.integers(1, 3))
def test_mutated_messages_are_read_or_refused(name: str, choose: random.Random, rounds: int) -> None:
    target = TARGETS[name]
    frames = choose.choice(target.seeds)
    for _ in range(rounds):
        frames = mutated(frames, choose.choice(target.seeds), choose, target.form)
    probe(target, frames)


@settings(max_examples=200)
@given(choose=st.randoms(use_true_random=False))
def test_tables_of_any_types_are_taken_or_refused(choose: random.Random) -> None:
    probe(TARGETS["rows"], odd_rows(choose))


@pytest.mark.parametrize("is_slow_alone", [True, False])
def test_slow_is_what_a_reader_takes_without_those_who_watch_it(
    is_slow_alone: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fuzz.probing._SECONDS_MAX", 0.05)
    reads = []

    def read(frames: list[memoryview]) -> None:
        reads.append(len(frames))
        until = time.process_time() + 0.1
        while (is_slow_alone or tracemalloc.is_tracing()) and time.process_time() < until:
            pass

    target = replace(next(iter(TARGETS.values())), name="slow", read=read)
    if is_slow_alone:
        with pytest.raises(Defect, match=r"slow took 0\.\d s for 3 bytes"):
            probe(target, [b"abc"])
    else:
        assert probe(target, [b"abc"]) == "read"
    assert reads == [1, 1]
