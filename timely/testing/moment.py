"""What a dataflow has put out, and what its vertices keep, at one moment of a test."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import pyarrow as pa

from progress.errors import MisuseError

from ..client.tables import records_of
from ..operators.capture import FOREVER
from ..operators.vertex import Vertex
from ..running.instance import Instance
from ..wire.frames.record_values import pack_value, unpack_value
from .acts import vertex_of

__all__ = ["Moment", "Outputs", "difference", "outputs_as_written"]

Outputs: TypeAlias = dict[str, list[tuple[object, ...]]]
"""By output, the sorted (epoch, record), or of a collection (epoch, row, diff), of all workers."""

_SHOWN_MAX = 4


class Moment:
    """What is there on all workers. Look, and change nothing: the same vertices are looked at again."""

    def __init__(self, instances: Sequence[Instance]) -> None:
        self._instances = list(instances)

    @property
    def workers(self) -> int:
        """The number of workers."""
        return len(self._instances)

    def vertices(self, stage: str) -> list[Vertex]:
        """Return the vertices of a stage, by worker."""
        return [vertex_of(instance, stage) for instance in self._instances]

    def complete_before(self, output: str) -> int:
        """Return the first epoch of an output that is not complete on all workers; what clients read is
        before it.
        """
        return min(instance.output(output).complete_before for instance in self._instances)

    def changes(self, output: str) -> list[tuple[object, ...]]:
        """Return what clients can read of an output now: (epoch, record) of its complete epochs, sorted; or
        (epoch, row, diff), if it is one of a collection.
        """
        before = min(self.complete_before(output), FOREVER)
        tables = [instance.output(output).log.changes(0, before) for instance in self._instances]
        return _sorted(_entries(tables))

    def outputs(self) -> Outputs:
        """Return the changes of all outputs by name."""
        return {name: self.changes(name) for name in self._instances[0].frozen.outputs}


def _entries(tables: Sequence[pa.Table]) -> list[tuple[object, ...]]:
    if "record" in tables[0].column_names:
        return [entry for table in tables for entry in records_of(table)]
    counts: Counter[tuple[object, object]] = Counter()
    for table in tables:
        columns = [column.to_pylist() for column in table.columns]
        for *row, epoch, diff in zip(*columns, strict=True):
            counts[epoch, tuple(row)] += diff
    return [(epoch, row, count) for (epoch, row), count in counts.items() if count]


def outputs_as_written(expected: Mapping[str, Iterable[object]]) -> Outputs:
    """Return outputs that a user has written down as those of a run: as another worker would get them."""
    outputs: Outputs = {}
    for name, entries in expected.items():
        outputs[name] = []
        for entry in entries:
            if not isinstance(entry, (tuple, list)) or not entry or type(entry[0]) is not int:
                raise MisuseError(
                    f"output {name!r} is expected to have {entry!r:.80}: write (epoch, record), or for a "
                    "collection (epoch, row, diff)"
                )
            outputs[name].append(tuple(unpack_value(pack_value(part)) for part in entry))
        outputs[name] = _sorted(outputs[name])
    return outputs


def difference(outputs: Outputs, expected: Outputs) -> str:
    """Return in which way outputs are not the expected ones; an empty text if they are. Outputs that are not
    expected at all may have anything.
    """
    for name, entries in expected.items():
        if name not in outputs:
            raise MisuseError(f"no output {name!r}: there are {sorted(outputs) or 'none'}")
        have, want = Counter(map(repr, outputs[name])), Counter(map(repr, entries))
        missing, more = list((want - have).elements()), list((have - want).elements())
        if missing or more:
            parts = [f"lacks {_listed(missing)}"] if missing else []
            parts += [f"has {_listed(more)} too much"] if more else []
            return f"output {name!r} {' and '.join(parts)}"
    return ""


def _listed(entries: Sequence[str]) -> str:
    rest = len(entries) - _SHOWN_MAX
    return ", ".join(entries[:_SHOWN_MAX]) + (f" and {rest} more" if rest > 0 else "")


def _sorted(entries: Iterable[tuple[object, ...]]) -> list[tuple[object, ...]]:
    return sorted(entries, key=lambda entry: (entry[0], repr(entry)))
