"""Which answers do logs have?

Workers write the rows of an answer, a few thousand in each record, and say with the last of them that these
are all. An answer counts if all workers of its incarnation have said so, for the same cut.

    ["answer", worker, dataflow, output, cut, epoch, why, is_last, shape]

`why`: the output has no answer as of the epoch, so there are no rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ..past import Past

__all__ = ["AnswerName", "LoggedAnswers"]


class AnswerName(NamedTuple):
    """What tells an answer apart from others of the same output."""

    incarnation: int
    epoch: int
    cut: str


@dataclass
class LoggedAnswers:
    """The answers in logs, as far as their records were noted."""

    _told: dict[tuple[int, str], dict[AnswerName, set[int]]] = field(default_factory=dict)
    """By dataflow and output: which workers have written all rows."""
    _reasons: dict[tuple[int, str, AnswerName], str] = field(default_factory=dict)

    def note(self, incarnation: int, head: Sequence[object]) -> None:
        """Take in the head of a record."""
        match head:
            case (_, int(worker), int(dataflow), str(output), str(cut), int(epoch), str(why), is_last, _):
                name = AnswerName(incarnation, epoch, cut)
                if why:
                    self._reasons.setdefault((dataflow, output, name), why)
                if is_last:
                    self._told.setdefault((dataflow, output), {}).setdefault(name, set()).add(worker)

    def newest(self, past: Past, workers: Mapping[int, int]) -> dict[tuple[int, str], AnswerName]:
        """Return, by dataflow and output, the name of the newest answer that counts. `workers`: how many each
        incarnation had.

        An answer counts only if all workers have digests of its epoch: so it rests on what all logs have,
        and a restart is to give it again.
        """
        newest: dict[tuple[int, str], AnswerName] = {}
        for (dataflow, output), names in self._told.items():
            flow = past.flows.get(dataflow)
            if flow is None or not flow.fold_facts.output(output).form:
                continue
            digests = flow.digests.get(output)
            whole = [
                name
                for name, told in names.items()
                if len(told) == workers[name.incarnation] and (digests is None or digests.before > name.epoch)
            ]
            if whole:
                newest[dataflow, output] = max(whole)
        return newest

    def why(self, dataflow: int, output: str, name: AnswerName) -> str:
        """Return why there are no rows; "" if there are."""
        return self._reasons.get((dataflow, output, name), "")
