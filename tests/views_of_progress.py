"""Is a worker's view of progress ever ahead of the truth?

The truth is what all workers have counted so far, heard or not. Where it has something outstanding, no
worker's view of a port behind it may be past the epoch. Written apart from the tracker: counts in a
dictionary, ways along connectors, one comparison for each pair. It works with regions as well, of whose
inside nothing is counted: the predicates of each message (`reference/rules`) have nothing to look at there.
"""

from __future__ import annotations

from collections import Counter

from reference.dataflow import Cluster


class Views:
    """Looks at the views of all workers of a cluster whenever one has acted."""

    def __init__(self, cluster: Cluster) -> None:
        self.looked = 0
        """At how many pairs of a view and something outstanding."""
        self._cluster = cluster
        first = cluster.instances[0]
        self._shift = first.frozen.layout.shifts[0]
        stages, connectors = len(first.frozen.stages), first.frozen.connectors
        leads_to: dict[int, set[tuple[int, int]]] = {}
        """By location: the inputs of stages that may hear of it."""
        for location in range(stages + len(connectors)):
            found: set[tuple[int, int]] = set()
            met: set[int] = set()
            at = [location]
            while at:
                place = at.pop()
                if place in met:
                    continue
                met.add(place)
                if place < stages:
                    at += [stages + spec.index for spec in connectors if spec.source == place]
                else:
                    spec = connectors[place - stages]
                    found.add((spec.target, spec.port))
                    at.append(spec.target)
            leads_to[location] = found
        self._leads_to = leads_to
        self._truth: Counter[tuple[int, int]] = Counter()
        for location, word, count in first.tracker.counts():
            self._truth[location, first.anchor.epoch + (word >> self._shift)] += count
        for index, worker in enumerate(cluster.workers):
            told = worker._tell_all

            def tells(
                dataflow: int, changes: list[tuple[int, int, int]], index: int = index, told: object = told
            ) -> None:
                self._note(index, changes)
                told(dataflow, changes)  # type: ignore[operator]

            worker._tell_all = tells  # type: ignore[method-assign]
        cluster.watch = self._look

    def _note(self, index: int, changes: list[tuple[int, int, int]]) -> None:
        anchor = self._cluster.instances[index].anchor.epoch
        for location, word, delta in changes:
            self._truth[location, anchor + (word >> self._shift)] += delta

    def _look(self) -> None:
        outstanding: dict[tuple[int, int], int] = {}
        for (location, epoch), count in self._truth.items():
            # Less than nothing: it was taken up before its sender ended the step in which it was sent.
            if count > 0:
                for behind in self._leads_to[location]:
                    outstanding[behind] = min(epoch, outstanding.get(behind, epoch))
        for instance in self._cluster.instances:
            for (stage, port), epoch in outstanding.items():
                frontier = instance.tracker.frontier(instance.runners[stage].ports[port])
                assert frontier.shape[0], f"worker {instance.worker}: input {port} of {stage} has ended"
                seen = instance.anchor.epoch + min(int(word) >> self._shift for word in frontier)
                assert seen <= epoch, (
                    f"worker {instance.worker} sees epoch {seen} at input {port} of stage {stage}, "
                    f"and epoch {epoch} is outstanding"
                )
                self.looked += 1
