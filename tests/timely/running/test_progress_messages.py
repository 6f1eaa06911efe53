"""Headers between workers: there and back, and nothing else is taken for one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from progress.errors import PeerError
from timely.running.progress_messages import (
    ControlHeader,
    DataHeader,
    ProgressHeader,
    WithdrawalHeader,
    read_header,
    write_control_header,
    write_data_header,
    write_progress_header,
    write_withdrawal_header,
)


@given(
    st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1), st.integers(0, 2**63 - 1), st.integers(0, 2**16 - 1)
)
def test_headers_come_back_as_they_were_written(dataflow: int, connector: int, word: int, kind: int) -> None:
    header = DataHeader(dataflow, connector, word, kind)
    assert read_header(write_data_header(header), 1) == header
    assert read_header(write_progress_header(ProgressHeader(dataflow)), 1) == ProgressHeader(dataflow)
    assert read_header(write_control_header(), 1) == ControlHeader()
    for is_answer in (False, True):
        assert read_header(write_withdrawal_header(is_answer), 1) == WithdrawalHeader(is_answer)


@given(st.binary(max_size=40))
def test_anything_else_is_an_error_of_the_peer(frame: bytes) -> None:
    try:
        header = read_header(frame, 3)
    except PeerError as error:
        assert "worker 3" in str(error)
    else:
        assert frame.startswith(b"ND") and header is not None


def test_another_version_says_so() -> None:
    frame = bytearray(write_control_header())
    frame[2] += 1
    with pytest.raises(PeerError, match="speaks wire version 6, this worker 5"):
        read_header(bytes(frame), 0)


def test_a_word_below_zero_is_refused() -> None:
    frame = write_data_header(DataHeader(0, 0, 0, 1))
    for place in (len(frame) - 11, len(frame) - 1):  # of the word, of the anchor
        broken = frame[:place] + b"\x80" + frame[place + 1 :]
        with pytest.raises(PeerError, match="a time word below zero"):
            read_header(broken, 0)
