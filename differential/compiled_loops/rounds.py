"""Tables for the kernel that runs a loop of several workers from round to round."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final

import numpy as np

from differential.compiled_loops.tables import Parts
from differential.kernels.compiled_loops.layout import (
    X_TURNS,
)
from differential.kernels.compiled_loops.round_layout import (
    ENDS,
    HEARS_ELSEWHERE,
    LISTENS,
    OUT,
    R_ARE_ALIKE,
    R_FIRST_OF_ALL,
    R_KEPT,
    R_TURNS,
    R_VOTE,
    ROUND,
    SOMEBODY_SLEEPS,
    V_ENDED,
    V_NUMBER,
    V_PARTS,
    VOTES_ELSEWHERE,
    WAITS,
    WORKS,
)
from differential.kernels.compiled_loops.round_messages import HEADER_BYTES
from differential.kernels.compiled_loops.rounds import (
    T_COUNTS,
    T_EDGES,
    T_ENDED,
    T_FIELDS,
    T_HEADER,
    T_LINES,
    T_MATCHES,
    T_OUTS,
    T_RECORDS,
    T_SLOTS,
    T_STATE,
    T_STEPS,
    T_TRACES,
    TABLES,
    run_rounds,
)
from differential.kernels.loading import prepare
from progress.compiled.arrays import Int64s
from timely.operators.compiled_loop import RoundInput, RoundResult, Stop, Vote
from timely.wire.transport import InTurn
from timely.wire.transport.ring import L_IN_SIZE, RECORD_PARTS

__all__ = ["STOPS", "Rounds"]

STOPS: Final = {
    WAITS: Stop.WAITS,
    HEARS_ELSEWHERE: Stop.WAITS,
    SOMEBODY_SLEEPS: Stop.AGAIN,
    VOTES_ELSEWHERE: Stop.VOTES,
    ENDS: Stop.ENDS,
}
"""Why a call has ended, unless Python has to do a step."""

_NUMBERS: Final = struct.Struct(f"<{ROUND}q")

_ROUNDS_MAX: Final = 256
"""Rounds that it runs before it lets other work run."""


class Rounds:
    """The rounds of one worker's share.

    Args:
        to_barriers: by slot for rows to another worker: the barrier they go to, if they go to one.
        state, round_counts: of the loop, as kernels take them.
    """

    def __init__(
        self, parts: Parts, to_barriers: Mapping[int, int], state: Int64s, round_counts: Int64s
    ) -> None:
        prepare(run_rounds, "tl")
        self._parts = parts
        self._to_barriers = to_barriers
        self._round = np.zeros(ROUND, np.int64)
        self._state = state
        self._tables = np.zeros((TABLES, 3), np.int64)
        self._arrays: dict[int, Int64s] = {}
        """By table the array that it names by address."""
        self._header = np.zeros((1, 4), np.int64)
        self._header_bytes = self._header.data.cast("B")
        self._numbers = self._round.data
        """The same memory as `_round`: single words of an array are slow to write."""
        self._ended: Int64s = np.zeros((2, 0), np.int64)
        self._ended_now = b""
        """The values of its second line."""
        self._why = WAITS
        """Why the kernel has ended last."""
        self._error: OverflowError | None = None
        """What it has raised for another worker."""
        self._put(T_HEADER, self._header)
        self._put(T_STATE, state.reshape(1, -1))
        self._put(T_COUNTS, round_counts)
        self._put(T_FIELDS, parts.fields)

    def begin(self, start: RoundInput) -> None:
        """Prepare the tables for rounds that begin from `start`."""
        lent, vote = start.lent, start.vote
        if self._arrays.get(T_LINES) is not lent.lines:
            self._describe(lent.lines)
        if self._ended.shape[1] != len(start.ended):
            self._ended, self._ended_now = np.zeros((2, len(start.ended)), np.int64), bytes(len(start.ended))
            self._put(T_ENDED, self._ended)
        self._put(T_SLOTS, self._parts.slots.table)
        self._put(T_TRACES, self._parts.traces.table)
        assert len(start.header) == HEADER_BYTES
        self._header_bytes[:HEADER_BYTES] = start.header
        if vote.ended:
            self._ended[0, : len(vote.ended)] = np.frombuffer(vote.ended, np.uint8)
        if start.ended != self._ended_now:
            self._ended[1], self._ended_now = np.frombuffer(start.ended, np.uint8), start.ended
        phase = LISTENS
        if start.begins:
            phase = WORKS
            self._state[X_TURNS] = 0  # no barrier opens before all workers have voted
        # In the order of `layout.py`, with 0 for fields that others write.
        _NUMBERS.pack_into(
            self._numbers, 0,
            phase, _ROUNDS_MAX, lent.looks, 0, start.anchor, self._parts.epoch_shift, start.word,
            len(start.ended), 0, 0, *vote[:V_PARTS], 0, vote.passes, vote.is_empty, len(vote.ended),
        )  # fmt: skip

    @property
    def number(self) -> int:
        """Number of the last vote."""
        return int(self._round[R_VOTE + V_NUMBER])

    def go_on(self, held_least: int, others: InTurn | None) -> int:
        """Continue, and let others do so for which it waits; return why it ended. `held_least`: the least
        time of rows held outside of slots.
        """
        self._round[R_KEPT] = held_least
        self._why = run_rounds(self._tables, self._round)
        while self._why == WAITS and others is not None:
            have_gone_on = others.go_on(self._go_on_for_others)
            if self._error is not None:
                error, self._error = self._error, None
                raise error
            if self._why == WAITS:
                if not have_gone_on:
                    break
                self._why = run_rounds(self._tables, self._round)
        return self._why

    def _go_on_for_others(self) -> bool:
        """Continue while `go_on` lets another worker go on, which waits for this one; return True if this
        one has voted. What a kernel cannot do, and errors, are left to `go_on`.
        """
        number = self.number
        if self._why == WAITS and self._error is None:
            try:
                self._why = run_rounds(self._tables, self._round)
            except OverflowError as error:
                self._error = error
        return self.number != number

    def result(self, why: int) -> RoundResult:
        """Return how far it went since `begin`."""
        numbers = self._round.tolist()
        worker, number, bound, first, barrier, counters, _, passes, is_empty, count = numbers[R_VOTE:]
        ended = bytes(self._ended[0, :count].tolist()) if count else b""
        vote = Vote(worker, number, bound, first, barrier, counters, bool(passes), bool(is_empty), ended)
        rounds = _ROUNDS_MAX - numbers[R_TURNS]
        return RoundResult(STOPS[why], vote, rounds, numbers[R_FIRST_OF_ALL], bool(numbers[R_ARE_ALIKE]))

    def _describe(self, lines: Int64s) -> None:
        """Fill the tables: the first time, or when the lines to other workers are new."""
        parts = self._parts
        self._put(T_LINES, lines)
        self._put(T_STEPS, parts.steps)
        self._put(T_MATCHES, parts.matches)
        self._put(T_EDGES, parts.edges)
        record_words = int(lines[0, L_IN_SIZE]) // RECORD_PARTS // 8
        self._put(T_RECORDS, np.zeros((lines.shape[0], record_words), np.int64))
        line_of = {int(peer): line for line, peer in enumerate(lines[:, 0].tolist())}
        outs = [
            (
                out.slot,
                line_of[out.peer],
                out.target,
                self._to_barriers.get(out.slot, -1),
                bool(parts.symbol_words[out.target]),
            )
            for out in parts.outs
        ]
        self._put(T_OUTS, np.array(outs, np.int64).reshape(len(outs), OUT))
        assert V_ENDED + 1 == ROUND - R_VOTE

    def _put(self, number: int, table: Int64s) -> None:
        """Enter the array of a table."""
        if self._arrays.get(number) is not table:
            assert table.flags.c_contiguous
            self._arrays[number] = table
            self._tables[number] = table.ctypes.data, *table.shape
