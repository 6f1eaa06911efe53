"""Values in files are found by their words, and only those that are there; against a dictionary."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from differential.columns.symbols import cold_texts
from differential.columns.symbols.cold_texts import ColdTexts
from differential.columns.symbols.entries import SymbolEntries
from differential.columns.symbols.packing import pack, symbol_word
from differential.columns.symbols.table import _RETURNING, SymbolTable
from differential.errors import SymbolCollisionError, UnknownSymbolError
from timely.spilling.budget import SPILL
from timely.spilling.file_memory import bytes_in_files
from timely.spilling.settings import SpillSettings


@pytest.fixture
def in_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(cold_texts, "_COPIED", 7)
    monkeypatch.setattr(cold_texts, "_COPIED_BYTES", 150)
    share = SPILL.begin(SpillSettings(str(tmp_path), 1 << 20))
    before = bytes_in_files()
    yield
    share.end()
    assert bytes_in_files() == before, "files are closed with the values"


@pytest.mark.usefixtures("in_files")
def test_values_are_those_of_a_dictionary(seed: int) -> None:
    draw = random.Random(seed)
    cold, twin, buried = ColdTexts(), dict[int, bytes](), dict[int, bytes]()
    for _ in range(60):
        kind = draw.choice(["add", "add", "bury", "remove"])
        some = draw.sample([*twin], draw.randrange(len(twin) + 1) // draw.choice([1, 9]))
        if kind == "add":
            new = {
                draw.randrange(-(2**63), 2**63): draw.randbytes(draw.choice([0, 1, 5, 90])) for _ in range(9)
            }
            new |= {word: buried[word] for word in draw.sample([*buried], len(buried) // 2)}
            cold.add(np.array([*new], np.int64), [*new.values()])
            twin |= new
            buried = {word: text for word, text in buried.items() if word not in new}
        elif kind == "bury":
            cold.bury(np.array(some, np.int64))
            buried |= {word: twin.pop(word) for word in some}
        else:
            words, texts = cold.remove(np.array([*some, 12345], np.int64))
            assert dict(zip(words, texts, strict=True)) == {word: twin.pop(word) for word in some}
        assert len(cold) == len(twin)
        assert sorted(cold.live_words().tolist()) == sorted(twin)
        asked = draw.sample([*twin], min(5, len(twin)))
        assert cold.texts(np.array([*asked, 1], np.int64)) == [*map(twin.get, asked), None]
    assert bytes_in_files() > 0 or not twin
    cold.leave()
    assert len(cold) == cold.bytes == 0 and cold.texts(np.array([*twin], np.int64)) == [None] * len(twin)


def test_segments_of_large_values_become_one_in_little_memory(tmp_path: Path) -> None:
    share = SPILL.begin(SpillSettings(str(tmp_path), 1 << 20))
    cold, large, small = ColdTexts(), [bytes([at]) * 600_000 for at in range(20)], [b"x" * 9_000] * 300
    cold.add(np.arange(1, 21), large)
    tracemalloc.start()
    cold.add(np.arange(21, 321), small)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(cold._segments) == 1 and cold.texts(np.array([7, 300])) == [large[6], small[0]]
    share.end()
    assert most < 14 << 20, "a byte at most for each of theirs"


@pytest.mark.usefixtures("in_files")
def test_a_lookup_searches_few_segments() -> None:
    cold = ColdTexts()
    for number in range(100):
        cold.add(np.arange(1, 11) + 10 * number, [b"x" * number] * 10)
    assert len(cold) == 1_000 and len(cold._segments) <= 8
    assert cold.texts(np.array([995, 5])) == [b"x" * 99, b""]


@pytest.mark.usefixtures("in_files")
def test_a_table_that_moves_its_values_is_as_one_that_does_not(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("differential.columns.symbols.table._SHARE", 100)
    draw = random.Random(seed)
    table, twin = SymbolTable(), dict[int, object]()
    pinned = table.pin_one("pinned")
    twin[pinned] = "pinned"
    for number in range(40):
        few = ["often", b"often", "", (1, "x"), 2.5]
        values = [*few, *(draw.choice([str, str.encode])(f"{draw.randrange(900)}") for _ in range(60))]
        plain = [value for value in values if isinstance(value, str | bytes)]
        for part, found in [(plain, table.intern_strings(plain)), (values, table.intern(values))]:
            assert found.tolist() == [symbol_word(pack(value)) for value in part]
            twin |= dict(zip(found.tolist(), part, strict=True))
        learned = [f"learned {draw.randrange(99)}" for _ in range(5)]
        entries = SymbolEntries(tuple(symbol_word(pack(v)) for v in learned), tuple(map(pack, learned)))
        table.learn(entries, 1)
        twin |= dict(zip(entries.words, learned, strict=True))
        asked = draw.sample([*twin], len(twin) // 3)
        assert table.lookup(np.array(asked, np.int64)) == [twin[word] for word in asked]
        assert [table.lookup_one(word) for word in asked[:5]] == [twin[word] for word in asked[:5]]
        assert len(table) == len(twin) and asked[0] in table and 5 not in table
        if number % 8 == 7:
            table.check_invariants()
            marking = table.marking()
            in_use = {*draw.sample([*twin], len(twin) // 2), pinned}
            marking.add(np.array([*in_use, 17], np.int64))
            assert table.forget(marking) == len(twin) - len(in_use)
            twin = {word: twin[word] for word in in_use}
            table.check_invariants()
    report = table.report()
    assert report["entries"] == len(twin) and report["cold_entries"] > len(twin) // 2
    with pytest.raises(UnknownSymbolError):
        table.lookup(np.array([*asked, 5], np.int64))
    table.leave_cold()
    table.check_invariants()


@pytest.mark.usefixtures("in_files")
def test_values_that_come_once_more_stay_in_their_files_and_one_that_comes_often_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("differential.columns.symbols.table._SHARE", 2)
    table, values = SymbolTable(), [f"value {number}" for number in range(4000)]
    words = table.intern_strings(values)
    cold = len(table._cold)
    assert cold > 2000
    again = [value for value in values if value not in table._words]
    assert (
        table.intern_strings(again[:800]).tolist() == words[[values.index(v) for v in again[:800]]].tolist()
    )
    assert len(table._cold) == cold - 100
    for _ in range(_RETURNING):
        assert again[801] not in table._words
        table.intern_strings([again[801]])
    assert again[801] in table._words and len(table) == 4000
    table.check_invariants()
    word = table.intern_one(again[803])
    assert word in table._values, "one value alone comes back at once"
    live = table.marking()
    live.add(words[words != words[values.index(again[805])]])
    assert table.forget(live) == 1
    table.intern_strings([again[805]])
    assert again[805] in table._words, "it was forgotten, and is in no file"
    table.check_invariants()


@pytest.mark.usefixtures("in_files")
@pytest.mark.parametrize("entry", ["intern", "learn"])
def test_a_forgotten_value_that_comes_again_is_there_for_good(
    entry: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its bytes stay in a file for some time, where they are dead."""
    monkeypatch.setattr("differential.columns.symbols.table._SHARE", 1 << 40)
    table, values = SymbolTable(), [(number, "packed") for number in range(60)]
    words = table.intern(values)
    live = table.marking()
    live.add(words[1:])
    assert int(words[0]) in table and table.forget(live) == 1
    assert int(words[0]) not in table and len(table) == 59
    if entry == "intern":
        assert table.intern_one(values[0]) == words[0]
    else:
        table.learn(SymbolEntries((int(words[0]),), (pack(values[0]),)), 1)
    assert int(words[0]) in table and len(table) == 60
    table.check_invariants()
    live = table.marking()
    live.add(words[:9])
    assert table.forget(live) == 51  # the file is written anew without the dead
    assert table.lookup(words[:9]) == values[:9]


@pytest.mark.usefixtures("in_files")
def test_two_values_of_one_word_are_found_in_files_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("differential.columns.symbols.table._SHARE", 1 << 40)
    table = SymbolTable(lambda payload: 7 if payload[-1:] in b"xy" else symbol_word(payload))
    table.intern_strings(["x"])
    table.intern_strings([str(number) for number in range(9)])
    assert table.report()["cold_entries"] > 5
    for intern in (table.intern_strings, table.intern):
        with pytest.raises(SymbolCollisionError):
            intern(["y"])
    assert table.lookup_one(7) == "x"
