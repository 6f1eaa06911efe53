"""What to write here for a method that other libraries have on their tables."""

from __future__ import annotations

from typing import Final

__all__ = ["explain"]

_GROUP: Final = "group_by('key').agg(n=dd.count(), total=dd.sum('x'))"
_ORDER: Final = "a collection has no order; look at one group with group_by(…).reduce(fn, schema)"
_READ: Final = "a dataflow is built here, not run; name it by .output('name') and read flow.output('name')"
_SPELLINGS: Final = {
    **dict.fromkeys(("groupBy", "groupby"), "group_by('key')"),
    **dict.fromkeys(("agg", "count", "sum", "min", "max", "reduce", "aggregate"), _GROUP),
    **dict.fromkeys(("where", "query"), "filter(col.x > 1)"),
    **dict.fromkeys(("withColumn", "with_column", "assign"), "with_columns(name=col.x + 1)"),
    **dict.fromkeys(("union", "unionAll", "union_all", "append", "vstack"), "concat(other)"),
    **dict.fromkeys(("dropDuplicates", "drop_duplicates", "unique"), "select(…).distinct()"),
    **dict.fromkeys(("drop", "rename", "withColumnRenamed"), "select('kept', new_name=col.old_name)"),
    **dict.fromkeys(("subtract", "except_", "exceptAll"), "concat(other.negate())"),
    **dict.fromkeys(("orderBy", "order_by", "sort", "sort_values", "limit", "head", "top_k"), _ORDER),
    **dict.fromkeys(("collect", "show", "to_pandas", "toPandas", "to_arrow", "write"), _READ),
    **dict.fromkeys(("merge", "crossJoin"), "join(other, on='key')"),
    "flatMap": "flat_map(fn, schema)",
    "columns": "schema.names",
}


def explain(kind: str, name: str, groups: bool = False) -> str:
    """The message of the `AttributeError` for `name`, which a `kind` of thing does not have."""
    if groups and name in _SPELLINGS:
        return f"{kind} has no {name!r}. Write agg(n=dd.count(), total=dd.sum('x')) or reduce(fn, schema)"
    if name in _SPELLINGS:
        return f"{kind} has no {name!r}. Write instead: {_SPELLINGS[name]}"
    return f"{kind} has no {name!r}"
