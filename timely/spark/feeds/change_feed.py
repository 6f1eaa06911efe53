"""A DataFrame whose rows say what happened to other rows: the log of a database, the history of a table.

    change_feed(…)     the user's words for it: key, operation, order
    plain(…)           the columns of the rows, and one column `change` about each: see below
    last_changes(…)    of each key and epoch the change that counts, with its diff

A feed with a key needs only the last change of each key in an epoch: it is what an upsert input would make of
all of them, one after the other. So no order has to survive the way to the workers, and a task that Spark
runs again sends the same rows. The order is that of the column `order`. In one place of the order the row
before an update and a deletion come before the row that is there afterwards, as in a commit of Delta that
replaces rows. Two different rows in one place are refused.

    change.diff      1: the row is there now; -1: it is gone; null: see `problem`
    change.kind      insert, update, before, delete
    change.order     the place in the feed, as a struct
    change.problem   what is wrong with the change; else null

Errors travel as rows, since most feeds have none: the layout of rows looks for null diffs anyway.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from timely.client.feeding.changes import CHANGE_KINDS, ChangeKind
from timely.counted import counted
from timely.errors import MisuseError
from timely.spark.epochs import DIFF, EPOCH
from timely.spark.errors import InputFormatError
from timely.spark.frames import distinct_names, free_name, quoted

__all__ = ["PROBLEM", "ChangeFeed", "PlainFeed", "change_feed"]

PROBLEM: Final = "problem"
"""The column of laid-out changes that says what is wrong with one."""

_BEFORE, _AFTER = "before", "after"
_DELTA_OP, _DELTA_ORDER, _DELTA_TIME = "_change_type", "_commit_version", "_commit_timestamp"
_GOES: Final = ("before", "delete")
_COMES: Final = ("insert", "update")
_SHOWN_CHARS: Final = 200


def change_feed(
    frame: DataFrame,
    *,
    key: str | Sequence[str] = (),
    op: str | None = None,
    order: str | Sequence[str] = (),
    ops: Mapping[object, ChangeKind] | None = None,
) -> ChangeFeed:
    """Let an input of `run` take `frame` as a change feed: its rows say what happened to rows of the input.

        orders = timely.spark.change_feed(log, key="id", order="offset")
        timely.spark.run(totals, {"orders": orders}, epochs="day")

    key     the columns of the key, of which the input then keeps the last value. If the query declares the
            input, it knows them. Without a key, rows come and go: then an update needs the row before it
    op      the column that says what happened, "op" or "_change_type" unless given, spelled as Debezium,
            Flink or Delta do. The rows stand beside it, or in the structs `before` and `after`
    order   the column that says in which order the changes of an epoch happened, or several; one within a
            struct is "source.lsn". A feed with a key needs it; that of Delta has `_commit_version`
    ops     what each value of `op` means, for other spellings: {1: "delete", 2: "insert", …}

    Changes that come twice change nothing if there is a key, and tombstones never do.
    Raises InputFormatError for columns that are missing, and MisuseError for other meanings than insert,
    update, before and delete.
    """
    if not isinstance(frame, DataFrame):
        raise MisuseError(f"change_feed takes a DataFrame of Spark, not a {type(frame).__name__}")
    names = frame.columns
    if op is None:
        op = _DELTA_OP if _DELTA_OP in names and "op" not in names else "op"
    if op not in names:
        raise InputFormatError(
            f"the change feed has no column {op!r} that says what happened; it has {', '.join(names)}. Name "
            "the column: change_feed(df, op='…')"
        )
    if ops is None and not isinstance(frame.schema[op].dataType, T.StringType):
        raise InputFormatError(
            f"the column {op!r} of the change feed is {frame.schema[op].dataType.simpleString()}: say what "
            f"its values mean: change_feed(df, op={op!r}, ops={{1: 'insert', …}})"
        )
    for value, kind in (ops or {}).items():
        if kind not in (*_COMES, *_GOES):
            raise MisuseError(
                f"ops says {kind!r:.50} for {value!r:.50}: it says insert, update, before or delete"
            )
    places = (order,) if isinstance(order, str) else tuple(order)
    if not places and op == _DELTA_OP and _DELTA_ORDER in names:
        places = (_DELTA_ORDER,)
    return ChangeFeed(frame, (key,) if isinstance(key, str) else tuple(key), op, places, ops)


@dataclass(frozen=True)
class ChangeFeed:
    """What `change_feed` returns: a DataFrame of changes, and how to read it."""

    frame: DataFrame
    key: tuple[str, ...]
    op: str
    order: tuple[str, ...]
    ops: Mapping[object, ChangeKind] | None

    def latest(self) -> DataFrame:
        """Return the last change of each key: its columns and `diff`, 1, or -1 where the key is gone. Without
        a key, return all changes so. For `foreachBatch`: the rows may be written to an upsert input by
        format("naiad") with the option diff.

        Raises InputFormatError for a change that cannot be read; that costs a Spark job.
        """
        feed = self.plain("feed", ())
        frame, inner = distinct_names(feed.frame, feed.columns)
        dated = frame.withColumn(EPOCH, F.lit(0).cast("bigint"))
        rows = feed.last_changes(dated, inner)
        error = feed.error_in(rows, inner)
        if error is not None:
            raise error
        return rows.select(*(F.col(inner[name]).alias(name) for name in feed.columns), DIFF)

    def plain(self, name: str, beside: Sequence[str], key: Sequence[str] = ()) -> PlainFeed:
        """Return the rows that the changes are about, for the input `name`. The columns `beside` say when.

        `key`: that of the input, if it has been declared.
        """
        keys = tuple(key) or self.key
        dates = [one for one in beside if one in self.frame.columns]
        if self._is_envelope:
            rows, columns = self._of_envelope(name, dates, keys)
        else:
            rows, columns = self._of_columns(dates, keys)
        for one in keys:
            if one not in columns:
                raise InputFormatError(
                    f"input {name!r}: the key {one!r} is no column of its rows: {', '.join(columns)}"
                )
        if keys and not self.order:
            raise InputFormatError(
                f"input {name!r}: of several changes of one key the last one counts, so say which column "
                "gives their order: change_feed(df, …, order='offset')"
            )
        return PlainFeed(
            name, rows, tuple(columns), keys, free_name("change", [*columns, *dates]), self.order
        )

    @property
    def _is_envelope(self) -> bool:
        types = {field.name: field.dataType for field in self.frame.schema.fields}
        return isinstance(types.get(_AFTER), T.StructType) and _BEFORE in types

    def _of_columns(self, dates: list[str], keys: Sequence[str]) -> tuple[DataFrame, list[str]]:
        """Return the rows of a feed that has them beside the operation."""
        left_out = {self.op, *dates, *self.order}
        if self.op == _DELTA_OP:
            left_out |= {_DELTA_ORDER, _DELTA_TIME}
        columns = [one for one in self.frame.columns if one not in left_out]
        there = [F.col(quoted(one)).isNotNull() for one in columns if one not in keys]
        is_tombstone = F.col(quoted(self.op)).isNull() & ~reduce(lambda a, b: a | b, there, F.lit(False))
        change = self._change(F.lit(None).cast("string"), is_comes=None)
        frame = self.frame.where(~is_tombstone) if there else self.frame
        name = free_name("change", [*columns, *dates])
        return frame.select(*map(quoted, (*columns, *dates)), change.alias(name)), columns

    def _of_envelope(self, name: str, dates: list[str], keys: Sequence[str]) -> tuple[DataFrame, list[str]]:
        """Return the rows of a feed that has them in `before` and `after`: two for an update."""
        after = self.frame.schema[_AFTER].dataType
        before = self.frame.schema[_BEFORE].dataType
        assert isinstance(after, T.StructType)
        columns = after.names
        present = set(before.names) if isinstance(before, T.StructType) else set()
        lacking = [one for one in keys or columns if present and one not in present]
        if lacking:
            raise InputFormatError(
                f"input {name!r}: {_BEFORE!r} of the change feed lacks {', '.join(lacking)}"
            )
        for clash in {*dates} & {*columns}:
            raise InputFormatError(
                f"input {name!r}: {clash!r} is a column beside the change and one within it. Rename it"
            )
        kind, is_there = self._kind(), {side: F.col(side).isNotNull() for side in (_BEFORE, _AFTER)}
        wants_before = kind.isin(*_GOES) if keys else kind.isin(*_GOES, "update")
        missing = (
            F.when(kind.isin(*_COMES) & ~is_there[_AFTER], F.lit(f"its {_AFTER!r} is null"))
            .when(kind.isin(*_GOES) & ~is_there[_BEFORE], F.lit(f"its {_BEFORE!r} is null"))
            .when(wants_before & ~is_there[_BEFORE], F.lit(_NO_ROW_BEFORE))
        )
        sides = []
        for side, is_comes in ((_BEFORE, False), (_AFTER, True)):
            change = self._change(missing, is_comes)
            if is_comes:
                is_taken = kind.isin(*_COMES) | change["problem"].isNotNull()
            else:
                is_taken = kind.isin(*_GOES, "update") & is_there[_BEFORE] & change["problem"].isNull()
            values = [
                F.col(f"{side}.{quoted(one.name)}").cast(one.dataType).alias(f"_{at}")
                if is_comes or one.name in present
                else F.lit(None).cast(one.dataType).alias(f"_{at}")
                for at, one in enumerate(after.fields)
            ]
            sides.append(
                F.struct(
                    F.coalesce(is_taken, F.lit(False)).alias("is_taken"), change.alias("change"), *values
                )
            )
        is_tombstone = F.col(quoted(self.op)).isNull() & ~is_there[_BEFORE] & ~is_there[_AFTER]
        taken = F.explode(F.filter(F.array(*sides), lambda one: one["is_taken"]))
        side = free_name("side", dates)
        rows = self.frame.where(~is_tombstone).select(*map(quoted, dates), taken.alias(side))
        out = [F.col(f"{side}._{at}").alias(one) for at, one in enumerate(columns)]
        change_name = free_name("change", [*columns, *dates])
        plain = rows.select(*out, *map(quoted, dates), F.col(f"{side}.change").alias(change_name))
        return plain, list(columns)

    def _kind(self) -> Column:
        """Return what happened; null for a spelling that nobody knows."""
        kinds_by_op, column = CHANGE_KINDS if self.ops is None else self.ops, F.col(quoted(self.op))
        named = F.lower(F.trim(column)) if self.ops is None else column
        kinds = {
            kind: [value for value, its in kinds_by_op.items() if its == kind] for kind in (*_COMES, *_GOES)
        }
        return F.coalesce(*(F.when(named.isin(values), F.lit(kind)) for kind, values in kinds.items()))

    def _change(self, missing: Column, is_comes: bool | None) -> Column:
        """Return the struct about a change; `is_comes` None: its kind says whether the row comes."""
        kind = self._kind()
        op, kinds_by_op = F.col(quoted(self.op)), CHANGE_KINDS if self.ops is None else self.ops
        spellings = ", ".join(map(repr, kinds_by_op))
        order = [F.col(path if path not in self.frame.columns else quoted(path)) for path in self.order]
        no_place = reduce(lambda a, b: a | b, (one.isNull() for one in order), F.lit(False))
        problem = F.coalesce(
            F.when(op.isNull(), F.lit(f"its {self.op!r} is null")),
            F.when(
                kind.isNull(),
                F.concat(
                    F.lit(f"its {self.op!r} is '"),
                    op.cast("string"),
                    F.lit(
                        f"', which is none of {spellings}. Say what it means by ops={{…: 'insert'}}, and "
                        "leave out what changes no row"
                    ),
                ),
            ),
            F.when(no_place, F.lit(f"it has no place in the order: {', '.join(self.order)} is null")),
            missing,
        )
        diff = (
            F.when(kind.isin(*_COMES), 1).otherwise(-1) if is_comes is None else F.lit(1 if is_comes else -1)
        )
        return F.struct(
            F.when(problem.isNull(), diff.cast("bigint")).alias("diff"),
            (F.lit("before") if is_comes is False else kind).alias("kind"),
            F.struct(*(one.alias(f"_{at}") for at, one in enumerate(order)), F.lit(0).alias("_")).alias(
                "order"
            ),
            problem.alias("problem"),
        )


_NO_ROW_BEFORE: Final = (
    "it is an update without the row before it, and the input knows no key: change_feed(df, key='id', …)"
)


@dataclass(frozen=True)
class PlainFeed:
    """The rows that the changes of a feed are about, for the input `name`, whose columns are `columns`.

    `frame` has these, the columns that say when, and the struct `change`.
    """

    name: str
    frame: DataFrame
    columns: tuple[str, ...]
    key: tuple[str, ...]
    change: str
    order: tuple[str, ...] = ()

    def last_changes(self, dated: DataFrame, inner: Mapping[str, str], condensed: int = 0) -> DataFrame:
        """Return the columns, EPOCH and DIFF: of each key and epoch the last change, or without a key all.

        `dated` has the columns under their names in `inner`, `change`, and EPOCH. With `condensed` the
        changes of all epochs before it count in the last of these, where a key that is gone has no row.
        """
        columns, change = [inner[name] for name in self.columns], quoted(self.change)
        diff = F.col(f"{change}.diff")
        if not self.key:
            return dated.select(*columns, EPOCH, diff.alias(DIFF), F.col(f"{change}.problem").alias(PROBLEM))
        keys = [inner[name] for name in self.key]
        last = F.lit(max(0, condensed - 1)).cast("bigint")
        facts = [part for one in columns for part in (F.col(one), F.col(one).isNull())]
        ranked = dated.select(
            *columns,
            F.greatest(F.col(EPOCH), last).alias(EPOCH),
            F.struct(
                F.col(f"{change}.problem").isNotNull().alias("wrong"),
                F.col(EPOCH).alias("epoch"),
                F.col(f"{change}.order").alias("order"),
                diff.alias("diff"),
            ).alias("_at"),
            # What a key had before it was deleted does not matter.
            F.when(diff > 0, F.xxhash64(*facts)).otherwise(0).alias("_content"),
            F.col(f"{change}.problem").alias("problem"),
        )
        by = Window.partitionBy(*keys, EPOCH).orderBy(F.desc("_at"), F.desc("_content"))
        ranked = ranked.select(
            "*",
            F.row_number().over(by).alias("_rank"),
            F.lead("_at").over(by).alias("_next_at"),
            F.lead("_content").over(by).alias("_next_content"),
        ).where("_rank = 1")
        is_tie = F.col("_at").eqNullSafe(F.col("_next_at")) & (F.col("_content") != F.col("_next_content"))
        tie = F.lit(
            f"another change of its key has the same place in the order ({', '.join(self.order)}), and "
            "another row, so nothing says which of both is the last"
        )
        problem = F.coalesce("problem", F.when(is_tie, tie))
        its_diff = F.when(problem.isNull(), F.col("_at.diff"))
        values = [F.when(F.col("_at.diff") > 0, F.col(one)).alias(one) for one in columns if one not in keys]
        named = dict(zip([one for one in columns if one not in keys], values, strict=True))
        rows = ranked.select(
            *(named.get(one, F.col(one)) for one in columns),
            EPOCH,
            its_diff.alias(DIFF),
            problem.alias("problem"),
        )
        if condensed:
            rows = rows.where((F.col(EPOCH) > last) | (F.col(DIFF) > 0) | F.col(DIFF).isNull())
        return rows

    def error_in(self, rows: DataFrame, inner: Mapping[str, str]) -> InputFormatError | None:
        """Return the error of the rows that `last_changes` has returned; None if there is none. Costs a job
        of Spark, and one more for a feed without a key.
        """
        wrong = rows.where(F.col("problem").isNotNull())
        shown = wrong.limit(1).collect()
        if shown:
            names = {new: old for old, new in inner.items()}
            row = {names[one]: value for one, value in shown[0].asDict().items() if one in names}
            told = ", ".join(f"{name} {value!r}" for name, value in row.items())[:_SHOWN_CHARS]
            count = counted(wrong.count(), "change")
            return InputFormatError(
                f"input {self.name!r}: {count} of the feed cannot be taken, the first because "
                f"{shown[0]['problem']}. It is about: {told}"
            )
        return None

    def check_updates(self, dated: DataFrame) -> None:
        """Raise `InputFormatError` if a feed without a key has, in an epoch, more updates than rows before
        them. Costs a job of Spark.
        """
        if self.key:
            return
        kind = F.col(f"{quoted(self.change)}.kind")
        sums = dated.groupBy(EPOCH).agg(
            (F.count_if(kind == "update") - F.count_if(kind == "before")).alias("more")
        )
        for epoch, more in sums.where("more > 0").orderBy(EPOCH).limit(1).collect():
            raise InputFormatError(
                f"input {self.name!r}: {counted(more, 'update')} of epoch {epoch} of the feed without the "
                "row before: the input knows no key by which to find it. Write "
                "change_feed(df, key='id', …), or let the feed have the rows before in the same epoch"
            )
