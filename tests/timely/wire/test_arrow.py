"""Arrays from buffers: equal to Arrow's own, and without pandas."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pytest
from house import ROOT
from hypothesis import given
from hypothesis import strategies as st

import timely.wire.arrow
from timely.wire.arrow import (
    aligned_buffer,
    binary_array,
    int64_array,
    int64s_of,
    number_array,
    numbers_of,
    pc,
    text_array,
    validity_of,
)


@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_integers_are_what_arrow_makes_of_them(values: list[int]) -> None:
    assert int64_array(values) == pa.array(values, pa.int64())
    assert int64_array(np.array(values, dtype=np.int64)) == pa.array(values, pa.int64())


@given(st.lists(st.binary()))
def test_byte_strings_are_what_arrow_makes_of_them(values: list[bytes]) -> None:
    array = binary_array(values)
    array.validate(full=True)
    assert array == pa.array(values, pa.binary())


@given(st.lists(st.text()))
def test_texts_are_what_arrow_makes_of_them(values: list[str]) -> None:
    array = text_array(values)
    array.validate(full=True)
    assert array == pa.array(values, pa.string())


@given(st.lists(st.lists(st.integers(-(2**63), 2**63 - 1))), st.integers(0, 3))
def test_integers_of_a_column_are_those_of_all_its_chunks(chunks: list[list[int]], begin: int) -> None:
    arrays = [pa.array(chunk, pa.int64())[begin:] for chunk in chunks]
    found = int64s_of(pa.chunked_array(arrays, pa.int64()))
    assert found.dtype == np.int64
    assert found.tolist() == [value for chunk in chunks for value in chunk[begin:]]


def test_integers_of_another_column_are_what_arrow_makes_of_them() -> None:
    assert int64s_of(pa.chunked_array([[1, 2]], pa.int32())).tolist() == [1, 2]
    assert np.isnan(int64s_of(pa.chunked_array([[1, None]], pa.int64()))).tolist() == [False, True]


KINDS = {
    pa.int64(): (np.int64, st.integers(-(2**63), 2**63 - 1)),
    pa.int32(): (np.int32, st.integers(-(2**31), 2**31 - 1)),
    pa.float64(): (np.float64, st.floats(allow_nan=False)),
    pa.bool_(): (np.bool_, st.booleans()),
}


@given(st.data(), st.sampled_from(list(KINDS)), st.integers(0, 11), st.integers(0, 30))
def test_numbers_with_nulls_are_there_and_back_what_arrow_makes_of_them(
    data: st.DataObject, kind: pa.DataType, begin: int, count: int
) -> None:
    scalar, values = KINDS[kind]
    wanted = data.draw(st.lists(st.none() | values, max_size=30))
    array = pa.array(wanted, kind)
    null = np.array([value is None for value in wanted], dtype=np.bool_)
    filled = np.array([0 if value is None else value for value in wanted], dtype=scalar)
    made = number_array(filled, null)
    made.validate(full=True)
    assert made == array and made.type == kind
    if not null.any():
        assert number_array(filled) == array
    part = array[begin : begin + count]
    assert validity_of(part).tolist() == [value is not None for value in wanted[begin : begin + count]]
    found = numbers_of(part, scalar)
    assert found.dtype == scalar
    assert found[validity_of(part)].tolist() == [v for v in wanted[begin : begin + count] if v is not None]


def test_numbers_of_rows_of_a_matrix_and_of_nothing() -> None:
    matrix = np.arange(12, dtype=np.int64).reshape(4, 3)
    assert number_array(matrix[:, 1]).to_pylist() == [1, 4, 7, 10]
    assert number_array(matrix[:, 1] > 4, matrix[:, 0] == 9).to_pylist() == [False, False, True, None]
    nothing = pa.nulls(3, pa.int64())
    assert validity_of(nothing).tolist() == [False] * 3 and len(numbers_of(nothing, np.int64)) == 3
    assert len(numbers_of(pa.array([], pa.bool_()), np.bool_)) == 0


@given(st.binary(min_size=1, max_size=100), st.integers(0, 40))
def test_a_buffer_at_an_odd_address_is_moved_and_any_other_shared(content: bytes, offset: int) -> None:
    room = np.zeros(offset + len(content) + 16, dtype=np.uint8)
    room[offset : offset + len(content)] = np.frombuffer(content, dtype=np.uint8)
    buffer = aligned_buffer(memoryview(room.tobytes())[offset : offset + len(content)])
    assert buffer.to_pybytes() == content and buffer.address % 16 == 0


@pytest.mark.parametrize("long", [5, 60_000])
def test_few_and_many_strings_are_alike(long: int) -> None:
    texts = [f"{number} ä"[: number % 7] for number in range(long)]
    assert text_array(texts) == pa.array(texts, pa.string())
    packed = [text.encode() for text in texts]
    assert binary_array(packed) == pa.array(packed, pa.binary())
    with pytest.raises(UnicodeEncodeError):
        text_array([*texts, "\ud800"])


@pytest.mark.parametrize("few", [0, 10])
def test_strings_beyond_what_32_bits_count_are_large_by_their_bytes(
    monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr(timely.wire.arrow, "ARROW_VALUES_MIN", few)
    monkeypatch.setattr(timely.wire.arrow, "_BYTES_MAX", 8)
    for text, is_large in (("a" * 8, False), ("ä" * 4, False), ("a" * 9, True), ("ä" * 5, True)):
        assert text_array([text]) == pa.array([text], pa.large_string() if is_large else pa.string())
        packed = text.encode()
        assert binary_array([packed]) == pa.array([packed], pa.large_binary() if is_large else pa.binary())


def test_a_strided_array_is_copied_in_order() -> None:
    assert int64_array(np.arange(10)[::3]).to_pylist() == [0, 3, 6, 9]


def test_a_first_embedded_query_imports_neither_pandas_nor_zmq() -> None:
    program = """
import sys, timely, dataflows
with timely.connect(embedded=True) as cluster:
    flow = cluster.install(dataflows.word_count)
    flow.input("lines").insert(["a b"])
    flow.seal()
    assert len(flow.output("counts").changes()) == 2
print([name for name in ("pandas", "zmq", "pyspark") if name in sys.modules])
"""
    path = {"PYTHONPATH": ":".join(path for path in sys.path if path)}
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, env=path
    )
    assert result.stdout.strip() == "[]", result.stderr


def test_what_is_called_is_arrow_s_own_with_options() -> None:
    numbers = pa.array([3, None, 1])
    assert pc.equal(numbers, 3).to_pylist() == pyarrow.compute.equal(numbers, 3).to_pylist()
    assert pc.round(pa.array([2.5]), ndigits=0, round_mode="half_up").to_pylist() == [3.0]
    assert pc.equal is pc.equal, "each is made once"


def test_what_arrow_has_not_is_said_when_it_is_called() -> None:
    with pytest.raises(AttributeError, match="never_heard_of"):
        pc.never_heard_of(1)


def test_an_embedded_query_of_whole_numbers_is_answered_without_them() -> None:
    program = """
import sys
import differential as dd, timely
def build(dataflow):
    dd.input(dataflow, "n", "n: int").group_by("n").agg(c=dd.count()).output("n")
with timely.connect(workers=1, embedded=True) as cluster:
    flow = cluster.install(build)
    flow.input("n").insert([(1,), (1,), (2,)])
    flow.seal()
    assert flow.output("n").changes().num_rows == 2 and flow.output("n").snapshot().num_rows == 2
assert "pyarrow.compute" not in sys.modules
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
