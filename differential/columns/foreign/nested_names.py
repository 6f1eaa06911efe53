"""The parts of the type of a nested value, as texts, Arrow, Spark or Polars write it.

    array<T>  list<T>            T is the type of the elements
    map<K, V>                    the keys, never null, and the values
    struct<a: T, `b c`: U>       the fields; a name with other characters than letters, digits and _ stands
                                 between backticks, and a backtick in it is written twice

A question mark behind the type of a part allows nulls there. Arrow, Spark and Polars say of each part whether
it may be null; most often it may.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, Generic, Literal, NamedTuple, TypeAlias, TypeVar, cast

import pyarrow as pa

__all__ = [
    "Nested",
    "NestedKind",
    "field_text",
    "nested_arrow",
    "nested_object",
    "nested_parts",
    "split_outside",
]

NestedKind: TypeAlias = Literal["array", "struct", "map"]
P = TypeVar("P")


class Nested(NamedTuple, Generic[P]):
    """A kind of nested value and its parts; `names`: those of the fields of a struct."""

    kind: NestedKind
    parts: list[P]
    names: tuple[str, ...] = ()


_FORM: Final = re.compile(r"\s*(array|list|struct|map)\s*<(.*)>\s*", re.DOTALL | re.IGNORECASE)
_FIELD: Final = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([^\s:`<>,]+))\s*(?::|\s)\s*(.+?)\s*", re.DOTALL)
_ITEM: Final = re.compile(r"\s*(?:item|element)\s*:(.+?)(not null)?\s*", re.DOTALL | re.IGNORECASE)
_PLAIN: Final = re.compile(r"[^\W\d]\w*")
_OPENING: Final = "(<[{"
_CLOSING: Final = ")>]}"


def split_outside(text: str) -> Iterator[str]:
    """Yield the parts of `text` between its commas, but for commas in brackets and between backticks."""
    depth, start, quoted = 0, 0, False
    for place, letter in enumerate(text):
        if letter == "`":
            quoted = not quoted
        elif quoted:
            continue
        elif letter in _OPENING:
            depth += 1
        elif letter in _CLOSING:
            depth -= 1
        elif letter == "," and depth <= 0:
            yield text[start:place]
            start = place + 1
    yield text[start:]


def field_text(name: str, type_: object) -> str:
    """Return a field of a struct as `nested_parts` reads it."""
    written = name if _PLAIN.fullmatch(name) else f"`{name.replace('`', '``')}`"
    return f"{written}: {type_}"


def nested_parts(text: str) -> Nested[str] | None:
    """Return the texts of the parts of a nested type; None if the text is no such type."""
    form = _FORM.fullmatch(text)
    if form is None:
        return None
    kind = form[1].lower()
    parts = list(split_outside(form[2]))
    if kind in ("array", "list"):
        item = _ITEM.fullmatch(form[2])
        if item is not None:  # as Arrow prints it
            return Nested("array", [item[1] + ("" if item[2] else "?")])
        return Nested("array", parts) if len(parts) == 1 else None
    if kind == "map":
        return Nested("map", parts) if len(parts) == 2 else None
    fields = [_FIELD.fullmatch(part) for part in parts]
    if any(field is None for field in fields):
        return None
    matched = [field for field in fields if field is not None]
    names = tuple(field[1].replace("``", "`") if field[1] is not None else field[2] for field in matched)
    return Nested("struct", [field[3] for field in matched], names)


def nested_arrow(arrow: pa.DataType) -> Nested[tuple[pa.DataType, bool]]:
    """Return the types of the parts of a nested type of Arrow, and whether each may be null."""
    if pa.types.is_map(arrow):
        value = arrow.item_field
        return Nested("map", [(arrow.key_type, False), (value.type, value.nullable)])
    if pa.types.is_struct(arrow):
        fields = list(arrow)
        return Nested(
            "struct", [(field.type, field.nullable) for field in fields], tuple(f.name for f in fields)
        )
    value = getattr(arrow, "value_field", None)
    return Nested("array", [] if value is None else [(value.type, value.nullable)])  # no parts: a union


def nested_object(spec: object) -> Nested[tuple[object, bool]] | None:
    """Return the same for a nested type of Spark or Polars; None for any other object."""
    package = type(spec).__module__.partition(".")[0]
    name = type(spec).__name__
    if package == "pyspark":
        return _of_spark(spec, name)
    if package != "polars":
        return None
    if name in ("List", "Array") and hasattr(spec, "inner"):
        return Nested("array", [(spec.inner, True)])
    fields = getattr(spec, "fields", None)
    if name == "Struct" and isinstance(fields, list):
        return Nested(
            "struct", [(field.dtype, True) for field in fields], tuple(field.name for field in fields)
        )
    return None


def _of_spark(spec: object, name: str) -> Nested[tuple[object, bool]] | None:
    def part(of: str, null: str) -> tuple[object, bool]:
        return cast("object", getattr(spec, of)), bool(getattr(spec, null))

    if name == "ArrayType":
        return Nested("array", [part("elementType", "containsNull")])
    if name == "MapType":
        return Nested(
            "map", [(part("keyType", "valueContainsNull")[0], False), part("valueType", "valueContainsNull")]
        )
    if name == "StructType":
        fields = cast("list[object]", getattr(spec, "fields", []))
        parts = [
            (cast("object", getattr(field, "dataType", None)), bool(getattr(field, "nullable", True)))
            for field in fields
        ]
        return Nested("struct", parts, tuple(str(getattr(field, "name", "")) for field in fields))
    return None
