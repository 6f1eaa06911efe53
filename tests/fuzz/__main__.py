"""The long form: mutate for minutes, follow what reaches new lines, keep what is too much for a target.

    ./scripts/fuzz                           30 minutes over all targets
    ./scripts/fuzz --minutes 2 --target rows --seed 7

Ends with status 1 at once if something was found. The message that did it is in the corpus then, where the
ordinary tests replay it: `pytest tests/fuzz`.
"""

from __future__ import annotations

import argparse
import random
import resource
import signal
import sys
import time
import traceback
from types import CodeType, FrameType
from typing import Protocol

from .mutations import Frames, mutated
from .odd_tables import odd_table
from .probing import Defect, keep, kept, probe, read_kept
from .targets import TARGETS, Target

_POOL_COUNT_MAX = 2_000
_ADDRESS_SPACE_BYTES = 12 << 30
_OURS = ("timely/", "progress/", "differential/")


class _Trace(Protocol):
    def __call__(self, frame: FrameType, event: str, argument: object, /) -> _Trace | None: ...


class Coverage:
    """Which lines of ours were reached, as steps from one line to the next."""

    def __init__(self) -> None:
        self.known: set[tuple[CodeType, int, int]] = set()
        self._fresh = False
        self._is_ours: dict[CodeType, bool] = {}

    def run(self, target: Target, frames: Frames) -> bool:
        """Probe; whether that went where nothing has gone before."""
        self._fresh = False
        sys.settrace(self._enter)
        try:
            probe(target, frames)
        finally:
            sys.settrace(None)
        return self._fresh

    def _enter(self, frame: FrameType, event: str, argument: object) -> _Trace | None:
        code = frame.f_code
        if code not in self._is_ours:
            self._is_ours[code] = any(part in code.co_filename for part in _OURS)
        if not self._is_ours[code]:
            return None
        last = 0

        def trace(inner: FrameType, event: str, argument: object) -> _Trace | None:
            nonlocal last
            step = (code, last, inner.f_lineno)
            last = inner.f_lineno
            if step not in self.known:
                self.known.add(step)
                self._fresh = True
            return trace

        return trace


def fuzz(target: Target, seconds: float, seed: int) -> tuple[int, int]:
    """Mutate until the time is over; returns how many messages were tried, and how many led to new lines."""
    choose = random.Random(seed)
    coverage = Coverage()
    pool: list[Frames] = [*target.seeds, *map(read_kept, kept(target.name))]
    for frames in pool:
        coverage.run(target, frames)
    tried, found = 0, 0
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        tried += 1
        frames = next_message(target, pool, choose)
        # What ends the whole process, as a failed check in a library does, leaves its message behind.
        under_way = keep(target.name, frames, "ended_the_process")
        try:
            is_fresh = coverage.run(target, frames)
        except KeyboardInterrupt:
            under_way.unlink()
            raise
        except BaseException:
            print(f"{target.name}: kept as {keep(target.name, frames)}", file=sys.stderr)
            under_way.unlink()
            raise
        under_way.unlink()
        if is_fresh and sum(map(len, frames)) < 65_536:
            found += 1
            pool.append(frames)
            if len(pool) > _POOL_COUNT_MAX:
                del pool[choose.randrange(len(target.seeds), len(pool))]
    return tried, found


def next_message(target: Target, pool: list[Frames], choose: random.Random) -> Frames:
    """An odd message for a target."""
    frames = choose.choice(pool)
    if target.name == "rows" and choose.random() < 0.3:
        frames = odd_rows(choose)
    for _ in range(choose.choice([1, 1, 1, 2, 3])):
        frames = mutated(frames, choose.choice(pool), choose, target.form)
    return frames


def odd_rows(choose: random.Random) -> Frames:
    """A valid stream of a table that nobody declared."""
    from timely.wire.frames.tables import table_to_frame

    return [bytes(table_to_frame(odd_table(choose))), bytes([choose.randrange(3), choose.randrange(5)])]


def main() -> int:
    """Share the time among the targets."""
    parser = argparse.ArgumentParser(prog="scripts/fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=random.randrange(2**31))
    parser.add_argument("--target", choices=sorted(TARGETS), action="append")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # A claim of terabytes must fail as an error, here as on a worker that has less.
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_SPACE_BYTES, _ADDRESS_SPACE_BYTES))
    chosen = [TARGETS[name] for name in options.target or TARGETS]
    print(f"seed {options.seed}", flush=True)
    for target in chosen:
        try:
            tried, found = fuzz(target, options.minutes * 60 / len(chosen), options.seed)
        except Defect as error:
            traceback.print_exc()
            print(f"{target.name}: {error}; replay: pytest tests/fuzz -k {target.name}", file=sys.stderr)
            return 1
        print(f"{target.name}: {tried:,} messages, {found} that led to new lines", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
