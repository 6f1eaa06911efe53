"""What to write here for a method that other libraries have on their tables."""

from __future__ import annotations

from typing import Final

__all__ = ["explain"]

_GROUP: Final = "group_by('key').agg(n=dd.count(), total=dd.sum('x'))"
_ORDER: Final = "order_by(col.x.desc(), 'y').limit(10); a collection has no order"
_READ: Final = "a dataflow is built here, not run; name it by .output('name') and read flow.output('name')"
_CHANGES: Final = "a collection changes with its input by itself; nothing has to be kept or asked for anew"
_SPELLINGS: Final = {
    **dict.fromkeys(("groupBy", "groupby"), "group_by('key')"),
    **dict.fromkeys(("agg", "count", "sum", "min", "max", "reduce", "aggregate"), _GROUP),
    **dict.fromkeys(("mean", "avg", "median", "quantile", "std", "var", "describe", "summary"), _GROUP),
    **dict.fromkeys(("query", "remove"), "filter(col.x > 1)"),
    **dict.fromkeys(("with_column", "assign", "with_columns_seq"), "with_columns(name=col.x + 1)"),
    **dict.fromkeys(("append", "vstack", "merge_sorted", "extend"), "concat(other)"),
    **dict.fromkeys(("select_seq", "selectExpr", "sql", "to", "toDF"), "select('kept', name=col.x + 1)"),
    **dict.fromkeys(("fillna", "fill_nan", "na"), "with_columns(x=col.x.fill_null(0))"),
    **dict.fromkeys(("cast", "replace"), "with_columns(x=col.x.cast('int'))"),
    **dict.fromkeys(("orderBy", "sort", "sort_values", "limit", "head", "nlargest"), _ORDER),
    **dict.fromkeys(
        ("bottom_k", "tail", "take", "first", "last", "slice", "offset", "reverse", "shift"), _ORDER
    ),
    **dict.fromkeys(("with_row_index", "sortWithinPartitions", "gather_every"), _ORDER),
    **dict.fromkeys(("collect", "show", "to_pandas", "toPandas", "to_arrow", "write", "fetch"), _READ),
    **dict.fromkeys(("foreach", "isEmpty", "toLocalIterator", "writeStream", "sink_parquet", "lazy"), _READ),
    **dict.fromkeys(("cache", "persist", "unpersist", "checkpoint", "localCheckpoint"), _CHANGES),
    **dict.fromkeys(("repartition", "coalesce", "repartitionByRange", "hint"), _CHANGES),
    "merge": "join(other, on='key', how='left')",
    "join_where": "cross_join(other).filter(col.x < col.y), or join(other, on='key', where=col.x < col.y)",
    "update": "concat(other), and group_by('key') with an aggregate that chooses",
    **dict.fromkeys(("mapInArrow", "mapInPandas", "map_rows"), "map_batches(fn, schema), or map(fn, schema)"),
    **dict.fromkeys(
        ("alias", "createOrReplaceTempView", "lazyframe"), "a name in Python: later = collection"
    ),
    **dict.fromkeys(
        ("unpivot", "melt", "pivot", "transpose", "unnest"), "flat_map(fn, schema), or select(…)"
    ),
    "minus": "subtract(other)",
    "flatMap": "flat_map(fn, schema)",
    **dict.fromkeys(("columns", "dtypes", "printSchema", "collect_schema", "width"), "schema.names"),
}


def explain(kind: str, name: str, groups: bool = False) -> str:
    """The message of the `AttributeError` for `name`, which a `kind` of thing does not have."""
    if groups and name in _SPELLINGS:
        return f"{kind} has no {name!r}. Write agg(n=dd.count(), total=dd.sum('x')) or reduce(fn, schema)"
    if name in _SPELLINGS:
        return f"{kind} has no {name!r}. Write instead: {_SPELLINGS[name]}"
    return f"{kind} has no {name!r}"
