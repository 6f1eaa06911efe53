"""From a text to its results. `differential` knows SQL; it is loaded by its name, when there is a text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, cast

from ...building.builders import load_function
from ...errors import MisuseError
from .results import SqlChanges, SqlResult

__all__ = ["results_of"]

_STATEMENTS: Final = "differential.relational.statements.session:run"


def results_of(
    cluster: object,
    text: str,
    dialect: str,
    parameters: Mapping[str, object],
    timeout: float | None,
    name: str = "<sql>",
) -> Iterator[SqlResult | SqlChanges]:
    """Carry a script out, and yield the result of each statement. Nothing is done before all are read.

    `name` stands in errors before line and column.
    """
    handed_in: object = text
    if not isinstance(handed_in, str):
        raise MisuseError(f"cluster.sql takes a text, 'select …', not {handed_in!r:.80}")
    run = load_function(_STATEMENTS, "SQL")
    return cast("Iterator[SqlResult | SqlChanges]", run(cluster, text, dialect, parameters, timeout, name))
