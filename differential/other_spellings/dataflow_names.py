"""Names that differential dataflow (Rust) and Naiad have for collections, and what to write.

`table.py` takes them into the table of all libraries.
"""

from __future__ import annotations

from typing import Final

from timely.user_code.spellings import Same

__all__ = ["COLLECTIONS_OF_DATAFLOWS", "FUNCTIONS_OF_DATAFLOWS"]

_LOOP: Final = (
    "iterate(body), or dd.iterate for several collections: the body may use other collections as they are"
)
_STREAM: Final = "stream(), the changes as a stream of pairs (row, diff)"
_BY_KEY: Final = "arrange('key'), where it is to be kept; operators arrange what they need by themselves"
_JOIN: Final = "join(other, on='key'), then select(…) or map(function, schema)"
_GROUP: Final = "group_by('key').agg(n=dd.count()), or group_by('key').reduce(function, schema)"
_READ: Final = "output('name'), and read flow.output('name')"
_MOVED: Final = "nothing: operators bring rows with equal keys together by themselves; of a stream, exchange"
_OF_DATAFLOW: Final = "that of the dataflow: a collection is made by dd.input(dataflow, name, schema)"

COLLECTIONS_OF_DATAFLOWS: Final[dict[str, str | Same]] = {
    "concatenate": Same("concat"),
    "SelectMany": Same("flat_map"),
    "Except": Same("except_all"),
    **dict.fromkeys(
        ("as_collection", "AsCollection"), "the collection itself; of a stream dd.collection(stream, schema)"
    ),
    "inner": _STREAM,
    **dict.fromkeys(
        ("capture", "exchange", "broadcast", "probe", "probe_with"), f"stream(), which has it: {_STREAM}"
    ),
    **dict.fromkeys(("enter", "enter_at", "leave", "enter_region", "leave_region", "lift", "rescope"), _LOOP),
    **dict.fromkeys(
        ("FixedPoint", "GeneralFixedPoint", "EnterLoop", "ExitLoop", "scope", "results_in"), _LOOP
    ),
    **dict.fromkeys(("inspect_batch", "inspect_container", "Monitor"), "inspect(function)"),
    **dict.fromkeys(
        ("map_in_place", "join_function", "flat_map_ref"), "map(function, schema), flat_map(function, schema)"
    ),
    "assert_eq": Same("assert_equal"),
    **dict.fromkeys(("reduce_named", "reduce_abelian", "reduce_core", "CoGroupBy"), _GROUP),
    **dict.fromkeys(("count_core", "count_total", "LongCount"), "group_by('key').count()"),
    **dict.fromkeys(("distinct_core", "distinct_total"), "distinct()"),
    **dict.fromkeys(("threshold_named", "threshold_total", "threshold_semigroup"), "threshold(function)"),
    **dict.fromkeys(("consolidate_named", "consolidate_stream"), "consolidate()"),
    **dict.fromkeys(("arrange_by_key", "arrange_by_self", "arrange_named", "arrange_core"), _BY_KEY),
    **dict.fromkeys(("arrange_by_key_named", "arrange_by_self_named"), _BY_KEY),
    **dict.fromkeys(("join_map", "join_core"), _JOIN),
    **dict.fromkeys(
        ("import", "import_named", "replay"),
        "dd.imported(dataflow, 'owner', 'name', schema), of what export(name) lets others read",
    ),
    **dict.fromkeys(("Subscribe", "result"), _READ),
    "PartitionBy": _MOVED,
    "Abs": "distinct()",
    **dict.fromkeys(("activator", "unordered_input", "activate", "notificator"), _OF_DATAFLOW),
}

FUNCTIONS_OF_DATAFLOWS: Final[dict[str, str | Same]] = {
    **dict.fromkeys(("Variable", "VecVariable", "loop"), "collection.iterate(body), or dd.iterate"),
    **dict.fromkeys(("AsCollection", "as_collection"), "dd.collection(stream, schema), of pairs (row, diff)"),
    **dict.fromkeys(("Arranged", "Arrange", "TraceAgent", "Cursor"), "collection.arrange('key')"),
    **dict.fromkeys(
        ("InputSession", "new_collection", "new_collection_from"), "dd.input(dataflow, name, schema)"
    ),
    **dict.fromkeys(
        ("upsert", "arrange_from_upsert"), "dd.input(dataflow, name, schema, mode='upsert', key='x')"
    ),
    "import_": "dd.imported(dataflow, 'owner', 'name', schema), of what collection.export(name) offers",
    **dict.fromkeys(
        ("Semigroup", "Monoid", "Abelian", "Present", "Threshold"),
        "nothing: a row is there a whole number of times; sums of columns are dd.sum('x')",
    ),
    **dict.fromkeys(("Lattice", "Pair", "Hashable"), "nothing: times are tuples, rows go by their values"),
}
