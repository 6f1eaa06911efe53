"""The options of `.option(…)`, and their defaults.

    cluster         host:port of a worker, or of several, comma-separated; one is enough to find the others
    keys            a folder of keys on the driver's host, if workers need them; by default the one that
                    NAIAD_KEYS names. Tasks get the keys with their work
    dataflow        number or name; may be left out if there is only one
    output, input   the name of an output to read, or of an input to write

    epoch           reader: the number of the epoch as of which to read; `sealed`, the default: the last epoch
                    that is sealed when the DataFrame or the view is made
    startingEpoch   reader: read changes from this epoch on, with the columns epoch and diff, in place of the
                    collection; `earliest`: from the first epoch still there. Streams also take `latest`, and
                    `snapshot`, which begins with all rows as of one epoch
    epochsPerBatch  stream: the largest number of epochs in a micro-batch
    restarted       stream: `refuse`, the default, or `allow` a checkpoint of an earlier dataflow, whose
                    epochs this one is fed again
    columns         reader: only these columns, comma-separated
    where           reader: only rows that fulfil this condition, see `where.py`
    timeout         seconds to wait until an epoch is complete, and until a worker is free to answer
    hold            seconds for which workers keep the epochs being read after they last heard of the reader

    diff            writer: the column with how often a row is added; without it each row is added once
    query           writer, or stream that reads: a name that stays the same when it is started again
    seal            writer: true, the default, if a batch completes its epoch
    gap             writer: `refuse`, the default, or `allow` a batch whose predecessors are missing, or were
                    another stream's
    lag             writer: how many epochs may be sealed and not computed before it waits; 0: any number

As in Spark, names ignore case. A name that resembles one of these is refused, and so is another source's name
for one of them.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import pyarrow as pa

from timely.client.cluster import Cluster
from timely.client.session import Flow
from timely.errors import MisuseError
from timely.keys import ClientKeys
from timely.keys.folder import client_keys
from timely.limits import HOLD_SECONDS_DEFAULT, NAME_CHARS_MAX, READER_SECONDS_MAX, REPLY_SECONDS_MAX
from timely.spark.source.where import Conditions, conditions
from timely.wire.requests import WRITES_ONCE

__all__ = ["COLLECTION", "EARLIEST", "LATEST", "SEALED", "SNAPSHOT", "SourceOptions"]

SEALED: Final = "sealed"
COLLECTION: Final = "collection"
EARLIEST: Final = "earliest"
LATEST: Final = "latest"
SNAPSHOT: Final = "snapshot"
_NUMBER_MAX: Final = 1 << 61
"""The largest number, such as that of an epoch: workers take 62 bits."""
_QUERY_CHARS_MAX: Final = NAME_CHARS_MAX - 96
"""The longest name of a query, which is part of longer names."""
_NAMES: Final = (
    "cluster",
    "keys",
    "dataflow",
    "output",
    "input",
    "epoch",
    "startingEpoch",
    "epochsPerBatch",
    "restarted",
    "columns",
    "where",
    "timeout",
    "hold",
    "diff",
    "query",
    "seal",
    "gap",
    "lag",
)
_ELSEWHERE: Final = {
    **dict.fromkeys(("startingoffsets", "startingversion", "startingtimestamp"), "startingEpoch"),
    **dict.fromkeys(("readchangefeed", "readchangedata"), "startingEpoch"),
    **dict.fromkeys(("versionasof", "timestampasof", "snapshot-id", "endingoffsets"), "epoch"),
    **dict.fromkeys(("filter", "filters", "condition", "predicate", "predicates", "replacewhere"), "where"),
    **dict.fromkeys(("maxoffsetspertrigger", "maxfilespertrigger", "maxbytespertrigger"), "epochsPerBatch"),
}
"""Names of the same options in Kafka, files, Delta and Iceberg. If they were ignored, the answer would be
wrong.
"""


@dataclass(frozen=True)
class SourceOptions:
    """The options of one reader or writer, by lower-case name; each is checked when it is read."""

    values: Mapping[str, str]

    @classmethod
    def of(cls, options: Mapping[str, str]) -> SourceOptions:
        """Return the options; raises `MisuseError` for a name that is most likely a typo, or another
        source's.
        """
        values = {str(name).lower(): str(value) for name, value in options.items()}
        names = {name.lower(): name for name in _NAMES}
        if path := values.get("path", values.get("paths")):
            raise MisuseError(
                f"naiad reads and writes no path, {path!r}: write .option('output', name) and load(), or "
                ".option('input', name) and save()"
            )
        for name in values:
            close = [names[like] for like in difflib.get_close_matches(name, names, 1, 0.8)]
            meant = _ELSEWHERE.get(name) or next(iter(close), None)
            if name not in names and meant:
                raise MisuseError(f"there is no option {name!r} of naiad: write {meant!r}")
        return cls(values)

    @cached_property
    def cluster(self) -> tuple[str, ...]:
        """The addresses of the option `cluster`."""
        addresses = tuple(
            part.strip() for part in self.text("cluster", "host:port").split(",") if part.strip()
        )
        if not addresses:
            raise MisuseError("the option 'cluster' is empty: write host:port of a worker")
        return addresses

    def keys(self) -> ClientKeys | None:
        """Return the keys of this client. They are read from the folder each time, so that no options
        hold them.
        """
        return client_keys(self.values.get("keys"))

    def flow_in(self, cluster: Cluster) -> Flow:
        """Return the dataflow that the option names, or the only one that there is."""
        named = self.values.get("dataflow", "").strip()
        if named:
            return cluster.flow(self._whole("dataflow", named) if named.isdecimal() else named)
        flows = cluster.flows()
        if len(flows) == 1:
            return cluster.flow(next(iter(flows)))
        listed = ", ".join(f"{index} ({spec})" for index, spec in flows.items()) or "none"
        raise MisuseError(f"the option 'dataflow' says which of several is meant; there are {listed}")

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns to read; empty: all."""
        return tuple(part.strip() for part in self.values.get("columns", "").split(",") if part.strip())

    def conditions(self, schema: pa.Schema) -> Conditions:
        """Return the conditions of `where` on rows with the columns `schema`; empty: none."""
        text = self.values.get("where", "").strip()
        return conditions(text, schema) if text else []

    @property
    def timeout_seconds(self) -> float:
        """How long to wait for an epoch."""
        return self._number("timeout", REPLY_SECONDS_MAX, float("inf"))

    @property
    def hold_seconds(self) -> float:
        """How long workers keep the epochs being read after the last sign of life."""
        return self._number("hold", HOLD_SECONDS_DEFAULT, READER_SECONDS_MAX)

    @property
    def query(self) -> str:
        """The name under which batches are counted; empty without the option."""
        name = self.values.get("query", "").strip()
        if name.startswith(WRITES_ONCE):
            raise MisuseError(
                f"the option 'query' begins with {WRITES_ONCE!r}, which stands for writing without a name"
            )
        if len(name) > _QUERY_CHARS_MAX:
            raise MisuseError(
                f"the option 'query' is a name of at most {_QUERY_CHARS_MAX:,} characters, not of "
                f"{len(name):,}"
            )
        return name

    def flag(self, name: str, default: bool) -> bool:
        """Return an option that is true or false."""
        value = self.values.get(name.lower(), str(default)).strip().lower()
        if value not in ("true", "false"):
            raise MisuseError(f"the option {name!r} is true or false, not {value!r}")
        return value == "true"

    def choice(self, name: str, words: tuple[str, ...]) -> str:
        """Return an option that is one of `words`; the first one by default."""
        value = self.values.get(name.lower(), words[0]).strip().lower()
        if value not in words:
            raise MisuseError(f"the option {name!r} is {' or '.join(map(repr, words))}, not {value!r}")
        return value

    def count(self, name: str, default: int) -> int:
        """Return an option that is a whole number, 0 or more."""
        value = self.values.get(name.lower(), str(default)).strip()
        if not value.isdecimal():
            raise MisuseError(f"the option {name!r} is a whole number, 0 or more, not {value!r:.60}")
        return self._whole(name, value)

    def text(self, name: str, example: str) -> str:
        """Return an option that has to be there."""
        value = self.values.get(name.lower(), "").strip()
        if not value:
            raise MisuseError(f"the option {name!r} is missing: write .option({name!r}, {example!r})")
        return value

    def epoch(self, name: str, default: str, words: tuple[str, ...]) -> int | str:
        """Return an option that is the number of an epoch, or one of `words`."""
        value = self.values.get(name.lower(), default).strip().lower()
        if value in words:
            return value
        if not value.isdecimal():
            others = "".join(f" or {word!r}" for word in words)
            raise MisuseError(f"the option {name!r} is the number of an epoch{others}, not {value!r:.60}")
        return self._whole(name, value)

    def _whole(self, name: str, digits: str) -> int:
        """Return the number; raises `MisuseError` if it is too large for requests, or for Python to read."""
        digits = digits.lstrip("0") or "0"
        if len(digits) > len(str(_NUMBER_MAX)) or int(digits) > _NUMBER_MAX:
            raise MisuseError(
                f"the option {name!r} is a number of at most {_NUMBER_MAX}, not {digits[:30]}"
                + "…" * (len(digits) > 30)
            )
        return int(digits)

    def _number(self, name: str, default: float, maximum: float) -> float:
        value = self.values.get(name)
        if value is None:
            return default
        try:
            number = float(value)
        except ValueError:
            number = -1.0
        if not 0 <= number <= maximum:
            bound = "" if maximum == float("inf") else f", at most {maximum:g}"
            raise MisuseError(f"the option {name!r} is a number of seconds{bound}, not {value!r:.60}")
        return number
