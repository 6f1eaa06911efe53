"""One round with a durable cluster: clients that do what they like, mishaps one after another, and a verdict.

Everything that is decided follows from the seed of the round; how processes take turns does not.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from functools import cache

from two_hosts import can_have_namespaces

from ..model import WrongAnswer
from ..queries import QUERIES
from .judge import Judge
from .mishaps import MISHAPS, Mishaps
from .scene import Scene

__all__ = ["DurableRound", "DurableVerdict"]

_has_networks = cache(can_have_namespaces)

_DISK_MEGABYTES = 96
_STANDBY_SHARE = 0.4


@dataclass
class DurableVerdict:
    """What a round was, and what was checked."""

    title: str
    faults: int
    epochs: int
    operations: int
    what: str


class DurableRound:
    """One round, decided by its seed.

    Args:
        seed: of the round.
        faults: how many mishaps happen, one after another.
        kind: "embedded", "threads", "processes", "server", or "hosts", where the machine has networks to
            give; by default the seed decides.
        mishaps: which; by default the seed decides.
        standby: others follow the worker processes; by default the seed decides.
    """

    def __init__(
        self,
        seed: int,
        faults: int = 4,
        kind: str | None = None,
        mishaps: list[str] | None = None,
        standby: bool | None = None,
    ) -> None:
        self.seed = seed
        self.choose = choose = random.Random(f"{seed} durable")
        chosen = choose.choice(
            ["embedded", "threads", "processes", "processes", "server", "server", "server", "hosts"]
        )
        if chosen == "hosts" and not _has_networks():
            chosen = "server"
        self.kind = kind or chosen
        self.workers = choose.choice([1, 2, 2, 3])
        self.sync = choose.choice(["disk", "disk", "system"])
        may_stand_by = self.kind in ("processes", "server")
        by_seed = may_stand_by and random.Random(f"{seed} standby").random() < _STANDBY_SHARE
        self.standby = by_seed if standby is None else standby
        self.queries = choose.sample(QUERIES, choose.randint(1, 2))
        self.mishaps = mishaps or [choose.choice(MISHAPS[self.kind]) for _ in range(faults)]

    @property
    def title(self) -> str:
        """What it is about."""
        names = ", ".join(query.name for query in self.queries)
        who = f"{self.workers} workers{', others stand by' if self.standby else ''}, {self.kind}"
        return f"{who}, sync {self.sync}: {names}; {', then '.join(self.mishaps)}"

    def run(self) -> DurableVerdict:
        """All of it; raises what went wrong."""
        judge = Judge(self.queries)
        scene = Scene(self.kind, self.seed, self.workers, self.sync, judge, self.standby)
        left: list[str] = []
        try:
            if any(name.startswith("full") for name in self.mishaps):
                scene.mount(_DISK_MEGABYTES)
            self._play(scene)
        except BaseException as error:
            error.add_note(f"what processes have said last:\n{scene.last_errors()}")
            raise
        finally:
            left = scene.close()
        if left:
            raise WrongAnswer(f"the processes {left} were left behind")
        epochs = sum(model.check() for model in judge.models)
        operations = sum(len(model.operations) for model in judge.models)
        what = f"{judge.took} of {operations} insertions answered, {scene.lives} programs"
        return DurableVerdict(self.title, len(self.mishaps), epochs, operations, what)

    def _play(self, scene: Scene) -> None:
        mishaps = Mishaps(scene, self.choose)
        scene.start()
        for name in self.mishaps:
            self._work(scene, self.choose.uniform(0.1, 0.8))
            mishaps.let(name)
        self._work(scene, 0.3)
        if self.choose.random() < 0.5:
            scene.end_all("kill")
            scene.workers = self.choose.choice([1, 2, 3])
            scene.start()
        scene.end_all("finish")
        # What was shown stays, for other workers, too: the last program reads all from the first epoch.
        scene.workers = scene.workers % 3 + 1
        scene.start()
        scene.end_all("finish")

    def _work(self, scene: Scene, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            scene.check()
            time.sleep(0.02)
