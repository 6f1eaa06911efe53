"""A week of mentions, made up: the same form as the Higgs data set, and the same lines for the same seed.

    python examples/mentions/mention_stream.py --rows 60000 --seed 1 --output mentions.txt.gz

It resembles real ones: few users are mentioned by many and most by few; people answer users they have
spoken with before, and otherwise users whom everybody mentions; activity follows the time of day; and an
event in the middle of the week multiplies it for some hours and draws in users not seen before. A tweet is a
mention (MT), a retweet (RT) or a reply (RE); a reply gives a second line, a mention by the same user of the
same user at the same time.
"""

from __future__ import annotations

import argparse
import gzip
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

__all__ = ["DAYS", "FIRST_TIME", "KINDS", "MentionStream", "generate", "main"]

_Int64s = npt.NDArray[np.int64]

KINDS = ("MT", "RT", "RE")
FIRST_TIME = 1_341_100_800  # 2012-07-01 00:00:00 UTC
DAYS = 7
_DAY_S = 86_400
_EVENT_AT_S = 3 * _DAY_S + 7 * 3_600
_EVENT_DECAY_S = 5 * 3_600
_EVENT_SHARE = 0.55
_REPLY_SHARE = 0.07
_RETWEET_SHARE = 0.63
_CIRCLE_SHARE = 0.35
_SELF_SHARE = 0.012


@dataclass(frozen=True)
class MentionStream:
    """Columns of equal length, sorted by time: user ids, unix seconds, and indices into `KINDS`."""

    source: _Int64s
    target: _Int64s
    time: _Int64s
    kind: _Int64s

    def text(self) -> str:
        """One line for each interaction: source, target, time, kind."""
        return "".join(
            f"{source} {target} {time} {KINDS[kind]}\n"
            for source, target, time, kind in zip(
                self.source.tolist(),
                self.target.tolist(),
                self.time.tolist(),
                self.kind.tolist(),
                strict=True,
            )
        )

    def write(self, path: str | Path) -> Path:
        """Write the text, compressed if the name ends in `.gz`; the same bytes for the same rows."""
        file, lines = Path(path), self.text().encode()
        file.write_bytes(gzip.compress(lines, compresslevel=6, mtime=0) if file.suffix == ".gz" else lines)
        return file


def generate(rows: int = 60_000, seed: int = 1) -> MentionStream:
    """A stream of exactly `rows` interactions over seven days, decided by `rows` and `seed` alone."""
    if rows < 1:
        raise ValueError(f"rows is 1 or more, not {rows}")
    random = np.random.Generator(np.random.PCG64(seed))
    time, in_event = _times(random, rows)
    users = max(10, int(rows * 0.55))
    source = _sources(random, users, in_event)
    target = _targets(random, users, source)
    draws = random.random(rows)
    kind = np.where(draws < _RETWEET_SHARE, 1, np.where(draws < _RETWEET_SHARE + _REPLY_SHARE, 2, 0)).astype(
        np.int64
    )
    _repeat_replies_as_mentions(source, target, time, kind)
    ids = random.permutation(
        np.arange(1, users + 1, dtype=np.int64)
    )  # a user's number must not tell how popular the user is
    return MentionStream(ids[source], ids[target], time, kind)


def _times(random: np.random.Generator, rows: int) -> tuple[_Int64s, npt.NDArray[np.bool_]]:
    """Sorted times, and which of them belong to the event."""
    in_event = random.random(rows) < _EVENT_SHARE
    # Accept and reject against the curve of the day; the last rejected times keep their places, so the
    # number is exact.
    usual = random.random(rows) * DAYS * _DAY_S
    for _ in range(8):
        hour = usual % _DAY_S / 3_600
        rejected = random.random(rows) > 0.55 + 0.45 * np.cos((hour - 17) / 24 * 2 * np.pi)
        usual = np.where(rejected, random.random(rows) * DAYS * _DAY_S, usual)
    rush = _EVENT_AT_S + random.gamma(1.6, _EVENT_DECAY_S, rows)
    seconds = np.where(in_event, rush, usual).clip(0, DAYS * _DAY_S - 1)
    order = np.argsort(seconds, kind="stable")
    return FIRST_TIME + seconds[order].astype(np.int64), in_event[order]


def _sources(random: np.random.Generator, users: int, in_event: npt.NDArray[np.bool_]) -> _Int64s:
    """The speakers: regulars by a heavy-tailed activity; in the event mostly people who speak once."""
    regulars = max(5, users // 4)
    usual = (regulars * random.random(len(in_event)) ** 2.2).astype(np.int64)
    once = random.integers(0, users, len(in_event))
    return np.where(random.random(len(in_event)) < np.where(in_event, 0.75, 0.3), once, usual)


def _targets(random: np.random.Generator, users: int, source: _Int64s) -> _Int64s:
    """The addressees: somebody of the speaker's circle, or a user whom many mention (a power law)."""
    rows = len(source)
    popular = np.minimum((random.pareto(0.75, rows) * 2).astype(np.int64), users * 4) % users
    circle = (source * 7_919 + 13 + random.integers(0, 5, rows) * 104_729) % users
    target = np.where(random.random(rows) < _CIRCLE_SHARE, circle, popular)
    himself = random.random(rows) < _SELF_SHARE
    target = np.where(target == source, (target + 1) % users, target)
    return np.where(himself, source, target)


def _repeat_replies_as_mentions(source: _Int64s, target: _Int64s, time: _Int64s, kind: _Int64s) -> None:
    """The row before a reply becomes the mention that the same tweet is, in place."""
    reply = np.flatnonzero(kind == 2)
    reply = reply[(reply > 0) & (kind[reply - 1] != 2)]
    for column in (source, target, time):
        column[reply - 1] = column[reply]
    kind[reply - 1] = 0


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line: write a stream to a file, or to standard output without `--output`."""
    parser = argparse.ArgumentParser(
        prog="python examples/mentions/mention_stream.py",
        description="Write a made-up week of mentions: lines 'source target unix_seconds kind', by time.",
    )
    parser.add_argument("--rows", type=int, default=60_000, help="how many interactions (60000)")
    parser.add_argument("--seed", type=int, default=1, help="the same seed gives the same lines (1)")
    parser.add_argument("--output", type=Path, help="the file to write; compressed if it ends in .gz")
    options = parser.parse_args(arguments)
    if options.rows < 1:
        parser.error(f"--rows is 1 or more, not {options.rows}")
    stream = generate(options.rows, options.seed)
    if options.output is None:
        sys.stdout.write(stream.text())
        return 0
    try:
        stream.write(options.output)
    except OSError as error:
        sys.stderr.write(f"{options.output} cannot be written: {error.strerror}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
