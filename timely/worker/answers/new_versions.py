"""Answers to `Replace`: a new version takes the place of a dataflow.

In a durable cluster a client may ask again, since it has not heard the answer. Then the dataflow is what it
asks for, or is about to be, and there is nothing to do but wait.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...building.builders import build_dataflow, load_builder
from ...building.freeze import FrozenDataflow
from ...errors import MisuseError, TimelyError, WaitTimeoutError
from ...limits import INSTALL_SECONDS_MAX
from ...running.core import Worker
from ...running.instance import Instance
from ...wire.requests import Reply
from ..installation import Installations
from .later import Later, now_or_later

__all__ = ["NewVersions"]


class NewVersions:
    """The replacements that clients ask worker 0 for.

    Args:
        worker: the worker.
        installations: builds new versions.
        clock: seconds, only their differences count.
        describe: describes a dataflow that has begun by this builder.
    """

    def __init__(
        self,
        worker: Worker,
        installations: Installations,
        clock: Callable[[], float],
        describe: Callable[[Instance, str], Reply],
    ) -> None:
        self._worker = worker
        self._installations = installations
        self._replacements = installations.replacements
        self._clock = clock
        self._describe = describe

    def check_replaceable(self, dataflow: int) -> int:
        """Return the number of the version that has the inputs of `dataflow` now; raise `MisuseError` if it
        cannot be replaced.
        """
        current = self._replacements.inputs_of(dataflow)
        instance = self._worker.instance(current)
        if self._installations.is_replaced(current):
            raise MisuseError(f"dataflow {current} ({instance.frozen.name}) is being replaced: wait for that")
        self._replacements.check_replaceable(instance)
        coming = [
            one for one in self._installations.importers(current) if one.index not in self._worker.instances
        ]
        if coming:
            listed = ", ".join(f"{one.index} ({one.frozen.name})" for one in coming)
            raise MisuseError(
                f"dataflow {current} ({instance.frozen.name}) cannot be replaced: it is about to be read by "
                f"dataflow {listed}"
            )
        return current

    def is_there(self, dataflow: int, frozen: FrozenDataflow) -> bool:
        """Return True if `dataflow` was replaced by what `frozen` is."""
        current = self._replacements.inputs_of(dataflow)
        instance = self._worker.instances.get(current)
        is_other = current != dataflow and instance is not None
        return is_other and instance is not None and instance.frozen.fingerprint == frozen.fingerprint

    def asked_before(
        self, dataflow: int, spec: str, arguments: Mapping[str, object], seconds: float
    ) -> Reply | Later | None:
        """Return the answer if the same was asked for before, in a durable cluster; None if it was not."""
        current = self._replacements.inputs_of(dataflow)
        new = self._installations.version_asked_for(current, spec, arguments)
        if new is None and current != dataflow:
            frozen = build_dataflow(load_builder(spec), spec, arguments).freeze()
            new = current if self.is_there(dataflow, frozen) else None
        return None if new is None else self.answer(new, spec, seconds)

    def answer(self, new: int, spec: str, seconds: float) -> Reply | Later:
        """Answer once the new version has taken the place of the old one on all workers."""
        built_by = self._clock() + INSTALL_SECONDS_MAX
        installations, replacements = self._installations, self._replacements

        def ready() -> Reply | None:
            instance = installations.outcome(new)
            if instance is None and self._clock() > built_by:
                installations.give_up(new)
            if instance is None or replacements.is_under_way(new):
                return None
            return self._describe(instance, spec)

        def late() -> TimelyError:
            if replacements.is_switched(new):
                return WaitTimeoutError(f"dataflow {new} has the inputs by now, and will have the outputs")
            error = WaitTimeoutError(
                f"dataflow {new} ({spec}) has not caught up in time with the one that it was to replace: "
                "that goes on as before"
            )
            if installations.is_awaited(new) and new in self._worker.instances:
                self._worker.fail(new, error)
            else:
                installations.give_up(new)
            return error

        return now_or_later(ready, late, self._clock(), seconds)
