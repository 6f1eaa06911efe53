"""An installed dataflow that tells about itself: what it keeps, how its loops go, and what holds an epoch."""

from __future__ import annotations

import pyarrow as pa

from ...user_code.html_tables import ShownText
from ...user_code.short_traces import in_short
from ...wire.requests import Describe, Probe, Stats, Why
from ..installed import Installed
from ..reading import epoch_of
from .arrangements import arrangements_of
from .iterations import iterations_of
from .probing import FlowProbe
from .retained import RetainedReport, retained_of
from .running_plan import running_plan
from .why import EpochReport

__all__ = ["Reported"]


@in_short
class Reported(Installed):
    """The reports of `Flow`."""

    def why(self, epoch: int | None = None) -> EpochReport:
        """Return what holds `epoch`, by default the last sealed one, if it is not complete: `print` shows it,
        the likeliest cause first.

        Each worker answers, also in the middle of a long call. This does no work, changes nothing, and takes
        about a second at most: if a worker does not answer, the report says so. Raise the error that has
        ended the dataflow, if one has.
        """
        return self.report(max(0, self.epoch - 1) if epoch is None else epoch_of(epoch, "why(epoch)"))

    def why_retained(self) -> RetainedReport:
        """Return which arrangements and outputs keep more history than they would if nothing were
        outstanding, and what holds each: `print` shows it in a few lines.

        An arrangement distinguishes times that one of its readers may still ask about. It cannot sum up what
        is later than the earliest of these. So what holds it is what holds that epoch in front of the reader:
        an open input, a capability, an import. An output keeps changes that a client has not read yet. This
        does no work, changes nothing, and takes about a second at most.
        """
        epoch = max(0, self.epoch - 1)
        return retained_of(self.name, self._workers.reasons(Why(self.index, epoch, retained=True)))

    def probe(self, name: str) -> FlowProbe:
        """Return the probe that the dataflow has placed by `Dataflow.probe(name, stream)`; raise
        `MisuseError` if there is none.
        """
        self.ask_first(Probe(self.index, name))
        return FlowProbe(self, name)

    def explain(self, *, analyze: bool = False) -> str:
        """Return the stages that run: what each reads, in which loop it is, and the line that wrote it.

        With `analyze=True` also what each has done since the dataflow was installed, all workers together:
        the seconds that it has worked, the skew (how much longer the worker that worked longest took than the
        mean of all), the rows that wait in front of it, those that it keeps, and those that came to it. If
        one worker does most of the work of a stage that matters, the last lines say so. The plan as it was
        written, and as the rules have left it, is `dd.explain(dataflow)` of the one that is being built.
        """
        number = self.ask_first(Describe(self.index)).integer("dataflow")  # differs if it was replaced
        return ShownText(running_plan(self.ask_all(Stats()), number, analyze=analyze))

    def arrangements(self) -> pa.Table:
        """Return the arrangements that operators of the dataflow share, and which reader holds them back.

        One row for each operator that reads an arrangement, on each worker: `worker`, `arrangement` (the
        stage that keeps it), `loop` (the name of its loop, as in `iterations`; empty outside of loops),
        `rows` and `bytes` of the arrangement, `reader`, `hold` (the times that the reader may still ask
        about), `lag` (inserts that it has not accepted; null if it reads by time) and `holds_back`: true if
        the times of its hold are the least of all, so that nothing before them is compacted until it moves
        on.
        """
        number = self.ask_first(Describe(self.index)).integer("dataflow")  # differs if it was replaced
        return arrangements_of(self.ask_all(Stats()), number)

    def iterations(self, loop: str | None = None) -> pa.Table:
        """Return how many rows went round in the loops of the dataflow, or in the loop of that name.

        One row for each epoch and iteration that rows entered: `loop`, `epoch`, `around` (the iterations of
        the loops around it), `iteration`, and `rows`: the changed rows, both added and removed ones, on all
        workers. Workers count as they send, and keep the last 1,024 times of each of the loop's variables. If
        several epochs are computed at once, rows count for the first epoch of their message. Raise
        `MisuseError` if there is no such loop.
        """
        number = self.ask_first(Describe(self.index)).integer("dataflow")  # differs if it was replaced
        return iterations_of(self.ask_all(Stats()), number, loop)
