"""Change feeds: rows with a column that says what happened to them, in the order in which it happened.

    op               at an input with a key                at an input of rows
    insert, update   the key has this value                the row comes
    before           the key has no value (until the       the row goes: one that an update has changed
                     update that follows)
    delete           the key has no value; only its        the row goes
                     columns count

Known spellings are those of Debezium, Flink and Delta; `ops` names others. An *envelope* has the columns of a
row twice, in `before` and `after`, as Debezium sends them: then an update is both. One that is null may be
left out. A *tombstone* is None in place of a change: it follows a deletion, and says nothing new.

The result is a table of the input's columns and `diff`, 1 or -1, in the order of the feed, as `append` takes
it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Final, Literal, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...errors import MisuseError
from ...wire.arrow import int64_array
from ..tables import InputForm, columns_of, is_of_pandas
from .change_rows import rows_of_envelopes

__all__ = ["CHANGE_KINDS", "ChangeKind", "changes_table"]

ChangeKind = Literal["insert", "update", "before", "delete"]

CHANGE_KINDS: Final[Mapping[object, ChangeKind]] = {
    **dict.fromkeys(("insert", "i", "+i", "c", "create", "r", "read"), "insert"),
    **dict.fromkeys(("update", "u", "+u", "update_after", "update_postimage"), "update"),
    **dict.fromkeys(("before", "-u", "update_before", "update_preimage"), "before"),
    **dict.fromkeys(("delete", "d", "-d"), "delete"),
}
"""What happened, by its spelling in lower case: that of Debezium, of Flink (+I, -U, +U, -D), and of Delta."""

_DIFFS: Final[Mapping[ChangeKind, int]] = {"insert": 1, "update": 1, "before": -1, "delete": -1}
_BEFORE, _AFTER, _PAYLOAD = "before", "after", "payload"
_ENVELOPE: Final = frozenset((_BEFORE, _AFTER))

_Row = Mapping[object, object]


def changes_table(
    form: InputForm, data: object, op: str, ops: Mapping[object, ChangeKind] | None
) -> pa.Table:
    """Return the changes `data` as a table of the columns of an input and `diff`.

    data    a list of dicts, or a table or frame, with the column `op` beside those of the input; or envelopes
    ops     what each value of `op` means, for a feed with spellings of its own

    Raises MisuseError for a change that says nothing that the input can take, with its number in the feed.
    """
    if form.schema is None or form.is_records:
        raise MisuseError(
            f"input {form.name!r} takes {form.description}, and a change feed has columns: declare the "
            "input by dd.input(flow, name, schema)"
        )
    feed = _Feed(form, op, ops)
    if feed.is_envelope(_names_of(data)):
        if is_of_pandas(data, "DataFrame"):
            data = pa.Table.from_pandas(data, preserve_index=False)
        return feed.of_envelopes(pa.table(data))
    if isinstance(data, Iterable) and not _has_columns(data):
        changes = list(data)
        if all(kind is type(None) or issubclass(kind, Mapping) for kind in set(map(type, changes))):
            return feed.of_dicts(cast("list[_Row | None]", changes))
        data = changes
    return feed.of_columns(data)


def _has_columns(data: object) -> bool:
    """Return True for tables and frames, and for dicts and arrays of columns."""
    return (
        isinstance(data, pa.Table | pa.RecordBatch | Mapping | np.ndarray | str | bytes)
        or is_of_pandas(data, "DataFrame")
        or hasattr(data, "__arrow_c_stream__")
        or callable(getattr(data, "toArrow", None))
    )


def _names_of(data: object) -> list[object]:
    """Return the names of the columns of a table or a frame; [] for what has none."""
    if isinstance(data, pa.Table | pa.RecordBatch):
        return list(data.schema.names)
    is_frame = is_of_pandas(data, "DataFrame") or hasattr(data, "__arrow_c_stream__")
    return list(getattr(data, "columns", ())) if is_frame else []


def _taken(table: pa.Table, at: npt.NDArray[np.intp]) -> pa.Table:
    """Return these rows. Arrow takes none of the texts of Polars, which are of another type."""
    for place, field in enumerate(table.schema):
        if str(field.type) in ("string_view", "binary_view"):
            plain = table.column(place).cast(str(field.type).removesuffix("_view"))
            table = table.set_column(place, field.name, plain)
    return table.take(int64_array(at))


class _Feed:
    """The changes of one call."""

    def __init__(self, form: InputForm, op: str, ops: Mapping[object, ChangeKind] | None) -> None:
        assert form.schema is not None
        self._form = form
        self._op = op
        self._kinds: Mapping[object, ChangeKind] = CHANGE_KINDS if ops is None else ops
        self._is_own = ops is not None
        for value, kind in self._kinds.items():
            if kind not in _DIFFS:
                raise MisuseError(
                    f"input {form.name!r}: ops says {kind!r:.50} for {value!r:.50}; it says what a value of "
                    f"{op!r} means: {', '.join(_DIFFS)}"
                )
        self._names: list[str] = form.schema.names
        self._beside = [name for name in self._names if name not in form.keys] if form.keys else []

    def is_envelope(self, names: Iterable[object]) -> bool:
        """Return True if a change with these columns has its rows in `before` and `after`."""
        return not _ENVELOPE.isdisjoint(names) and _ENVELOPE.isdisjoint(self._names)

    def of_dicts(self, changes: Sequence[_Row | None]) -> pa.Table:
        """Return the table of changes as dicts: flat ones, and envelopes."""
        there = [change for change in changes if change is not None]
        whole = self._at_once(there, len(there) == len(changes))
        if whole is not None:
            return whole
        rows: list[_Row] = []
        diffs: list[int] = []
        entered: list[tuple[ChangeKind, int]] = []
        for number, message in enumerate(changes):
            change = None if message is None else self._payload(message)
            if change is None:
                continue
            if self._op not in change:
                raise self._error(number, f"it has no {self._op!r}: {change!r:.200}")
            kind = self._kind(change[self._op], number)
            for row, its in self._rows_of(change, kind, number):
                rows.append(self._with_nulls(row) if _DIFFS[its] < 0 else row)
                diffs.append(_DIFFS[its])
                entered.append((its, number))
        self._check_updates(entered)
        return self._with_diffs(self._form.to_table(rows), np.array(diffs, np.int64))

    def _at_once(self, changes: Sequence[_Row], are_all: bool) -> pa.Table | None:
        """Return the table of changes that all have the same usual form; None if some have to be looked at
        one by one, perhaps because they are wrong. `are_all`: there are no tombstones between them.
        """
        try:
            ops = list(map(itemgetter(self._op), changes))
            if not set(map(type, ops)) <= {str, int}:
                return None
            kinds = {
                op: self._kinds.get(op if self._is_own or type(op) is int else op.lower()) for op in set(ops)
            }
        except KeyError:
            return None
        if not changes or None in kinds.values():
            return None
        if not self.is_envelope(changes[0]):
            if self._op in self._names:
                return None
            columns = columns_of(changes, [*self._names, self._op])
            if columns is None:
                return None
            if "update" in kinds.values() and not self._form.keys:
                if not are_all:
                    return None  # an error says which number an update has
                self._check_updates((kinds[op] or "update", number) for number, op in enumerate(ops))
            diffs = {op: _DIFFS[kind] for op, kind in kinds.items() if kind is not None}
            rows = self._form.to_table(dict(zip(self._names, columns[:-1], strict=True)))
            return self._with_diffs(rows, np.array(list(map(diffs.__getitem__, ops)), np.int64))
        comes = {op: kind in ("insert", "update") for op, kind in kinds.items()}
        is_update = {op: kind == "update" for op, kind in kinds.items()}
        come, are_updates = (list(map(by_op.__getitem__, ops)) for by_op in (comes, is_update))
        rows = rows_of_envelopes(changes, come, are_updates, self._names, self._form.keys)
        if rows is None:
            return None
        try:
            table = self._form.to_table(rows.columns)
        except MisuseError:  # of a value beside a key that is deleted, or of one that cannot be
            return None
        return self._with_diffs(table, np.where(np.array(rows.come, np.bool_), 1, -1))

    def _payload(self, change: _Row) -> _Row | None:
        """Return the envelope within a message that has its schema beside it."""
        payload = change.get(_PAYLOAD)
        if _PAYLOAD in change and _PAYLOAD not in self._names and self._op not in change:
            return cast("_Row | None", payload)
        return change

    def _rows_of(self, change: _Row, kind: ChangeKind, number: int) -> list[tuple[_Row, ChangeKind]]:
        if not self.is_envelope(change):
            self._check_op()
            return [({name: value for name, value in change.items() if name != self._op}, kind)]
        before, after = change.get(_BEFORE), change.get(_AFTER)
        wanted = {"insert": (after,), "delete": (before,), "update": (after,), "before": (before,)}[kind]
        for row in (*wanted, before):
            if row is not None and not isinstance(row, Mapping):
                raise self._error(number, f"what is before or after it is {row!r:.100}, and no dict")
        if wanted[0] is None:
            where = _BEFORE if kind in ("delete", "before") else _AFTER
            raise self._error(number, f"it is {change[self._op]!r}, and its {where!r} is None")
        if kind != "update":
            return [(cast("_Row", wanted[0]), kind)]
        if before is None:
            return [(cast("_Row", after), "update")]
        return [(cast("_Row", before), "before"), (cast("_Row", after), "update")]

    def _check_op(self) -> None:
        """Raise if rows beside `op`, not in an envelope, have such a column of their own."""
        if self._op in self._names:
            raise MisuseError(
                f"input {self._form.name!r}: {self._op!r} is a column of its rows, so it cannot say what "
                "happened to them. Name the column that does: apply(changes, op='…')"
            )

    def _with_nulls(self, row: _Row) -> _Row:
        """Return the row of a key that is deleted, whose other columns do not count."""
        if not self._beside:
            return row
        return {**{name: row[name] for name in self._form.keys if name in row}, **dict.fromkeys(self._beside)}

    def of_columns(self, data: object) -> pa.Table:
        """Return the table of changes in a table or frame, or in tuples with `op` behind the columns."""
        self._check_op()
        schema = self._form.schema
        assert schema is not None
        is_number = self._is_own and all(type(value) is int for value in self._kinds)
        kind = pa.int64() if is_number else pa.string()
        if (
            isinstance(data, pa.Table)
            and data.column_names.count(self._op) == 1
            and data[self._op].type == kind
        ):
            # A form of its own would have a schema of its own, which takes longer than a thousand rows.
            operations, rows = data[self._op], self._form.to_table(data.drop_columns([self._op]))
        else:
            what = pa.field(self._op, kind, nullable=False)
            whole = replace(self._form, schema=schema.append(what)).to_table(data)
            operations, rows = whole.column(self._op), whole.drop_columns([self._op])
        kinds, at = self._kinds_of(operations)
        if "update" in kinds and not self._form.keys:
            self._check_updates([(kinds[which], number) for number, which in enumerate(at.tolist())])
        diffs = np.array([_DIFFS[kind] for kind in kinds], np.int64)[at]
        return self._with_diffs(rows, diffs)

    def of_envelopes(self, table: pa.Table) -> pa.Table:
        """Return the table of envelopes in columns: `before` and `after` are structs."""
        if self._op not in table.column_names:
            raise MisuseError(f"input {self._form.name!r}: the change feed has no column {self._op!r}")
        schema = self._form.schema
        assert schema is not None
        different, which = self._kinds_of(table.column(self._op))
        parts, places, diffs = [], [], []
        for name, own in ((_BEFORE, ("before", "delete", "update")), (_AFTER, ("insert", "update"))):
            is_told = name in table.column_names
            column = table.column(name).combine_chunks() if is_told else pa.nulls(table.num_rows)
            if not pa.types.is_struct(column.type) and column.null_count < len(column):
                raise MisuseError(
                    f"input {self._form.name!r}: column {name!r} of the change feed is {column.type}; in an "
                    "envelope it has the columns of a row, as a struct"
                )
            is_there = np.asarray(column.is_valid())
            self._check_there(different, which, is_there, name)
            is_own = np.array([kind in own for kind in different], np.bool_)
            at = np.flatnonzero(is_own[which] & is_there)
            if len(at):  # else the column may have no type but that of nulls
                rows = _taken(pa.Table.from_struct_array(column), at)
                part = self._form.to_table(rows if name == _AFTER else self._only_keys(rows))
                parts.append(part.cast(schema))  # whether a column has nulls may differ between the two
            places.append(2 * at + (name == _AFTER))
            diffs.append(np.full(len(at), 1 if name == _AFTER else -1))
        whole = pa.concat_tables([schema.empty_table(), *parts])
        order = np.argsort(np.concatenate(places), kind="stable")
        return self._with_diffs(whole.take(int64_array(order)), np.concatenate(diffs)[order])

    def _check_there(
        self,
        different: Sequence[ChangeKind],
        which: npt.NDArray[np.int64],
        is_there: npt.NDArray[np.bool_],
        name: str,
    ) -> None:
        """Raise for the first change without the row `name` that it needs."""
        needs: tuple[ChangeKind, ...] = ("insert", "update") if name == _AFTER else ("delete", "before")
        if name == _BEFORE and not self._form.keys:
            needs += ("update",)
        missing = np.array([kind in needs for kind in different], np.bool_)[which] & ~is_there
        if missing.any():
            number = int(np.argmax(missing))
            kind = different[which[number]]
            if name == _BEFORE and kind == "update":
                self._check_updates([(kind, number)])
            raise self._error(number, f"it is of the kind {kind}, and its {name!r} is null")

    def _only_keys(self, rows: pa.Table) -> pa.Table:
        """Return rows that are deleted: with a key only its columns count."""
        schema = self._form.schema
        assert schema is not None
        for name in self._beside:
            nulls = pa.nulls(rows.num_rows, schema.field(name).type)
            at = rows.schema.get_field_index(name)
            rows = rows.append_column(name, nulls) if at < 0 else rows.set_column(at, name, nulls)
        return rows

    def _kinds_of(self, column: pa.ChunkedArray) -> tuple[list[ChangeKind], npt.NDArray[np.int64]]:
        """Return what each different value of the column means, and for each row which of them it has."""
        if column.null_count:
            raise self._error(column.is_null().index(True).as_py(), f"its {self._op!r} is null")
        encoded = column.combine_chunks().dictionary_encode()
        if isinstance(encoded, pa.ChunkedArray):
            encoded = (
                encoded.chunk(0)
                if encoded.num_chunks
                else pa.array([], pa.dictionary(pa.int32(), column.type))
            )
        at = np.asarray(encoded.indices).astype(np.int64)
        values = encoded.dictionary.to_pylist()
        return [self._kind(value, number, at) for number, value in enumerate(values)], at

    def _kind(self, value: object, number: int, at: npt.NDArray[np.int64] | None = None) -> ChangeKind:
        """Return what `value` means, which the change `number` has; with `at`, the first one that has it."""
        named = value if self._is_own or not isinstance(value, str) else value.lower()
        try:
            kind = self._kinds.get(named)
        except TypeError:  # no key of a dict
            kind = None
        if kind is None:
            spellings = ", ".join(map(repr, self._kinds))
            raise self._error(
                number if at is None else int(np.argmax(at == number)),
                f"its {self._op!r} is {value!r:.50}, which is none of {spellings}. Say what it "
                f"means: apply(changes, op={self._op!r}, ops={{{value!r:.50}: 'insert', …}}), with "
                f"{', '.join(_DIFFS)}; and leave out what changes no row",
            )
        return kind

    def _check_updates(self, changes: Iterable[tuple[ChangeKind, int]]) -> None:
        """Raise for an update without a row before it, unless the input knows rows by their keys. `changes`
        has kinds and numbers of changes. Some feeds name the row before behind the update, or others between.
        """
        if self._form.keys:
            return
        waiting = missing = 0
        first = -1
        for kind, number in changes:
            if kind == "before":
                waiting += 1
            elif kind == "update":
                if waiting == missing and first < 0:
                    first = number
                missing += 1
        if missing > waiting:
            raise self._error(
                first,
                "it is an update without the row before it, and this input knows no keys. Declare it by "
                f"dd.input(flow, {self._form.name!r}, …, key='id', mode='upsert'); or send the row before, "
                "too, in the same call: as '-U' in front of '+U', or in an envelope",
            )

    def _with_diffs(self, table: pa.Table, diffs: npt.NDArray[np.int64]) -> pa.Table:
        return table.append_column(pa.field("diff", pa.int64(), nullable=False), int64_array(diffs))

    def _error(self, number: int, what: str) -> MisuseError:
        return MisuseError(f"input {self._form.name!r}, change {number} of the feed: {what}")
