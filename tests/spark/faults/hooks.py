"""The points that the driver passes in `timely.spark.run`: functions of it, wrapped by their names.

    written    the rows of a batch are kept          sent       executors have sent them
    arrived    before an epoch is sealed             sealed     behind that
    answered   before changes go to the sinks        staged     before the rename that commits them
    committed  behind that                           done       before Spark hears that the batch is done
    append, appended    in tasks: before and behind each of several appends of an epoch

They are there in this program only: nothing of it is in the packages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import timely
from timely.spark.delivering import EpochFeed
from timely.spark.jobs import feeding, following, micro_batches
from timely.spark.output_folder import OutputFolder
from timely.spark.scheduled.starting import ScheduledCluster

from .striking import Strikes, Watched

__all__ = ["wrap_all"]

_ROWS_PER_APPEND = 4

_Where = Callable[[Sequence[object], Mapping[str, object]], range]
"""From the arguments of a call to the epochs that it is about."""


def wrap_all(current: Callable[[], Strikes]) -> None:
    """Have the faults strike that are `current` when a point is passed."""
    _wrap(current, micro_batches._Follower, "_write", _at(2), after="written")
    _wrap(current, micro_batches._Follower, "__call__", _at(2), after="done")
    _wrap(current, feeding.Layout, "send", _chunk, after="sent")
    _wrap(current, timely.Flow, "seal", _sealed, before="arrived", after="sealed")
    _wrap(current, following.AnswerFeed, "_hand_on", _at(1), before="answered")
    _wrap(current, OutputFolder, "publish", _at(2), before="staged", after="committed")
    vars(feeding)["EpochFeed"] = partial(EpochFeed, rows_per_append=_ROWS_PER_APPEND)
    for kind in (timely.Cluster, ScheduledCluster):
        _watch_targets(current, kind)


def _watch_targets(current: Callable[[], Strikes], kind: type[timely.Cluster]) -> None:
    opens = kind.append_target

    def append_target(cluster: timely.Cluster, dataflow: int = 0) -> Watched:
        return Watched(opens(cluster, dataflow), current())

    setattr(kind, "append_target", append_target)  # noqa: B010  mypy knows that it is a method


def _wrap(
    current: Callable[[], Strikes],
    owner: type,
    name: str,
    epochs: _Where,
    before: str = "",
    after: str = "",
) -> None:
    wrapped = getattr(owner, name)

    def passing(*given: object, **named: object) -> object:
        where = epochs(given, named)
        current().at(before, where)
        result = wrapped(*given, **named)
        current().at(after, where)
        return result

    setattr(owner, name, passing)


def _at(place: int) -> _Where:
    """One of the arguments is the epoch."""

    def epochs(given: Sequence[object], named: Mapping[str, object]) -> range:
        epoch = given[place]
        assert isinstance(epoch, int)
        return range(epoch, epoch + 1)

    return epochs


def _chunk(given: Sequence[object], named: Mapping[str, object]) -> range:
    chunk = given[1]
    assert isinstance(chunk, range)
    return chunk


def _sealed(given: Sequence[object], named: Mapping[str, object]) -> range:
    through = named.get("through", -1)  # jobs say which; who compiles kernels before them seals as it comes
    assert isinstance(through, int)
    return range(max(0, through), through + 1)
