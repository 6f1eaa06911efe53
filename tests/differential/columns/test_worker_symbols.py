"""One process has one table of symbols."""

from __future__ import annotations

import pytest

from differential.columns import update_batch
from differential.columns.worker_symbols import SYMBOLS, full_from
from differential.operators import table_io
from timely.dictionaries import dictionaries
from timely.errors import MisuseError


def test_what_encodes_and_what_receives_share_one_table() -> None:
    assert table_io.SYMBOLS is SYMBOLS
    assert update_batch.SYMBOLS is SYMBOLS


def test_it_is_one_that_workers_forget_of() -> None:
    assert dictionaries() == [SYMBOLS]


def test_the_environment_says_how_much_it_has_before_it_forgets(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(given: str) -> int:
        monkeypatch.setenv("NAIAD_SYMBOLS_BYTES_MIN", given)
        return full_from("NAIAD_SYMBOLS_BYTES_MIN", 77, "bytes of values")

    assert found(" ") == 77 and found("0") == found("1") == 1 and found(" 5000 ") == 5000
    with pytest.raises(
        MisuseError,
        match="MIN=many: write a whole number. From so many bytes of values on",
    ):
        found("many")
    monkeypatch.delenv("NAIAD_SYMBOLS_BYTES_MIN")
    assert full_from("NAIAD_SYMBOLS_BYTES_MIN", 77, "bytes of values") == 77
