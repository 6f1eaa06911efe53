"""A second client of one incarnation: it changes, seals and reads dataflows of the program until it loses
that incarnation, even after a later one has begun. What it was told and shown must hold all the same.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from timely.client.cluster import Cluster
from timely.errors import InputClosedError, MisuseError, PeerError, StoreError, TimelyError

from .batches import columns_of
from .baton import SimulatedProcess
from .machine import Machine

if TYPE_CHECKING:
    from .program import Running

__all__ = ["Stranger"]

_ACTIONS_MAX = 25


class Stranger:
    """The client of the newest incarnation of a machine; `running` returns the dataflows that there are."""

    def __init__(
        self,
        machine: Machine,
        running: Callable[[], Sequence[Running]],
        seed: int,
        new_tag: Callable[[], int],
    ) -> None:
        self._machine = machine
        self._running = running
        self._random = random.Random(seed)
        self._new_tag = new_tag
        self._name = f"stranger of {machine.cluster.number}"
        self._sequence = 0
        self._is_over = False
        self.acknowledged = 0
        self.echoes: list[Callable[[Cluster], None]] = []
        """Calls of the program that this client repeats at the same time."""
        self.cluster = machine.cluster
        self._connect = machine.connect
        self.turn = machine.baton.start(SimulatedProcess(self._name), "client", self._run)

    def end(self) -> None:
        """Do no more than what is under way."""
        self._is_over = True

    def _run(self) -> None:
        try:
            cluster = Cluster(self._connect())
            for _ in range(_ACTIONS_MAX):
                if self._is_over:
                    return
                self._machine.baton.wait_until(lambda: bool(self.echoes), self._random.random() / 1_000)
                if self.echoes:
                    self._repeat(cluster, self.echoes.pop())
                elif choice := self._running():
                    self._act(cluster, self._random.choice(choice))
        except PeerError:
            pass  # this incarnation is over
        except StoreError:
            pass  # the disk fails as it connects

    def _repeat(self, cluster: Cluster, call: Callable[[Cluster], None]) -> None:
        try:
            call(cluster)
        except StoreError:
            pass
        except TimelyError as error:
            if isinstance(error, PeerError) or not (
                error.ends_dataflow or isinstance(error, InputClosedError)
            ):
                raise

    def _act(self, cluster: Cluster, each: Running) -> None:
        try:
            if self._random.random() < 0.5:
                (self._append if self._random.random() < 0.4 else self._insert)(cluster, each)
            elif self._random.random() < 0.3 and each.takes_only_rows and not each.kind.reads:
                self._seal(cluster, each)
            else:
                self._read(cluster, each)
        except (PeerError, AssertionError):
            raise
        except StoreError:
            pass  # the disk fails: in doubt
        except TimelyError as error:
            # It was uninstalled, or an input was closed; or it was installed in a later incarnation.
            is_unknown = isinstance(error, MisuseError) and f"has no dataflow {each.flow.index}" in str(error)
            is_old = self.cluster is not self._machine.cluster
            if not (error.ends_dataflow or isinstance(error, InputClosedError) or (is_old and is_unknown)):
                raise

    def _insert(self, cluster: Cluster, each: Running) -> None:
        names = [name for name, rows in each.kind.inputs.items() if rows.takes in ("rows", "records")]
        if not names:
            return
        name = self._random.choice(names)
        rows = each.kind.inputs[name]
        flow = cluster.flow(each.flow.index)
        made = [rows.row(self._random, self._new_tag()) for _ in range(self._random.choice([1, 3]))]
        call = each.history.begin(name, rows.takes, [(row, 1) for row in made], flow.epoch)
        self._sequence += 1
        values: list[object] = [*made]
        epoch = flow.input(name).insert(values, writer=self._name, sequence=self._sequence)
        call.acknowledge(epoch)
        self.acknowledged += 1

    def _append(self, cluster: Cluster, each: Running) -> None:
        """Rows that go to any worker."""
        names = [name for name, rows in each.kind.inputs.items() if rows.takes == "rows"]
        if not names or each.kind.name == "anything":
            return
        name = self._random.choice(names)
        flow = cluster.flow(each.flow.index)
        made = [each.kind.inputs[name].row(self._random, self._new_tag()) for _ in range(2)]
        epochs = [flow.epoch + self._random.randrange(2) for _ in made]
        call = each.history.begin(name, "rows", [(row, 1) for row in made], flow.epoch, epochs)
        table = pa.table({**columns_of(flow, name, made), "epoch": epochs, "diff": [1] * len(made)})
        self._sequence += 1
        flow.input(name).append(table, epoch="epoch", writer=self._name, sequence=self._sequence)
        call.acknowledge(max(epochs))
        self.acknowledged += 1

    def _seal(self, cluster: Cluster, each: Running) -> None:
        flow = cluster.flow(each.flow.index)
        each.history.sealed = max(each.history.sealed, flow.seal())

    def _read(self, cluster: Cluster, each: Running) -> None:
        if each.kind.reads:
            return
        flow = cluster.flow(each.flow.index)
        output = flow.output(self._random.choice(flow.outputs))
        stop = output.complete_before()
        if each.as_of < stop < 1_000:
            rows = output.changes(each.as_of, stop)
            each.history.note(output.name, each.as_of, stop, rows, self._name)
