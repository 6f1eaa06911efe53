"""The result of a job: the answers as DataFrames.

Without outputs they are in the driver's memory; those of outputs in folders and tables are read from there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NoReturn

from pyspark.sql import DataFrame

from timely.errors import MisuseError
from timely.user_code.offered import Offered
from timely.user_code.short_traces import short_lookup

from .sinks import Sink

__all__ = ["Result"]


class Result(Offered):
    """The answers of `timely.spark.run`, by the names of the query's outputs.

    `epochs`: the number of epochs, None for a stream; `values`: the value of each epoch, or None. `seconds`:
    how long the run has waited, by what it waited for.
    """

    def __init__(
        self,
        sinks: Mapping[str, Sequence[Sink]],
        epochs: int | None = None,
        values: Sequence[object] | None = None,
        seconds: Mapping[str, float] | None = None,
    ) -> None:
        self._sinks = dict(sinks)
        self.epochs = epochs
        self.values = values
        self.seconds = dict(seconds or {})

    @property
    def names(self) -> list[str]:
        """The names of the query's outputs."""
        return list(self._sinks)

    def table(self, name: str | None = None) -> DataFrame:
        """Return the rows of an output as of the last epoch; its name may be left out if there is one only.

        Raises MisuseError if the output went to callbacks alone.
        """
        return self._sink(name).snapshot()

    def changes(self, name: str | None = None) -> DataFrame:
        """Return the change log of an output: its columns, `epoch`, `diff`."""
        return self._sink(name).changes()

    def to_df(self, name: str | None = None) -> DataFrame:
        """Return the same as `table`."""
        return self.table(name)

    if not TYPE_CHECKING:

        @short_lookup
        def __getattr__(self, name: str) -> NoReturn:
            names = list(self.__dict__.get("_sinks", ()))
            if name.startswith("_") or not names or not hasattr(DataFrame, name):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            frame = "to_df()" if len(names) == 1 else f"table({names[0]!r})"
            raise AttributeError(f"an answer has no {name!r}. Its DataFrames have: write {frame}.{name}")

    def __repr__(self) -> str:
        reading = "to_df(), changes()" if len(self._sinks) == 1 else "table(name), changes(name)"
        return f"Result(outputs {', '.join(self._sinks)}; read {reading})"

    def _sink(self, name: str | None) -> Sink:
        if name is None and len(self._sinks) == 1:
            (name,) = self._sinks
        if name is None or name not in self._sinks:
            which = "" if name is None else f", and nothing called {name!r}"
            raise MisuseError(f"the query puts out {', '.join(self._sinks)}{which}: table(name)")
        if not self._sinks[name]:
            raise MisuseError(
                f"output {name!r} went to callbacks alone: name a folder as well, or no outputs to keep it "
                "here"
            )
        return self._sinks[name][0]
