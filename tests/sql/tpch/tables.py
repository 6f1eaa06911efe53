"""The eight tables of TPC-H: their columns, and how they are read.

Money is whole cents, discounts and taxes are per cent, so that all sums are exact; dates are dates. Comments
and addresses that no query reads are left out.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import pyarrow as pa

import differential as dd
from differential import Collection, Schema
from timely.building.dataflow import Dataflow

__all__ = ["SCHEMAS", "Tables", "inputs", "load"]

_FIELDS: dict[str, dict[int, str]] = {
    "region": {0: "r_regionkey: int", 1: "r_name: string"},
    "nation": {0: "n_nationkey: int", 1: "n_name: string", 2: "n_regionkey: int"},
    "supplier": {
        0: "s_suppkey: int",
        1: "s_name: string",
        3: "s_nationkey: int",
        5: "s_acctbal: int",
        6: "s_comment: string",
    },
    "customer": {
        0: "c_custkey: int",
        1: "c_name: string",
        3: "c_nationkey: int",
        4: "c_phone: string",
        5: "c_acctbal: int",
        6: "c_mktsegment: string",
    },
    "part": {
        0: "p_partkey: int",
        1: "p_name: string",
        2: "p_mfgr: string",
        3: "p_brand: string",
        4: "p_type: string",
        5: "p_size: int",
        6: "p_container: string",
    },
    "partsupp": {0: "ps_partkey: int", 1: "ps_suppkey: int", 2: "ps_availqty: int", 3: "ps_supplycost: int"},
    "orders": {
        0: "o_orderkey: int",
        1: "o_custkey: int",
        2: "o_orderstatus: string",
        3: "o_totalprice: int",
        4: "o_orderdate: date",
        5: "o_orderpriority: string",
        7: "o_shippriority: int",
        8: "o_comment: string",
    },
    "lineitem": {
        0: "l_orderkey: int",
        1: "l_partkey: int",
        2: "l_suppkey: int",
        3: "l_linenumber: int",
        4: "l_quantity: int",
        5: "l_extendedprice: int",
        6: "l_discount: int",
        7: "l_tax: int",
        8: "l_returnflag: string",
        9: "l_linestatus: string",
        10: "l_shipdate: date",
        11: "l_commitdate: date",
        12: "l_receiptdate: date",
        13: "l_shipinstruct: string",
        14: "l_shipmode: string",
    },
}
"""Which field of a line each column is."""

SCHEMAS = {name: Schema.of(", ".join(fields.values())) for name, fields in _FIELDS.items()}

_HUNDREDTHS = (
    "s_acctbal",
    "c_acctbal",
    "ps_supplycost",
    "o_totalprice",
    "l_extendedprice",
    "l_discount",
    "l_tax",
)


@dataclass(frozen=True)
class Tables:
    """The tables as collections."""

    region: Collection
    nation: Collection
    supplier: Collection
    customer: Collection
    part: Collection
    partsupp: Collection
    orders: Collection
    lineitem: Collection


def inputs(flow: Dataflow) -> Tables:
    """One input for each table."""
    return Tables(**{name: dd.input(flow, name, schema) for name, schema in SCHEMAS.items()})


def load(folder: Path, name: str) -> pa.Table:
    """A table of the folder, in the types of its schema."""
    with gzip.open(folder / f"{name}.tbl.gz", "rt", newline="") as lines:
        fields = list(zip(*csv.reader(lines, delimiter="|", quoting=csv.QUOTE_NONE), strict=True))
    schema = SCHEMAS[name]
    columns = [
        pa.array(_values(column.name, column.type.kind, fields[place]), field.type)
        for place, column, field in zip(_FIELDS[name], schema, schema.to_arrow(), strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=schema.to_arrow())


def _values(name: str, kind: str, fields: Iterable[str]) -> list[object]:
    if name in _HUNDREDTHS:
        return [int(field.replace(".", "")) for field in fields]
    if kind == "int":
        return [int(field) for field in fields]
    return [date.fromisoformat(field) for field in fields] if kind == "date" else list(fields)
