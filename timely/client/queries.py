"""From what a user installs to a builder: a function of a dataflow or of collections, or collections.

`differential` writes queries, and nothing of `timely` imports it: what is needed of it is loaded by its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from inspect import signature
from typing import Final, cast

from ..building.builders import Builder, is_marked, load_function
from ..building.dataflow import Dataflow
from ..errors import MisuseError
from ..wire.requests import Value

__all__ = ["query_of"]

_QUERIES: Final = "differential.queries"


def query_of(
    call: str, build: object, inputs: object, arguments: dict[str, Value]
) -> tuple[str | Builder, dict[str, Value]]:
    """Return the builder of a query, or its name, and its arguments. `call` is what the user has called.

    Raises MisuseError for what is no query, or does not fit the schemas `inputs`.
    """
    values = dict(arguments)
    if inputs is not None:  # a builder has an argument of that name, and refuses it otherwise
        values["inputs"] = inputs
    if isinstance(build, str) or is_marked(build):
        return cast("str | Builder", build), values
    if callable(build):
        if inputs is None or _has_argument(build, inputs):
            return build, values
        return _of_collections(call, build, inputs, arguments), {}
    if _is_written(build):
        if values:
            raise MisuseError(
                f"{call} takes collections that are written already without {', '.join(values)}: they have "
                "their inputs"
            )
        return cast("Builder", load_function(f"{_QUERIES}:again", "a query")(build)), values
    raise MisuseError(
        f"{call} takes a function of a dataflow, as def query(flow): …, or 'module:function', or a function "
        f"of collections and inputs={{'edges': 'src: int, dst: int'}}, not {build!r:.80}"
    )


def _has_argument(build: Builder, inputs: object) -> bool:
    """Return True if `inputs` is an argument of a builder, and not the schemas of a query's collections."""
    if isinstance(inputs, Mapping) and "inputs" in inputs:  # a collection of that name
        return False
    try:
        return "inputs" in signature(build).parameters
    except (TypeError, ValueError):  # some functions of C do not tell their parameters
        return False


def _of_collections(call: str, query: Builder, inputs: object, arguments: Mapping[str, Value]) -> Builder:
    if not isinstance(inputs, Mapping) or not inputs:
        raise MisuseError(
            f"{call}(…, inputs={inputs!r:.80}) takes schemas by name: "
            "inputs={'edges': 'src: int, dst: int'}"
        )
    if twice := [name for name in arguments if name in inputs]:
        raise MisuseError(f"{call}: {', '.join(twice)} cannot be an input and an argument")
    if arguments:
        name = getattr(query, "__name__", "query")
        query = partial(query, **arguments)
        query.__name__ = name  # type: ignore[attr-defined]
    return cast("Builder", load_function(f"{_QUERIES}:as_builder", "a query")(query, inputs))


def _is_written(query: object) -> bool:
    """Return True if these are collections."""
    parts: list[object] = [query]
    if isinstance(query, Mapping):
        parts = list(query.values())
    elif isinstance(query, tuple | list):
        parts = list(query)
    return bool(parts) and all(
        callable(getattr(type(part), "output", None)) and not isinstance(part, Dataflow) for part in parts
    )
