"""What clients send, as batches: records, and rows by their differences."""

from __future__ import annotations

import msgpack
import pyarrow as pa
import pytest

from progress.compiled.arrays import Int64s
from timely import Batch, MisuseError, Records
from timely.limits import NESTING_LEVELS_MAX
from timely.operators.imported import ImportCodec
from timely.operators.inputs.codecs import RecordsIn, batches_of, with_diffs


def test_records_come_as_msgpack_and_can_only_be_added() -> None:
    table = pa.table({"record": [msgpack.packb(("a", 1)), msgpack.packb(None)]})
    batch = RecordsIn().encode(table, 1, 0)
    assert isinstance(batch, Records) and batch.records == [("a", 1), None]
    with pytest.raises(MisuseError, match="can only be added to"):
        RecordsIn().encode(table, -1, 0)
    for broken in ([b"\xc1"], [None, b"\x01"], [b""], [b"\x01\x02"]):
        with pytest.raises(MisuseError, match="holds what is not msgpack"):
            RecordsIn().encode(pa.table({"record": broken}), 1, 0)
    with pytest.raises(MisuseError, match="one binary column 'record'"):
        RecordsIn().encode(pa.table({"x": [1]}), 1, 0)
    for column in (pa.array([7]), pa.nulls(2), pa.array([b"\x01"]).dictionary_encode()):
        with pytest.raises(MisuseError, match="one binary column 'record', not 'record': "):
            RecordsIn().encode(pa.table({"record": column}), 1, 0)


def test_records_are_nested_no_deeper_than_can_be_sent_on() -> None:
    def nested(levels: int) -> pa.Table:
        return pa.table({"record": [b"\x01", b"\x91" * levels + b"\x01"]})

    (_, record) = RecordsIn().encode(nested(NESTING_LEVELS_MAX), 1, 0).records
    Records([[record] * 2]).to_frames(1)
    with pytest.raises(MisuseError, match=f"row 1 is nested more than {NESTING_LEVELS_MAX} levels deep"):
        RecordsIn().encode(nested(NESTING_LEVELS_MAX + 1), 1, 0)


class Counted:
    """A codec that writes down what it is given."""

    def __init__(self) -> None:
        self.given: list[tuple[object, list[object]]] = []

    def encode(self, table: pa.Table, diff: int | Int64s, epoch_word: int) -> Batch:
        self.given.append((diff if isinstance(diff, int) else diff.tolist(), table.column("a").to_pylist()))
        return Records(table.column("a").to_pylist())

    def describe(self) -> str:
        return "counted"

    def as_import(self) -> ImportCodec:
        raise NotImplementedError


@pytest.mark.parametrize(
    ("diffs", "given"),
    [
        ([1, -1, 1], [([1, -1, 1], [10, 11, 12])]),
        ([2, 2, 2], [(2, [10, 11, 12])]),
        ([0, 5, 0], [(5, [11])]),
        ([3, 0, 5], [([3, 5], [10, 12])]),
        ([0, 0, 0], []),
    ],
)
def test_rows_are_given_to_the_codec_by_their_differences(
    diffs: list[int], given: list[tuple[object, list[object]]]
) -> None:
    codec = Counted()
    batches = batches_of(codec, "numbers", pa.table({"a": [10, 11, 12], "diff": diffs}), 0, 0)
    assert [batch.records for batch in batches] == [values for _, values in given]
    assert codec.given == given


@pytest.mark.parametrize("diffs", [pa.array([1, None]), pa.array([1.0, 2.0]), pa.array([True, False])])
def test_rows_of_which_it_is_not_said_how_often_are_refused(diffs: pa.Array) -> None:
    codec = Counted()
    with pytest.raises(MisuseError, match="'diff' holds integers without nulls"):
        batches_of(codec, "numbers", pa.table({"a": [10, 11], "diff": diffs}), 0, 0)
    assert not codec.given


def test_rows_whose_differences_do_not_fit_64_bits_are_refused() -> None:
    beyond = pa.table({"record": [b"\x01"], "diff": pa.array([2**63], pa.uint64())})
    with pytest.raises(MisuseError, match="'diff' holds integers of 64 bits"):
        batches_of(RecordsIn(), "numbers", beyond, 0, 0)


def test_differences_that_are_none_are_refused_with_what_is_wrong_of_them() -> None:
    for diffs, said in (
        (pa.array([1, None]), "-1 for one that goes; this one is int64, 1 of them null$"),
        (pa.array(["+", "-"]), "this one is string$"),
    ):
        with pytest.raises(MisuseError, match=f"input 'numbers': the column 'diff' .*{said}"):
            with_diffs("numbers", pa.table({"a": [10, 11], "diff": diffs}))


def test_a_record_that_cannot_be_read_is_named_by_its_place_among_those_that_are_there() -> None:
    given = pa.table({"record": [b"\x01", b"\x01", b"\xc1"], "diff": [1, 1, 1]})
    for diffs, row, notes in (
        ([1, 1, 1], 2, []),
        ([0, 1, 1], 1, ["rows are counted without those whose diff is 0"]),
    ):
        said = given.set_column(1, "diff", pa.array(diffs))
        with pytest.raises(MisuseError, match=f"row {row}, holds what is not msgpack") as raised:
            batches_of(RecordsIn(), "numbers", said, 0, 0)
        assert getattr(raised.value, "__notes__", []) == notes


def test_columns_of_which_arrow_leaves_no_rows_out_are_refused_if_some_are_there_no_times() -> None:
    given = pa.table({"a": pa.array(["x", "y"], pa.string_view()), "diff": [1, 0]})
    with pytest.raises(MisuseError, match="'numbers': rows with the diff 0 cannot be left out: "):
        batches_of(Counted(), "numbers", given, 0, 0)
    (batch,) = batches_of(Counted(), "numbers", given.set_column(1, "diff", pa.array([1, 1])), 0, 0)
    assert batch.rows == 2
