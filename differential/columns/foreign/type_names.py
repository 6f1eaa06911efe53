"""Which kind of column does a type of another library mean?

Names are read as text, so that their libraries need not be installed: Spark's (`bigint`, `decimal(10,2)`),
SQL's (`varchar(20)`), Arrow's as it prints them (`large_string`), Polars' and pandas' dtypes (`Int64`,
`datetime64[ns, UTC]`). Types of nested values are in `nested_names.py`; words without a type of the parts
(`array`, `list`), and types with parts that no column holds, are `any`.
"""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple, TypeAlias

import pyarrow as pa

from differential.columns.foreign.nested_names import NestedKind, nested_arrow, nested_object, nested_parts

__all__ = ["Kind", "Named", "kind_of_arrow", "kind_of_name", "kind_of_object", "type_text"]

Kind: TypeAlias = Literal[
    "int", "float", "decimal", "bool", "date", "timestamp", "string", "bytes", "any", "array", "struct", "map"
]


class Named(NamedTuple):
    """A kind of column, and the digits of a decimal: all, and those behind the point.

    `parts`: the types of the elements of an array, of the fields of a struct (`names`), of the keys and the
    values of a map. `nullable`: whether a part may be null.
    """

    kind: Kind
    precision: int = 0
    scale: int = 0
    parts: tuple[Named, ...] = ()
    names: tuple[str, ...] = ()
    nullable: bool = False


_NAMES: Final[dict[str, Kind]] = {
    **dict.fromkeys(("int", "integer", "bigint", "long", "int64", "int32", "int16", "int8"), "int"),
    **dict.fromkeys(("smallint", "short", "tinyint", "byte", "uint64", "uint32", "uint16", "uint8"), "int"),
    **dict.fromkeys(("float", "double", "real", "float64", "float32", "halffloat", "float16"), "float"),
    **dict.fromkeys(("bool", "boolean"), "bool"),
    **dict.fromkeys(("date", "date32", "date64"), "date"),
    **dict.fromkeys(("timestamp", "timestamp_ntz", "timestamp_ltz", "timestamptz", "datetime"), "timestamp"),
    **dict.fromkeys(("string", "str", "text", "utf8", "large_string", "string_view"), "string"),
    **dict.fromkeys(("varchar", "char", "category", "categorical", "enum"), "string"),
    **dict.fromkeys(("bytes", "binary", "large_binary", "binary_view", "fixed_size_binary", "blob"), "bytes"),
    **dict.fromkeys(("any", "object", "variant", "array", "list", "large_list", "struct", "map"), "any"),
}
_WITH_PARTS: Final = ("array", "list", "struct", "map")
_DECIMALS: Final = ("decimal", "numeric", "decimal32", "decimal64", "decimal128", "decimal256", "number")
_SPARK_DECIMAL: Final = (10, 0)
_FORM: Final = re.compile(r"([a-z_]\w*)\s*(.*)", re.DOTALL)
_DIGITS: Final = re.compile(r"\(\s*(?:precision\s*=\s*)?(\d+)\s*(?:,\s*(?:scale\s*=\s*)?(\d+)\s*)?\)")


def kind_of_name(name: str) -> Named | None:
    """Return the kind called `name`; None if there is no such name."""
    nested = nested_parts(name)
    if nested is not None:
        return _nested(nested.kind, [_part_of_name(part) for part in nested.parts], nested.names)
    form = _FORM.fullmatch(name.strip().lower())
    if form is None:
        return None
    word, rest = form.groups()
    if word in _DECIMALS:
        digits = _DIGITS.fullmatch(rest)
        if digits is None:
            return None if rest else Named("decimal", *_SPARK_DECIMAL)
        return Named("decimal", int(digits[1]), int(digits[2] or 0))
    if word == "datetime64":  # numpy's and pandas', with a unit behind it
        return Named("timestamp")
    if word == "dictionary":
        inner = re.match(r"<values=([^,]+),", rest)
        return kind_of_name(inner[1]) if inner is not None else None
    kind = _NAMES.get(word)
    if word in _WITH_PARTS and rest.startswith("<"):
        return None  # `nested_parts` would have read it
    if kind is None or (rest and rest[0] not in "([<"):
        return None
    return Named(kind)


def kind_of_arrow(arrow: pa.DataType) -> Named | None:
    """Return the kind that takes an Arrow type; None if none takes it without a cast."""
    if pa.types.is_dictionary(arrow):
        return kind_of_arrow(arrow.value_type)
    if pa.types.is_decimal(arrow):
        return Named("decimal", arrow.precision, arrow.scale)
    if pa.types.is_nested(arrow):
        nested = nested_arrow(arrow)
        parts = [_or_null(kind_of_arrow(part), null) for part, null in nested.parts]
        return _nested(nested.kind, parts, nested.names)
    return kind_of_name(str(arrow))


def kind_of_object(spec: object) -> Named | None:
    """Return the kind that a nested type of Spark or Polars means; None for any other object."""
    arrow = getattr(spec, "pyarrow_dtype", None)  # of pandas
    if isinstance(arrow, pa.DataType):
        return kind_of_arrow(arrow)
    nested = nested_object(spec)
    if nested is None:
        return None
    parts = [_or_null(_kind_of_part(part), null) for part, null in nested.parts]
    return _nested(nested.kind, parts, nested.names)


def _kind_of_part(spec: object) -> Named | None:
    named = kind_of_object(spec)
    text = type_text(spec) if named is None else None
    return named if text is None else kind_of_name(text)


def _part_of_name(text: str) -> Named | None:
    bare = text.strip()
    return _or_null(kind_of_name(bare.rstrip("?")), bare.endswith("?"))


def _or_null(named: Named | None, nullable: bool) -> Named | None:
    return None if named is None else named._replace(nullable=nullable)


def _nested(kind: NestedKind, parts: list[Named | None], names: tuple[str, ...]) -> Named:
    """Return a nested kind; `any` if no column holds one of its parts, or if a key of its maps has parts."""
    typed = [part for part in parts if part is not None and part.kind != "any"]
    if len(typed) < len(parts) or not typed or (kind == "map" and typed[0].parts):
        return Named("any")
    if kind == "map":
        typed[0] = typed[0]._replace(nullable=False)
    return Named(kind, parts=tuple(typed), names=names)


def type_text(spec: object) -> str | None:
    """Return the name of a type of Spark, Polars, numpy or pandas; None for anything else."""
    for method in ("simpleString", "typeName"):  # Spark's types, and their classes
        name_of = getattr(spec, method, None)
        if callable(name_of):
            try:
                return str(name_of())
            except TypeError:
                continue
    module = (spec if isinstance(spec, type) else type(spec)).__module__.partition(".")[0]
    if module in ("polars", "numpy", "pandas"):
        categories = getattr(spec, "categories", None)
        inner = getattr(categories, "dtype", None) if module == "pandas" else None
        if inner is not None and str(inner) != "object":
            return str(inner)
        return spec.__name__ if module == "numpy" and isinstance(spec, type) else str(spec)
    return None
