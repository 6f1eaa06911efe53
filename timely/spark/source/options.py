"""What `.option(…)` may say, and what is said where it does not.

    cluster         host:port of a worker, or of several with commas between; one is enough to find the others
    keys            a folder of keys on the driver's host, where workers want them; by default what NAIAD_KEYS
                    names. Tasks are handed the keys with their work
    dataflow        number or name; may be left out where there is only one
    output, input   which of it

    epoch           of a reader: the number of the epoch as of which is read; `sealed`, as it is by default,
                    for the last one that is sealed when the DataFrame or the view is made
    startingEpoch   of a reader: changes from there on, with the columns epoch and diff, in place of the
                    collection; `earliest`: from the first that is kept. Of a stream also `latest`, or
                    `snapshot`, with all rows as of one epoch first
    epochsPerBatch  of a stream: at most so many epochs in a micro-batch
    restarted       of a stream: `refuse`, as it is by default, or `allow` a checkpoint that is of a dataflow
                    before this one, which is fed the same epochs again
    columns         of a reader: only these, with commas between
    where           of a reader: only rows of which this is true, see `where.py`
    timeout         seconds to wait until an epoch is complete, and until a worker is free to answer
    hold            seconds for which what is being read is kept, after it was heard of last

    diff            of a writer: the column that says how often a row is added; without it each is added once
    query           of a writer, or a stream that reads: a name that stays when it is started again
    seal            of a writer: true, as it is by default, if a batch completes its epoch
    gap             of a writer: `refuse`, as it is by default, or `allow` a batch whose predecessors are
                    missing, or were another stream's
    lag             of a writer: how many epochs may be sealed and not computed before it waits; 0: any number

Names are read as Spark does, capitals or not. A name that looks like one of these and is none is refused, and
so is one by which other sources call the same.
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
"""Of an epoch, say: workers take 62 bits."""
_QUERY_CHARS_MAX: Final = NAME_CHARS_MAX - 96
"""It is part of longer names."""
_KNOWN: Final = (
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
"""How Kafka, files, Delta and Iceberg call the same. Let pass, it would be an answer to another question."""


@dataclass(frozen=True)
class SourceOptions:
    """The options of one reader or writer, by name in small letters; each is checked when it is asked for."""

    given: Mapping[str, str]

    @classmethod
    def of(cls, options: Mapping[str, str]) -> SourceOptions:
        """Those that were given; `MisuseError` for a name that is most likely a slip, or another source's."""
        given = {str(name).lower(): str(value) for name, value in options.items()}
        known = {name.lower(): name for name in _KNOWN}
        if path := given.get("path", given.get("paths")):
            raise MisuseError(
                f"naiad reads and writes no path, {path!r}: write .option('output', name) and load(), or "
                ".option('input', name) and save()"
            )
        for name in given:
            close = [known[like] for like in difflib.get_close_matches(name, known, 1, 0.8)]
            meant = _ELSEWHERE.get(name) or next(iter(close), None)
            if name not in known and meant:
                raise MisuseError(f"there is no option {name!r} of naiad: write {meant!r}")
        return cls(given)

    @cached_property
    def cluster(self) -> tuple[str, ...]:
        """The addresses that were given."""
        addresses = tuple(
            part.strip() for part in self.text("cluster", "host:port").split(",") if part.strip()
        )
        if not addresses:
            raise MisuseError("the option 'cluster' is empty: write host:port of a worker")
        return addresses

    def keys(self) -> ClientKeys | None:
        """What this client proves itself by; read from the folder each time, so that no options hold it."""
        return client_keys(self.given.get("keys"))

    def flow_in(self, cluster: Cluster) -> Flow:
        """The dataflow that is meant, or the only one that there is."""
        named = self.given.get("dataflow", "").strip()
        if named:
            return cluster.flow(self._whole("dataflow", named) if named.isdecimal() else named)
        flows = cluster.flows()
        if len(flows) == 1:
            return cluster.flow(next(iter(flows)))
        listed = ", ".join(f"{index} ({spec})" for index, spec in flows.items()) or "none"
        raise MisuseError(f"the option 'dataflow' says which of several is meant; there are {listed}")

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are asked for; none: all."""
        return tuple(part.strip() for part in self.given.get("columns", "").split(",") if part.strip())

    def conditions(self, schema: pa.Schema) -> Conditions:
        """What rows with the columns `schema` are asked for; none: all."""
        text = self.given.get("where", "").strip()
        return conditions(text, schema) if text else []

    @property
    def timeout_seconds(self) -> float:
        """How long to wait for an epoch."""
        return self._number("timeout", REPLY_SECONDS_MAX, float("inf"))

    @property
    def hold_seconds(self) -> float:
        """How long what is read is kept after the last sign of life."""
        return self._number("hold", HOLD_SECONDS_DEFAULT, READER_SECONDS_MAX)

    @property
    def query(self) -> str:
        """The name under which batches are counted, if one was given."""
        name = self.given.get("query", "").strip()
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
        """True or false."""
        value = self.given.get(name.lower(), str(default)).strip().lower()
        if value not in ("true", "false"):
            raise MisuseError(f"the option {name!r} is true or false, not {value!r}")
        return value == "true"

    def choice(self, name: str, words: tuple[str, ...]) -> str:
        """One of `words`; the first one if nothing is said."""
        value = self.given.get(name.lower(), words[0]).strip().lower()
        if value not in words:
            raise MisuseError(f"the option {name!r} is {' or '.join(map(repr, words))}, not {value!r}")
        return value

    def count(self, name: str, default: int) -> int:
        """A whole number, 0 or more."""
        value = self.given.get(name.lower(), str(default)).strip()
        if not value.isdecimal():
            raise MisuseError(f"the option {name!r} is a whole number, 0 or more, not {value!r:.60}")
        return self._whole(name, value)

    def text(self, name: str, example: str) -> str:
        """An option that has to be there."""
        value = self.given.get(name.lower(), "").strip()
        if not value:
            raise MisuseError(f"the option {name!r} is missing: write .option({name!r}, {example!r})")
        return value

    def epoch(self, name: str, default: str, words: tuple[str, ...]) -> int | str:
        """A number of an epoch, or one of `words`."""
        value = self.given.get(name.lower(), default).strip().lower()
        if value in words:
            return value
        if not value.isdecimal():
            others = "".join(f" or {word!r}" for word in words)
            raise MisuseError(f"the option {name!r} is the number of an epoch{others}, not {value!r:.60}")
        return self._whole(name, value)

    def _whole(self, name: str, digits: str) -> int:
        """The number, unless it is too large for what workers are asked, or for Python to read."""
        digits = digits.lstrip("0") or "0"
        if len(digits) > len(str(_NUMBER_MAX)) or int(digits) > _NUMBER_MAX:
            raise MisuseError(
                f"the option {name!r} is a number of at most {_NUMBER_MAX}, not {digits[:30]}"
                + "…" * (len(digits) > 30)
            )
        return int(digits)

    def _number(self, name: str, default: float, maximum: float) -> float:
        value = self.given.get(name)
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
