"""Parts of nested values: elements and keys of lists and maps, and what a path finds in a text of JSON.

A path of `get_json_object` is `$`, followed by any number of `.name`, `['name']` and `[number]`, which are
those of Spark that have at most one result; `*` and `..` are refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, NoReturn, cast

from differential.columns.column_types import any_value, string
from differential.columns.symbols.packing import pack
from differential.expressions.functions.function import Function, Param, Python, always

__all__ = ["PARTS"]

_LIST: Final = Param("x", ("any",))
_STEP: Final = re.compile(r"\.([^.\[\]'*]+)|\['([^']+)'\]|\[([0-9]{1,18})\]")


def _element_at(value: object, constants: Sequence[object]) -> object:
    key = constants[0]
    if isinstance(value, dict):
        return cast("Mapping[object, object]", value).get(key)
    if not isinstance(value, tuple) or not isinstance(key, int) or not 1 <= abs(key) <= len(value):
        return None
    return cast("object", value[key - 1 if key > 0 else key])


def _check_index(constants: Sequence[object]) -> None:
    if constants[0] == 0:
        raise ValueError("elements are counted from 1, or with -1 from the end; there is no element 0")


def _sort_array(value: object, constants: Sequence[object]) -> object:
    """Return the list in order; None unless its values are numbers alone, or texts, or bytes."""
    if not isinstance(value, tuple):
        return None
    is_ascending = not constants or bool(constants[0])
    present = [part for part in value if part is not None]
    kinds = {"number" if type(part) in (int, float) else type(part).__name__ for part in present}
    if len(kinds) > 1 or not kinds <= {"number", "str", "bytes", "bool"}:
        return None
    nulls = [None] * (len(value) - len(present))
    # Equal numbers of two types (1, 1.0) have an order, too, or the result would depend on that of the list.
    in_order = sorted(
        present, key=lambda part: (part != part, 0 if part != part else part, pack(part)),
        reverse=not is_ascending,
    )  # fmt: skip
    return (*nulls, *in_order) if is_ascending else (*in_order, *nulls)


def _map_keys(value: object, constants: Sequence[object]) -> object:
    return tuple(cast("Mapping[object, object]", value)) if isinstance(value, dict) else None


def _map_values(value: object, constants: Sequence[object]) -> object:
    return tuple(cast("Mapping[object, object]", value).values()) if isinstance(value, dict) else None


@lru_cache(maxsize=256)
def _path_steps(path: str) -> tuple[str | int, ...]:
    """Return the names and numbers of a path; raises ValueError for one that is not of this form."""
    steps: list[str | int] = []
    place = 1
    while path.startswith("$") and place < len(path):
        match = _STEP.match(path, place)
        if match is None:
            break
        steps.append(int(match[3]) if match[3] is not None else match[1] or match[2])
        place = match.end()
    if not path.startswith("$") or place < len(path):
        raise ValueError(f"{path!r} is no path of the form $.name, $['name'] or $[0], or several of these")
    return tuple(steps)


def _check_path(constants: Sequence[object]) -> None:
    _path_steps(cast("str", constants[0]))


def _first_of_each(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return an object of JSON; of a name that it has twice, the first counts, as in Spark."""
    first: dict[str, object] = {}
    for name, value in pairs:
        first.setdefault(name, value)
    return first


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _get_json_object(text: object, constants: Sequence[object]) -> object:
    try:
        value: object = json.loads(
            cast("str", text), object_pairs_hook=_first_of_each, parse_constant=_refuse
        )
        for step in _path_steps(cast("str", constants[0])):
            if isinstance(value, dict) and isinstance(step, str):
                value = cast("dict[str, object]", value).get(step)
            elif isinstance(value, list) and isinstance(step, int) and step < len(value):
                value = cast("list[object]", value)[step]
            else:
                return None
        if value is None:
            return None
        result = (
            value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        )
        result.encode()  # half of a pair of surrogates is JSON, but no text
    except (ValueError, RecursionError):
        return None
    return result


def _nested(name: str, params: tuple[Param, ...], run: Python, says: str, polars: str = "") -> Function:
    return Function(
        name=name, family="lists and maps", accessor="list", params=(_LIST, *params),
        gives=always(any_value), says=says, spark=name, polars=polars, python=run, may_lack=True,
    )  # fmt: skip


PARTS: Final = (
    Function(name="element_at", family="lists and maps", accessor="list",
             params=(_LIST, Param("key", ("string", "int"), is_constant=True)), gives=always(any_value),
             python=_element_at, may_lack=True, check=_check_index, spark="try_element_at",
             says="The value of a list at `key`, counted from 1, or from the end if negative; of a map under "
             "`key`; null if there is none."),
    _nested("sort_array", (Param("ascending", ("bool",), is_constant=True, is_optional=True),), _sort_array,
            "A list of numbers, or of texts, in order; null is least, NaN greatest.", "list.sort"),
    _nested("map_keys", (), _map_keys, "The keys of a map, as a list."),
    _nested("map_values", (), _map_values, "The values of a map, as a list."),
    Function(name="get_json_object", family="lists and maps", accessor="str",
             params=(Param("text", ("string",)), Param("path", ("string",), is_constant=True)),
             gives=always(string), python=_get_json_object, may_lack=True, check=_check_path,
             says="What is in a text of JSON at a path as '$.name[0]', as text; null if there is nothing.",
             spark="get_json_object", polars="str.json_path_match"),
)  # fmt: skip
"""The functions that this file defines. Where the value is no list (or map), the result is null."""
