"""How does a new version take the place of a dataflow in a durable cluster, so that a restart has the old
version, or the new one? See `durable/versions.py` for what is in the logs, and `replacing.py` for the course.

Before the switch each worker writes all that the new version goes on with; then nobody needs the old one.
What its outputs held is written, too: its last changes alone would not say by which rows the versions differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...durable.answers.manifest import declare
from ...durable.journal import Journal
from ...durable.past import Past
from ...durable.store import Store
from ...durable.versions import PastSwitch
from ...errors import TimelyError, class_names
from ...failure import full_text_of
from ...operators.outputs.told_failures import told
from ...running.instance import Instance
from ...wire.frames.tables import schema_to_bytes
from ..replacing import changed_forms
from .digests import DigestChecks
from .epochs import DurableEpochs
from .folds.cuts import LogCuts, stored_outputs

__all__ = ["VersionLog"]


class VersionLog:
    """What one worker writes about new versions of dataflows."""

    def __init__(
        self,
        journal: Journal,
        past: Past,
        epochs: DurableEpochs,
        digests: DigestChecks,
        cuts: LogCuts,
        numbers: dict[str, int],
        store: Store,
    ) -> None:
        """`numbers`: of the dataflows that clients find under each name."""
        self._numbers = numbers
        self._store = store
        self._journal = journal
        self._epochs = epochs
        self._digests = digests
        self._cuts = cuts
        self._awaited: list[int] = []
        """Positions of the log that somebody waits for."""
        self._keys: dict[int, tuple[str, tuple[str, ...]]] = {
            flow.number: (flow.key, () if flow.switch is None else flow.switch.keys)
            for flow in past.flows.values()
        }
        """By dataflow: the name under which its first version was installed, and those of later ones."""

    def look(self) -> bool:
        """Return True if the log has told something that somebody waits for."""
        if not self._awaited:  # Fast path: this is called in each turn of the loop.
            return False
        told_now = [position for position in self._awaited if position <= self._journal.log.told]
        self._awaited = [position for position in self._awaited if position > self._journal.log.told]
        return bool(told_now)

    # Names, on worker 0.

    def note_key(self, number: int, key: str, replaces: int = -1) -> str:
        """Note under which name a dataflow is installed, perhaps as a new version; return the name of the
        first version.
        """
        first, later = self._keys.get(replaces, (key, ()))
        own = (key,) if key != first and key not in later else ()
        self._keys[number] = first, (*later, *own)
        return first

    def keys(self, number: int) -> list[str]:
        """Return the names under which clients install a dataflow."""
        first, later = self._keys[number]
        return [first, *later]

    def _free_keys(self, old: int, new: int) -> list[str]:
        """Return the names of a new version, without those under which another dataflow was installed since
        it began.
        """
        return [key for key in self.keys(new) if self._numbers.get(key, old) == old]

    # On every worker.

    def begin(self, new: Instance) -> None:
        """Write what the old version feeds the inputs of a new one with."""
        for name, fed in new.feeds.items():
            fed.log_to(self._journal.input(new.index, name))

    def write(self, old: Instance, new: Instance) -> Iterator[None]:
        """Write what a new version takes over, in pieces. Requires: nothing comes in any more, and all epochs
        that are sealed are complete.
        """
        for name, handle in old.inputs.items():
            if name in new.feeds:
                handle.write_taken(new.input(name).codec, self._journal.input(new.index, name))
                yield
        for name in old.frozen.outputs:
            if name in new.frozen.outputs and new.output(name).log.can_take_over(old.output(name).log):
                self._write_output(old, new.index, name)
                yield

    def _write_output(self, old: Instance, new: int, name: str) -> None:
        """Write what an output holds: at once, since readers may forget changes between two steps."""
        log = old.output(name).log
        kept_from, last = log.extent()
        for batch in log.before(kept_from):
            self._journal.older(new, name, kept_from, [(kept_from - 1, [batch])])
        for epoch, batch in log.written(kept_from, last):
            self._journal.older(new, name, kept_from, [(epoch, [batch])])
        self._journal.older(new, name, kept_from, [])

    def mark(self) -> int:
        """Return the position of the log behind all that was written. Somebody waits for it: see `look`."""
        position = self._journal.log.position
        self._awaited.append(position)
        return position

    def has_told(self, position: int) -> bool:
        """Return True if the log has told all up to a position."""
        return self._journal.log.told >= position

    def switched(self, old: Instance, new: Instance, epoch: int, lost: Mapping[str, str]) -> None:
        """Note that a new version has the inputs from `epoch` on, and goes on with all outputs of the old one
        but those that are lost.
        """
        if new.index in self._keys:  # on worker 0
            self._numbers.update(dict.fromkeys(self._free_keys(old.index, new.index), new.index))
        self._epochs.begin(new, epoch)
        for name in old.frozen.outputs:
            if name not in lost:
                self._cuts.note_written(new.index, name, epoch)
                self._digests.note_shown(new.index, name, epoch)

    # On worker 0.

    def decide(self, old: Instance, new: Instance, epoch: int, lost: Mapping[str, str]) -> int:
        """Write that a new version takes the place of the old one; return the position of the log, for which
        somebody waits. Outputs that are stored from now on are declared before. Raise `StoreError` if that
        fails: nothing is decided then.
        """
        for name in sorted(set(stored_outputs(new)) - set(stored_outputs(old))):
            declare(self._store, new.index, self.keys(new.index)[0], name)
        outputs = {
            name: told(old.output(name).failures, epoch) for name in old.frozen.outputs if name not in lost
        }
        first, *_ = self.keys(new.index)
        keys = tuple(key for key in self._free_keys(old.index, new.index) if key != first)
        forms = {each: schema_to_bytes(form) for each, form in changed_forms(old, new).items()}
        switch = PastSwitch(old.index, new.index, epoch, new.frozen.name, keys, outputs, dict(lost), forms)
        position = self._journal.switched(switch.plain())
        self._awaited.append(position)
        return position

    def give_up(self, new: int, error: TimelyError) -> None:
        """Write that a new version has ended before anything was decided about it: what the logs have of it
        counts for nothing, and a fold need not keep it.
        """
        self._journal.gone([new], full_text_of(error), class_names(error))
