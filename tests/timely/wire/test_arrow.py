"""Arrays from buffers: equal to Arrow's own, and without pandas."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from timely.wire.arrow import aligned_buffer, binary_array, int64_array, int64s_of, text_array


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


@given(st.binary(min_size=1, max_size=100), st.integers(0, 40))
def test_a_buffer_at_an_odd_address_is_moved_and_any_other_shared(content: bytes, offset: int) -> None:
    room = np.zeros(offset + len(content) + 16, dtype=np.uint8)
    room[offset : offset + len(content)] = np.frombuffer(content, dtype=np.uint8)
    buffer = aligned_buffer(memoryview(room.tobytes())[offset : offset + len(content)])
    assert buffer.to_pybytes() == content and buffer.address % 16 == 0


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
